"""The learned prior over task weights, as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self, overload

import numpy as np

from condmeta.fitted.at_times import drift_of
from condmeta.fitted.low_latency import LowLatency
from condmeta.fitted.scales import Scales
from condmeta.fitted.summary import Summary
from condmeta.fitted.target import TRANSFORMS
from condmeta.fitted.task_model import TaskModel, TaskModels
from condmeta.fitted.weighing import TAILS
from condmeta.inner.hedge import HedgedGaussian
from condmeta.inner.low_rank import LowRankGaussian
from condmeta.inner.posterior import Gaussian
from condmeta.inner.student import StudentGaussian
from condmeta.learners.attributes import chosen_transform, from_info
from condmeta.learners.forgetting import DRIFTS, is_drift, require_timed
from condmeta.learners.form_trial import LOSSES
from condmeta.learners.inputs import METADATA
from condmeta.learners.learner import Learner
from condmeta.learners.model_file import storable
from condmeta.learners.offsets import (
    is_zero,
    minus_offset,
    read_offset,
    remember_offset,
    require_offset,
)
from condmeta.learners.parameters import NON_NEGATIVE, is_auto, jobs_of, one_of, or_word
from condmeta.learners.ridge_learning import collect_more, learn_ridge
from condmeta.learners.shared_base import is_base
from condmeta.learners.shared_columns import is_random
from condmeta.learners.targets import Regressor
from condmeta.learners.training import Learned, Training
from condmeta.learners.writing import writing
from condmeta.meta.prior import METRICS
from condmeta.meta.ridge_choice import COLD_STARTS, NOISES
from condmeta.meta.task_statistics import TaskStatistics
from condmeta.meta.wide_tasks import WIDE, WideTasks
from condmeta.persistence.fields import floats, maybe, number
from condmeta.tasks import TaskSet
from condmeta.tasks.call_input import take_time
from condmeta.tasks.times import read_times
from condmeta.tasks.weights import Weighted, read_weight
from condmeta.typing import (
    Base,
    ColdStart,
    Conditioning,
    Drift,
    ErrorName,
    FeatureMapLike,
    Ids,
    Matrix,
    Metric,
    MissingSide,
    Noise,
    RandomColumns,
    SideInfo,
    Values,
    XTransform,
    YTransform,
)


@storable(
    inner=(Gaussian, LowRankGaussian, StudentGaussian),
    state=(TaskStatistics, WideTasks),
    info={
        "H_": maybe(floats("w w")),
        "s2_": number(above=0, infinite=True),
        "nu_": maybe(number(above=2, infinite=True)),
    },
)
@dataclass(eq=False, repr=False)
class ConditionalRidge(Regressor, Learner):
    r"""Fit a linear model to each task, from all tasks together and their side information.

    With phi = (Phi(s), 1) and W = (M, b), the weights and labels of task t are

        w_t ~ N(W phi_t, H),   y_ti ~ N(<x_ti, w_t>, s2_t),

    and W, H and the noise maximise the likelihood of all tasks. A task's model is the posterior
    mean of w given its points. Without points it is W phi = tau(s), or a pooled regression if that
    is better (`cold_start`). All settings are chosen automatically. The paper's biased
    regularisation is the case H = s2/(n lam) I.

    Parameters
    ----------
    feature_map : "auto", None, a map, a transformer, or a list of them
        Phi: how side information becomes features. "auto" encodes the columns of the side table.
        With None, or without a side table, all tasks start from the same coefficients.
    metric : "auto", "identity", "diagonal" or "full"
        The shape of the covariance H: a multiple of the identity, diagonal, or unrestricted.
    noise : "auto", "shared", "per_task", "by_side", "student" or "robust"
        "shared": one noise variance s2 for all tasks. "per_task": one for each task. "by_side": the
        variance depends on side information, s2 exp(delta . Phi), with a small ridge penalty on
        delta. "student": heavy tails (Student's t distribution with squared scale s2 and nu degrees
        of freedom), so that outliers count little; nu is 3, 5, 10 or infinity, whichever makes
        labels most likely. "auto" chooses among the first three. "robust" also tries "student", and
        takes it if it is clearly better on held-out tasks.
    kappa : "auto" or float in [0, inf]
        Ridge penalty on the map M, which weighs as much as kappa tasks. With infinity, M is zero
        and side information is not used.
    random : "auto", "all", "intercept" or list of columns
        Which coefficients may differ between tasks. "intercept": the intercept alone, lme4's (1 |
        g); a list of names or positions: these columns, and the intercept if there is one. All
        other coefficients are the same for all tasks, do not depend on side information, and are
        not penalised. The name of a one-hot encoded column means all its levels. With more than 64
        columns, "auto" fits a ridge on all columns and looks for a few directions in which tasks
        differ from it; `metric`, `noise` and `kappa` then apply to these directions. "all" lets
        every coefficient differ, in a time that grows with the cube of the number of columns.
    drift : "auto", None, rho, ("decay", rho) or ("ar", phi)
        How tasks change with time, if `fit` is given `time`. A number or ("decay", rho): after
        Delta units of time the statistics of a task's rows, X^T X, X^T y, y^T y and n, are
        multiplied by rho^Delta, so that a row of age a counts rho^a times. ("ar", phi): the weights
        themselves move, w' = tau + phi^Delta (w - tau) + N(0, (1 - phi^(2 Delta)) H), and each
        task's model is the posterior of the weights at its latest time. The unit is that of `time`;
        dates count in days. A third number c, as in ("ar", phi, c), is the share of s2 that is
        noise, by default 1; the rest of s2 comes from the movement of the weights. "auto" chooses
        all three by errors one step ahead on the later rows of the training data, and chooses None
        unless forgetting clearly reduces these errors. The prior is always learned from all rows
        with equal weights.
    base : None, "auto", "boosting" or a scikit-learn regressor
        A shared model of x and the side columns, fitted to all tasks. The models of tasks are
        fitted to its residuals, and predictions are the sum of both. `coef_` then has the
        coefficients for the residuals. In training, the residuals of a task come from a base that
        was fitted without this task. "boosting" is scikit-learn's histogram boosting, and the only
        base that `save` can store. "auto" uses boosting if it clearly reduces the error on held-out
        tasks (see `criterion`).
    x_transform : None, "auto", "splines" or a transformer
        How X is transformed. The model of a task is linear in the transformed columns, and `coef_`
        has one entry for each of them. "splines" adds natural cubic splines to each column with at
        least six different values, if there are at most eight such columns. `fit` fits a
        scikit-learn transformer. "auto" adds splines if they clearly reduce the error on held-out
        tasks. None: always the linear model.
    context : "auto" or bool
        Whether the level (intercept) of a task may depend on the means of its features, in addition
        to side information. With few points the coefficients of a task are then close to those of a
        pooled regression. With more points they approach the coefficients within tasks.
    cold_start : "auto", "prior", "pooled" or "mixture"
        The model of a task without points. "prior": tau(s). "pooled": a least-squares regression on
        x and the side features, fitted to the rows of all tasks. "mixture": the mean of both.
    y_transform : None, "auto", "log" or "yeo-johnson"
        The scale on which y is modelled. Predictions are in the units of y (medians or means: see
        `criterion`). Coefficients are on the transformed scale. "auto" takes a power of y if this
        clearly reduces the error on held-out tasks. None: always y itself; with `x_transform=None`
        this is the linear mixed model of lme4.
    criterion : "absolute" or "squared"
        The error, in the units of y, by which "auto" chooses the transformations of x and y. A
        transformation must reduce it by 1 %, and make the labels of held-out tasks more likely. If
        y is transformed, predictions are medians ("absolute") or means ("squared"). Transformations
        are chosen and learned on at most 10,000 tasks with 2,000,000 rows: those with the smallest
        hashes. "auto" transforms nothing in `partial_fit` and for tables of statistics, and with
        fewer than 20 tasks, more than 64 columns, times, a base, a feature map of points or
        `random` columns.
    conditioning : "shared" or "split"
        For feature maps that read the points of a task. "shared": the same points give the features
        and train the task. "split": the first half gives the features, the rest trains. The paper's
        guarantees need "split", or side information from elsewhere.
    missing_side : "error" or "mean"
        What to do with a task that has no side row: raise an error, or use the mean Phi of the
        training tasks.
    task_column : str or list of str, optional
        The column, or columns, of a frame X that hold the task ids.
    side_columns : str or list of str, optional
        Columns of a frame X that hold side information, constant within a task.
    side_key : str or list of str, optional
        Key columns of the side table, if they are not named like the task column.
    keep_tasks : bool
        Whether `fit` keeps the models of its tasks. If not, every task is new to `predict`.
    n_jobs : int, optional
        Number of threads that share the tasks; -1 uses all cores.
    scale : "none", "standard" or "rows"
        How features are scaled: not at all, by mean and standard deviation over all rows, or every
        row to norm 1. Coefficients are given in the user's units.
    fit_intercept : bool
        Whether models have an intercept. It is one more entry of w and theta, regularised like the
        others.
    tol : float
        The fit stops when a step would change no parameter by more than tol standard errors.
    max_iter : int
        The largest number of passes over the tasks.

    Attributes
    ----------
    metric_, noise_, kappa_, context_, cold_start_ : the chosen settings
        Chosen on held-out tasks. Half of the points of such a task are predicted from none, 1, 2, 5
        and all points of the other half. If fewer than 20 tasks have points to predict, the
        evidence (marginal likelihood) decides on metric and kappa instead, and there is no context.
    choice_ : list of dict
        The candidates that were compared to the end, with their scores, the best first.
    x_transform_, y_transform_, base_ : the transformations and the base, chosen by "auto" or given
    transform_choice_ : list of dict
        The transformations and the base that "auto" compared, with their errors on held-out tasks
        as a share of the error without any, the best first.
    drift_ : None, ("decay", rho, c) or ("ar", phi, c)
        How tasks change: the parameter, or what "auto" has chosen. None: nothing is forgotten.
    drift_choice_ : list of dict
        The candidates that "auto" compared, with their mean absolute errors one step ahead.
    drift_share_ : float or None
        The weight of the model with drift in predictions (see the property).
    H_ : (width, width) array
        Covariance of task weights around tau, in the learner's units.
    s2_ : float
        Variance of the noise, in the units of y; infinite if its square is too large for a float.
        With drift it is that around weights that move.
        With Student's noise it is the squared scale; the variance is s2 nu / (nu - 2).
    nu_ : float
        Degrees of freedom of Student's noise; infinity: noise is normal. Only with this noise.
    n_iter_ : int
    objective_ : float
        The log likelihood sum_t log N(y_t; X_t W phi_t, X_t H X_t^T + s2 I) of all labels, less
        the penalty (kappa/2) tr(M^T H^-1 M) on the map. With `kappa=0` it is the `logLik` of lme4
        with REML = FALSE. If noise is per task, it is that of the shared s2; with Student's noise
        it is a lower bound of the log likelihood. With more than 64
        columns it is that of the labels less the held-out predictions of the ridge on all columns.
    M_, b_ : (width, k) and (width,) arrays
        The map tau = M Phi + b, in the learner's units.
    theta_mean_ : array
        Tau at the mean training Phi, in the user's units, the intercept last.
    n_tasks_, n_features_in_ : int
        Tasks with points that the map was learned from, and features of X.
    feature_names_in_, side_features_ : names of the features of X (if it was a table), and of Phi
    y_offset_ : float
        What is subtracted from y.

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> rng = np.random.default_rng(0)
    >>> s = rng.normal(size=60)
    >>> X = rng.normal(size=(60, 5, 1))
    >>> y = (3 * s[:, None] + 0.1 * rng.normal(size=(60, 5))) * X[:, :, 0]
    >>> model = cm.ConditionalRidge().fit(
    ...     X.reshape(-1, 1), y.ravel(), task=np.repeat(np.arange(60), 5),
    ...     side_info=cm.TaskTable(s[:, None], ids=range(60)),
    ... )
    >>> bool(abs(model.adapt(side_info=[1.0]).coef_[0] - 3) < 0.1)  # no points: tau(s)
    True
    """

    feature_map: FeatureMapLike = "auto"
    _: KW_ONLY
    metric: Metric = "auto"
    noise: Noise = "auto"
    kappa: float | Literal["auto"] = "auto"
    random: RandomColumns = "auto"
    drift: Drift = "auto"
    base: Base | Literal["auto"] = None
    x_transform: XTransform = "auto"
    context: bool | Literal["auto"] = "auto"
    cold_start: ColdStart = "auto"
    y_transform: YTransform = "auto"
    criterion: ErrorName = "absolute"
    conditioning: Conditioning = "shared"
    missing_side: MissingSide = "error"
    tol: float = 0.03
    max_iter: int = 300

    _rules = {
        "metric": or_word("auto", one_of(METRICS)),
        "noise": or_word("auto", one_of((*NOISES, *TAILS))),
        "kappa": or_word("auto", NON_NEGATIVE),
        "random": (is_random, "'auto', 'all', 'intercept' or a list of columns"),
        "base": (is_base, "None, 'auto', 'boosting' or a scikit-learn regressor"),
        "context": one_of(("auto", False, True)),
        "cold_start": one_of(("auto", *COLD_STARTS)),
        "y_transform": one_of(("auto", None, *TRANSFORMS)),
        "criterion": one_of(LOSSES),
        "drift": (is_drift, DRIFTS),
    }
    _by_statistics = True
    _drifts = True  # tasks may change with time
    _side_noise = True  # the noise may follow side information
    _heavy_tails = True
    metric_, noise_, kappa_, choice_ = from_info(), from_info(), from_info(), from_info()
    nu_ = from_info()
    context_, cold_start_ = from_info(), from_info()
    x_transform_, y_transform_, base_ = chosen_transform(), chosen_transform(), chosen_transform()
    transform_choice_ = from_info([])
    s2_, n_iter_, objective_, drift_choice_ = from_info(), from_info(), from_info(), from_info()
    __metadata_request__fit = METADATA | {"time": True}
    __metadata_request__partial_fit = METADATA | {"time": True}
    __metadata_request__predict = METADATA | {"time": True}

    @property
    def drift_(self) -> tuple[str, float, float] | None:
        """How tasks change: None, ("decay", rho, share of noise) or ("ar", phi, share of noise)."""
        drift = drift_of(self.fitted_.inner)
        return None if drift is None else (drift.kind, drift.rate, drift.noise)

    @property
    def drift_share_(self) -> float | None:
        """The weight v of the model with drift in predictions; the model without drift has 1 - v.

        It is 1 after `fit`. If the drift was chosen by "auto", `update` lowers v if the model with
        drift has larger errors on new rows, and raises it again if they are smaller. None without
        drift.
        """
        inner = self.fitted_.inner
        if drift_of(inner) is None:
            return None
        return inner.hedge.share if isinstance(inner, HedgedGaussian) else 1.0

    @property
    def H_(self) -> np.ndarray:  # noqa: N802 - the model's name
        """Covariance (width, width) of task weights around tau, in the learner's units."""
        factor = self.fitted_.inner.factor
        return self.fitted_.info.get("H_", factor @ factor.T)

    def fit(
        self, X: Matrix, y: Values = None, *, task: Ids = None, side_info: SideInfo = None,
        offset: Values = None, sample_weight: Values = None, precision: Values = None,
        time: Values = None,
    ) -> Self:  # fmt: skip
        """Learn what tasks share, and then the model of each task.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The points of all tasks, with rows in any order. A TaskSet is passed alone, because it
            holds y and the task ids.
        y : (N,) array
            The target of each row.
        task : (N,) ids, optional
            The task of each row: strings, integers, dates, tuples; the name of a column of X; None
            means one task.
        side_info : table keyed by task id, optional
            One raw row for each task (see `TaskTable`), or a `TaskSet` of conditioning points. Ids
            without rows in X are kept as tasks without points.
        offset : (N,) array, optional
            Predictions of your own model for the rows; the learner is then fitted to y - offset.
            Your model must not have been fitted to the task of the row. `adapt`, `update` and
            `predict` then need the offset of their rows too.
        sample_weight : (N,) array, optional
            How often each row counts: 2 counts as two equal rows, 0 as no row.
        precision : (N,) array, optional
            Precision of each label: its noise has variance s2 / precision. A row that is the mean
            of m measurements has precision m; it is still one row. (lme4 calls it `weights`.)
        time : (N,) numbers or dates, or the name of a column of X, optional
            The time of each row, for tasks that change (see `drift`). Numbers have any unit, dates
            count in days. If you name a column, it is not a feature.

        Returns
        -------
        self
        """
        X, time = take_time(X, time)
        weight, y = weighted(sample_weight, precision, time), minus_offset(y, offset)
        with writing(self):
            super().fit(X, y, task=task, side_info=side_info, sample_weight=weight)
            self._model = remember_offset(self._model, offset)
        return self

    @overload
    def adapt(
        self, X: TaskSet, *, side_info: SideInfo = None, offset: Values = None,
        sample_weight: Values = None, precision: Values = None,
        time: Values = None,
    ) -> TaskModels: ...  # fmt: skip
    @overload
    def adapt(
        self, X: Matrix | None = None, y: Values = None, *, task: None = None,
        side_info: SideInfo = None, offset: Values = None, sample_weight: Values = None,
        precision: Values = None,
        time: Values = None,
    ) -> TaskModel: ...  # fmt: skip
    @overload
    def adapt(
        self, X: Matrix | None = None, y: Values = None, *, task: Ids, side_info: SideInfo = None,
        offset: Values = None, sample_weight: Values = None, precision: Values = None,
        time: Values = None,
    ) -> TaskModels: ...  # fmt: skip
    def adapt(
        self, X: Matrix | None = None, y: Values = None, *, task: Ids = None,
        side_info: SideInfo = None,
        offset: Values = None, sample_weight: Values = None, precision: Values = None,
        time: Values = None,
    ) -> TaskModel | TaskModels:  # fmt: skip
        """Return models of new tasks from a few points, or from none. The learner does not change.

        The models that it returns predict without the offset: add it to their predictions.

        Parameters
        ----------
        X : (n, d) array, DataFrame or TaskSet, optional
            The points. Without any, the model has the starting coefficients tau(s).
        y : (n,) array, optional
            Their targets.
        task : (n,) ids, optional
            The task of each point. None means that all points belong to one task.
        side_info : row or table, optional
            For one task its row (a dict of columns, a Series, a sequence); with `task` a table
            keyed by task id, as in `fit`.
        offset : (N,) array, optional
            As in `fit`: predictions of your own model for these rows.
        sample_weight : (N,) array, optional
            How often each row counts: 2 counts as two equal rows, 0 as no row.
        precision : (N,) array, optional
            The precision of each row, as in `fit`: its noise has the variance s2 / precision.
        time : (N,) numbers or dates, or the name of a column of X, optional
            The time of each row, as in `fit`; a model with drift needs it. The model of a task is
            the one at the time of its latest row.
        """
        if X is not None:
            require_offset(self._model, offset)
        X, time = self._take_time(X, time)
        weight, y = weighted(sample_weight, precision, time), minus_offset(y, offset)
        return super().adapt(X, y, task=task, side_info=side_info, sample_weight=weight)

    def update(
        self, X: Matrix, y: Values = None, *, task: Ids = None, side_info: SideInfo = None,
        offset: Values = None, sample_weight: Values = None, precision: Values = None,
        time: Values = None,
    ) -> Self:  # fmt: skip
        """Add points to known tasks, and add new tasks, in place; tau does not change.

        Arguments as in `fit`.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            Further points of known tasks, and points of new ones.
        y : (N,) array
            The target of each row.
        task : (N,) ids, optional
            The task of each row: strings, integers, dates, tuples; the name of a column of X; None
            means one task.
        side_info : table keyed by task id, optional
            One raw row for each new task, as in `fit`.
        offset : (N,) array, optional
            As in `fit`: predictions of your own model for these rows.
        sample_weight : (N,) array, optional
            How often each row counts: 2 counts as two equal rows, 0 as no row.
        precision : (N,) array, optional
            The precision of each row, as in `fit`: its noise has the variance s2 / precision.
        time : (N,) numbers or dates, one of them for all rows, or the name of a column, optional
            The time of each row, as in `fit`; a model with drift needs it. Rows that are older than
            the latest row of their task get less weight by their age: exactly with decay; with
            AR(1) as if they were independent of the other rows of their time.
        """
        require_offset(self._model, offset)
        X, time = self._take_time(X, time)
        weight, y = weighted(sample_weight, precision, time), minus_offset(y, offset)
        return super().update(X, y, task=task, side_info=side_info, sample_weight=weight)

    def partial_fit(
        self, X: Matrix, y: Values = None, *, task: Ids = None, side_info: SideInfo = None,
        offset: Values = None, sample_weight: Values = None, precision: Values = None,
        time: Values = None,
    ) -> Self:  # fmt: skip
        """Add further tasks, each once and with all its rows; the prior is learned when first used.

        Each call only adds statistics, so several calls give the same result as one `fit`, up to
        rounding. Feature maps of points use the scale of the first call. A task that is already
        known raises an error: use `update`. `offset`, `sample_weight` and `precision` (N,) as in
        `fit`. With `time` the learner keeps the rows, because it learns drift from them; `update`
        then keeps its rows too.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The points of all tasks, with rows in any order. A TaskSet is passed alone, because it
            holds y and the task ids.
        y : (N,) array
            The target of each row.
        task : (N,) ids, optional
            The task of each row: strings, integers, dates, tuples; the name of a column of X; None
            means one task.
        side_info : table keyed by task id, optional
            One raw row for each task (see `TaskTable`), or a `TaskSet` of conditioning points. Ids
            without rows in X are kept as tasks without points.
        offset : (N,) array, optional
            As in `fit`: predictions of your own model for these rows.
        sample_weight : (N,) array, optional
            How often each row counts: 2 counts as two equal rows, 0 as no row.
        precision : (N,) array, optional
            The precision of each row, as in `fit`: its noise has the variance s2 / precision.
        time : (N,) numbers or dates, or the name of a column of X, optional
            The time of each row, as in `fit`: in all calls, or in none.

        Returns
        -------
        self
        """
        with writing(self):
            require_offset(self._model, offset)
            X, time = take_time(X, time)
            weight, y = weighted(sample_weight, precision, time), minus_offset(y, offset)
            model = collect_more(self, self._model, X, y, task, side_info, weight)
            self._check_ids(model.state.ids)
            self._model = remember_offset(model, offset)
        return self

    @overload
    def predict(
        self, X: Matrix, *, task: Ids = None, side_info: SideInfo = None, offset: Values = None,
        return_std: Literal[True], precision: Values = None, time: Values = None,
    ) -> tuple[np.ndarray, np.ndarray]: ...  # fmt: skip
    @overload
    def predict(
        self, X: Matrix, *, task: Ids = None, side_info: SideInfo = None, offset: Values = None,
        return_std: Literal[False] = False, precision: Values = None, time: Values = None,
    ) -> np.ndarray: ...  # fmt: skip
    def predict(
        self, X: Matrix, *, task: Ids = None, side_info: SideInfo = None, offset: Values = None,
        return_std: bool = False, precision: Values = None, time: Values = None,
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Predict rows, each by the model of its task.

        A known task has its own model. A new task, or a known task without points, is predicted
        from its side information, given here or to `fit`. Without side information this raises an
        error, or with missing_side='mean' predicts an average task. The rows of X are never used as
        conditioning points.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The rows to predict.
        task : (N,) ids, optional
            The task of each row, or the name of a column of X. If None, all rows belong to one
            task: with `side_info`, a new task; without, the only task of the fit.
        side_info : row or table, optional
            Side information of new tasks: a row for one task, a table keyed by task id for several.
            Known tasks do not need it.
        offset : (N,) array, optional
            Added to the predictions (see `fit`). A model that was fitted with an offset needs one;
            `offset=0` leaves it out.
        return_std : bool
            Whether to also return the standard deviation (N,) of a new label. It includes the
            noise, the uncertainty of the task's weights given its points, and the uncertainty of
            the map and H, as the mean over tasks. It is valid if the model is. With a feature map
            of points and `conditioning="shared"` it is too small.
        precision : (N,) array, optional
            Precision of the new labels, for `return_std`: by default 1 (see `fit`).
        time : (N,) numbers or dates, one of them for all rows, or the name of a column, optional
            The time of each row, as in `fit`: the later it is, the more a model with drift has
            forgotten. By default, and for earlier times, the model of a task is the one at the time
            of its latest row.
        """
        X, time = self._take_time(X, time)
        fitted, rows = self._read_rows(X, task, side_info)
        if time is not None:
            rows = rows._replace(time=read_times(time, len(rows.X)))
        require_offset(fitted, offset)
        predicted = fitted.predict(rows, jobs_of(self))
        if not is_zero(offset):
            predicted = predicted + read_offset(offset, len(predicted))
        if not return_std:
            return predicted
        if precision is not None:
            precision = read_weight(Weighted(None, precision), len(predicted))[:, 1]
            precision = precision[X.row_order] if isinstance(X, TaskSet) else precision
        return predicted, fitted.std(rows, precision)

    def _take_time(self, X: Matrix, time: Any) -> tuple[Any, Any]:
        """Return X and the times of its rows, for a model that was fitted with times."""
        if time is not None:
            require_timed(self.fitted_)
        return take_time(X, time)

    def summary(self, level: float = 0.95, robust: bool | None = None) -> Summary:
        """Return the effects of side columns with intervals, variances between tasks, and noise.

        It has the contents of a mixed model's summary, and prints as a table. The intervals ignore
        that settings were chosen on the same data. A penalty on the map (kappa > 0) shrinks effects
        and their intervals towards zero; for maximum likelihood, fit with `kappa=0`.

        Parameters
        ----------
        level : float in (0, 1)
            Coverage of the intervals.
        robust : bool, optional
            Whether standard errors are also valid if variances differ between tasks. None means yes
            with 50 tasks or more.

        Examples
        --------
        >>> import numpy as np, condmeta as cm
        >>> rng = np.random.default_rng(0)
        >>> size, task = rng.normal(size=60), np.repeat(np.arange(60), 4)
        >>> y = 1 + 2 * size[task] + rng.normal(size=60)[task] + rng.normal(size=240)
        >>> model = cm.ConditionalRidge(kappa=0.0, fit_intercept=False).fit(
        ...     np.ones((240, 1)), y, task=task, side_info=cm.TaskTable({"size": size}, range(60))
        ... )
        >>> model.summary().effects[["side", "effect"]].round(1).to_numpy().tolist()
        [['(base)', 1.0], ['size', 1.8]]
        """
        return Summary.of(self.fitted_, level, robust, type(self).__name__)

    def low_latency(self) -> LowLatency:
        """Return a snapshot that adapts and predicts one task at a time, in microseconds.

        Its results equal those of `adapt` and `predict` bit for bit. Its input is not checked.

        Examples
        --------
        >>> import numpy as np, condmeta as cm
        >>> rng = np.random.default_rng(0)
        >>> X, task = rng.normal(size=(120, 2)), np.repeat(np.arange(30), 4)
        >>> y = X @ [1.0, 2.0] + rng.normal(size=30)[task]
        >>> model = cm.ConditionalRidge().fit(X, y, task=task)
        >>> fast = model.low_latency()
        >>> fast.adapt(X[:3], y[:3]).predict(X[3:4]) == model.adapt(X[:3], y[:3]).predict(X[3:4])
        array([ True])
        >>> fast.task(7).predict(X[:1]).shape
        (1,)
        """
        return LowLatency(self.fitted_)

    def _keeps_sparse(self, n_columns: int) -> bool:
        linear = self.x_transform is None or is_auto(self.x_transform)
        plain = self.base is None and linear and self.scale != "rows"
        reads_rows = self.feature_map is not None and not isinstance(self.feature_map, str)
        return n_columns > WIDE and self.random != "all" and plain and not reads_rows

    def _kind_of_statistics(self, scales: Scales) -> type:
        """Return what is kept of tasks: statistics, or rows if there are many columns."""
        return WideTasks if len(scales.x_mean) > WIDE and self.random != "all" else TaskStatistics

    def _learn(self, data: Training) -> Learned:
        return learn_ridge(self, data)

    def _check_ids(self, ids: Any) -> None:
        """Raise if the learner cannot use task ids such as these."""


def weighted(sample_weight: Values, precision: Any, time: Any = None):
    """Return the weights of rows; precision and times travel with them, if there are any."""
    if precision is None and time is None:
        return sample_weight
    return Weighted(sample_weight, precision, time=time)
