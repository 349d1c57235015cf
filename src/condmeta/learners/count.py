"""The learned prior over task weights for counts, as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np

from condmeta.fitted.count_distribution import CountDistribution
from condmeta.fitted.kept_rows import KeptRows
from condmeta.fitted.task_model import TaskModel, TaskModels
from condmeta.inner.likelihoods import NegativeBinomial
from condmeta.inner.row_posterior import Counts
from condmeta.learners.attributes import chosen_transform, from_info
from condmeta.learners.gathered import gather_more
from condmeta.learners.learner import Learner
from condmeta.learners.model_file import storable
from condmeta.learners.offsets import read_exposure, require_exposure
from condmeta.learners.parameters import FINITE, NON_NEGATIVE, jobs_of, one_of, or_word
from condmeta.learners.row_prior import learn_row_prior
from condmeta.learners.row_summary import summary
from condmeta.learners.shared_columns import is_random
from condmeta.learners.targets import Regressor, target_of
from condmeta.learners.training import Learned, Training
from condmeta.learners.writing import writing
from condmeta.meta.logistic_choice import COLD_STARTS
from condmeta.meta.prior import METRICS
from condmeta.persistence.fields import floats
from condmeta.tasks import TaskSet
from condmeta.tasks.weights import row_sizes, weighted_by
from condmeta.typing import (
    Conditioning,
    FeatureMapLike,
    Ids,
    Matrix,
    Metric,
    MissingSide,
    RandomColumns,
    SideInfo,
    Values,
    XTransform,
)


@storable(inner=Counts, state=KeptRows, info={"H_": floats("w w")})
@dataclass(eq=False, repr=False)
class ConditionalCount(Regressor, Learner):
    r"""Fit a model of counts to each task, from all tasks together and their side information.

    With phi = (Phi(s), 1) and W = (M, b), the weights and counts of task t are

        w_t ~ N(W phi_t, H),   y_ti ~ NB(mean mu_ti, variance mu_ti + alpha mu_ti^2),
        mu_ti = exposure_ti exp(<x_ti, w_t>),

    a negative binomial law, which is Poisson's as alpha goes to 0. W, H and alpha maximise a
    variational bound of the likelihood of all tasks. A task's model is the posterior mean of w
    given its points; without points it is W phi = tau(s). Predictions average over the posterior
    of w: the mean count is exposure exp(m + v / 2), with m and v the mean and variance of <x, w>.

    Parameters
    ----------
    feature_map : "auto", None, a map, a transformer, or a list of them
        Phi: how side information becomes features. "auto" encodes the columns of the side table.
        With None, or without a side table, all tasks start from the same coefficients.
    metric : "auto", "identity", "diagonal" or "full"
        The shape of the covariance H: a multiple of the identity, diagonal, or unrestricted.
    kappa : "auto" or float in [0, inf]
        Ridge penalty on the map M, which weighs as much as kappa tasks. With infinity, M is zero
        and side information is not used.
    alpha : "auto" or float in [0, inf)
        Overdispersion of counts. 0 means Poisson counts: they are fitted with the smallest alpha,
        1e-4, or more if counts are rare. For counts of 1,000 their variance is then 10 % too large.
    random : "all", "intercept" or list of columns
        Which coefficients may differ between tasks. "intercept": the intercept alone, (1 | g) of
        lme4 and glmmTMB; a list of names or positions: these columns, and the intercept if there is
        one. All other coefficients are the same for all tasks, do not depend on side information,
        and are not penalised.
    x_transform : None, "auto", "splines" or a transformer
        How X is transformed. The model of a task is linear in the transformed columns, and `coef_`
        has one entry for each of them. "splines" adds natural cubic splines to each column with at
        least six different values, if there are at most eight such columns. `fit` fits a
        scikit-learn transformer. "auto" adds splines if the counts of held-out tasks become clearly
        more likely, but not with fewer than 20 tasks, a feature map of points or `random` columns.
        None: always the log-linear model.
    cold_start : "auto", "prior" or "pooled"
        How a task without points is predicted. "prior": from tau(s) and H. "pooled": by one model
        of the rows of all tasks, with the same coefficients of x for all tasks and a level that
        depends on side information. With `random` columns it is always "prior".
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
    metric_, kappa_ : the settings of largest weight
        Chosen by the log density of counts of held-out tasks: each half of the points of such a
        task is predicted without points, and after adapting to 1, 3 and all points of the other
        half. If fewer than 20 tasks have points to predict, the evidence (marginal likelihood)
        decides instead.
    choice_ : list of dict
        The candidates that were compared to the end, with their scores, the best first, and their
        weights in the average.
    cold_start_ : "prior" or "pooled"
        How tasks without points are predicted; "auto" chooses by the log density of their counts.
    x_transform_ : the transformation, chosen by "auto" or given
    transform_choice_ : list of dict
        The transformations that "auto" compared, with their log losses on held-out tasks as a share
        of that without any, the best first.
    alpha_ : float
        Overdispersion of counts.
    H_ : (width, width) array
        Covariance of task weights around tau, in the learner's units.
    n_iter_ : int
    objective_ : float
        The bound of the log likelihood, less the penalty on the map.
    M_, b_ : (width, k) and (width,) arrays
        The map tau = M Phi + b, in the learner's units.
    theta_mean_ : array
        Tau at the mean training Phi, in the user's units, the intercept last.
    n_tasks_, n_features_in_ : int
        Tasks with points that the map was learned from, and features of X.
    feature_names_in_, side_features_ : names of the features of X (if it was a table), and of Phi

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> rng = np.random.default_rng(0)
    >>> s, X = rng.normal(size=80), rng.normal(size=(80, 8, 1))
    >>> y = rng.poisson(np.exp(1 + s[:, None] * X[:, :, 0]))
    >>> model = cm.ConditionalCount().fit(
    ...     X.reshape(-1, 1), y.ravel(), task=np.repeat(np.arange(80), 8),
    ...     side_info=cm.TaskTable(s[:, None], ids=range(80)),
    ... )
    >>> new = model.adapt(side_info=[1.0])  # no points: tau(s)
    >>> new.coef_.round(1), new.predict([[1.0]]).round(0)  # e^2 = 7.4
    (array([1.]), array([7.]))
    >>> new.predict_distribution([[1.0]]).interval(0.9)
    array([[ 3., 12.]])
    """

    feature_map: FeatureMapLike = "auto"
    _: KW_ONLY
    metric: Metric = "auto"
    kappa: float | Literal["auto"] = "auto"
    alpha: float | Literal["auto"] = "auto"
    random: RandomColumns = "all"
    x_transform: XTransform = "auto"
    cold_start: Literal["auto", "prior", "pooled"] = "auto"
    conditioning: Conditioning = "shared"
    missing_side: MissingSide = "error"
    tol: float = 1e-2
    max_iter: int = 300

    _rules = {
        "metric": or_word("auto", one_of(METRICS)),
        "kappa": or_word("auto", NON_NEGATIVE),
        "alpha": or_word("auto", FINITE),
        "random": (is_random, "'all', 'intercept' or a list of columns"),
        "cold_start": one_of(("auto", *COLD_STARTS)),
    }
    _labels = "count"
    metric_, kappa_, choice_, cold_start_ = from_info(), from_info(), from_info(), from_info()
    H_, n_iter_, objective_ = from_info(), from_info(), from_info()
    x_transform_, transform_choice_ = chosen_transform(), from_info([])

    @property
    def alpha_(self) -> float:
        """Overdispersion of counts."""
        return self.fitted_.inner.alpha

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def fit(
        self, X: Matrix, y: Values = None, *, task: Ids = None, side_info: SideInfo = None,
        exposure: Values = None, sample_weight: Values = None,
    ) -> Self:  # fmt: skip
        """Learn what tasks share, and then the model of each task.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The points of all tasks, with rows in any order. A TaskSet is passed alone, because it
            holds y and the task ids.
        y : (N,) array
            The count of each row, at least 0.
        task : (N,) ids, optional
            The task of each row: strings, integers, dates, tuples; the name of a column of X; None
            means one task.
        side_info : table keyed by task id, optional
            One raw row for each task (see `TaskTable`), or a `TaskSet` of conditioning points. Ids
            without rows in X are kept as tasks without points.
        exposure : (N,) array, optional
            What a count is proportional to: days, population, visits. Above 0. Give it to `adapt`
            and `predict` as well: to leave it out there is an error.
        sample_weight : (N,) array, optional
            How often each row counts: 2 counts as two equal rows, 0 as no row.

        Returns
        -------
        self
        """
        weight = weighted_by(sample_weight, exposure, "exposure")
        with writing(self):
            super().fit(X, y, task=task, side_info=side_info, sample_weight=weight)
            if exposure is not None or _exposure_of(X) is not None:
                info = self._model.info | {"exposure": True}
                self._model = self._model._replace(info=info)
        return self

    def adapt(
        self, X: Matrix | None = None, y: Values = None, *, task: Ids = None,
        side_info: SideInfo = None,
        exposure: Values = None, sample_weight: Values = None,
    ) -> TaskModel | TaskModels:  # fmt: skip
        """Return models of new tasks from a few points, or from none. The learner does not change.

        The models that it returns predict counts for an exposure of 1; their method
        `predict_distribution` takes an exposure.

        Parameters
        ----------
        X : (n, d) array, DataFrame or TaskSet, optional
            The points. Without any, the model has the starting coefficients tau(s).
        y : (n,) array, optional
            Their counts.
        task : (n,) ids, optional
            The task of each point. None means that all points belong to one task.
        side_info : row or table, optional
            For one task its row (a dict of columns, a Series, a sequence); with `task` a table
            keyed by task id, as in `fit`.
        exposure : (n,) array, optional
            As in `fit`.
        sample_weight : (n,) array, optional
            How often each point counts: 2 is the point twice, 0 is no point.
        """
        weight = self._weights(X, exposure, sample_weight)
        return super().adapt(X, y, task=task, side_info=side_info, sample_weight=weight)

    def update(
        self, X: Matrix, y: Values = None, *, task: Ids = None, side_info: SideInfo = None,
        exposure: Values = None, sample_weight: Values = None,
    ) -> Self:  # fmt: skip
        """Add points to known tasks and enrol new ones; the map tau stays as it is.

        The result equals adapting on all points at once: the model keeps the rows of its tasks.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            Further points of known tasks, and points of new ones.
        y : (N,) array
            The count of each row.
        task : (N,) ids, optional
            The task of each row: strings, integers, dates, tuples; the name of a column of X; None
            means one task.
        side_info : table keyed by task id, optional
            One raw row for each new task, as in `fit`.
        exposure : (N,) array, optional
            As in `fit`.
        sample_weight : (N,) array, optional
            How often each row counts: 2 counts as two equal rows, 0 as no row.
        """
        weight = self._weights(X, exposure, sample_weight)
        return super().update(X, y, task=task, side_info=side_info, sample_weight=weight)

    def partial_fit(
        self, X: Matrix, y: Values = None, *, task: Ids = None, side_info: SideInfo = None,
        exposure: Values = None, sample_weight: Values = None,
    ) -> Self:  # fmt: skip
        """Add further tasks, each once and with all its rows; the prior is learned when first used.

        Calls only gather rows, so that any chunks give what one `fit` gives, to rounding. A task
        that is known already is an error that names `update`.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The points of all tasks, with rows in any order. A TaskSet is passed alone, because it
            holds y and the task ids.
        y : (N,) array
            The count of each row.
        task : (N,) ids, optional
            The task of each row: strings, integers, dates, tuples; the name of a column of X; None
            means one task.
        side_info : table keyed by task id, optional
            One raw row for each task (see `TaskTable`), or a `TaskSet` of conditioning points. Ids
            without rows in X are kept as tasks without points.
        exposure : (N,) array, optional
            As in `fit`: in all calls, or in none.
        sample_weight : (N,) array, optional
            How often each row counts: 2 counts as two equal rows, 0 as no row.

        Returns
        -------
        self
        """
        with writing(self):
            weight = self._weights(X, exposure, sample_weight)
            model = gather_more(self, self._model, X, y, task, side_info, weight)
            if exposure is not None or _exposure_of(X) is not None:
                model = model._replace(info=model.info | {"exposure": True})
            self._model = model
        return self

    def _weights(self, X: Matrix, exposure: Any, sample_weight: Values) -> Any:
        if X is not None and _exposure_of(X) is None:
            require_exposure(self._model, exposure)
        return weighted_by(sample_weight, exposure, "exposure")

    def predict(
        self, X: Matrix, *, task: Ids = None, side_info: SideInfo = None, exposure: Values = None,
        return_std: bool = False,
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Predict the mean counts of rows, each by the model of its task.

        A known task has its own model. A new task, or a known task without points, is predicted
        from its side information, given here or to `fit`. Without side information this raises an
        error, or with missing_side='mean' predicts an average task. The rows of X are never used as
        conditioning points. Where a task is hardly known its mean count is much above its median,
        see `predict_distribution`.

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
        exposure : (N,) array, optional
            What the counts are proportional to (see `fit`). A model that was fitted with an
            exposure needs one; `exposure=1` gives counts in one unit of it.
        return_std : bool
            Whether to return also the standard deviation (N,) of the counts.
        """
        found = self.predict_distribution(X, task=task, side_info=side_info, exposure=exposure)
        return (found.mean, found.std) if return_std else found.mean

    def predict_distribution(
        self, X: Matrix, *, task: Ids = None, side_info: SideInfo = None, exposure: Values = None
    ) -> CountDistribution:
        """Return the distributions of the counts of rows: mean, median, probabilities, intervals.

        They include what is not known about the weights of a task.

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
        exposure : (N,) array, optional
            What the counts are proportional to (see `fit`). A model that was fitted with an
            exposure needs one; `exposure=1` gives counts in one unit of it.

        Examples
        --------
        >>> import condmeta as cm
        >>> X, y, task = [[0.0], [1.0]] * 3, [0, 2, 1, 3, 0, 1], [0, 0, 1, 1, 2, 2]
        >>> model = cm.ConditionalCount(metric="identity").fit(X, y, task=task)
        >>> counts = model.predict_distribution([[1.0]], task=[0])
        >>> counts.median, counts.proba(2).round(1)
        (array([2.]), array([[0.2, 0.3, 0.2]]))
        """
        fitted, rows = self._read_rows(X, task, side_info)
        exposure = _exposure_of(X) if exposure is None else exposure
        require_exposure(fitted, exposure)
        found = fitted.count_distribution(rows, jobs_of(self))
        if exposure is None:
            return found
        return found.with_exposure(read_exposure(exposure, len(found.location)))

    def score(
        self, X: Matrix, y: Values = None, *, task: Ids = None, side_info: SideInfo = None,
        exposure: Values = None, sample_weight: Values = None,
    ) -> float:  # fmt: skip
        """Return the share of the Poisson deviance that the predictions explain, D^2.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The rows to predict.
        y : (N,) array, optional
            The true targets; a TaskSet carries its own.
        task : (N,) ids, optional
            The task of each row, or the name of a column of X. If None, all rows belong to one
            task: with `side_info`, a new task; without, the only task of the fit.
        side_info : row or table, optional
            Side information of new tasks: a row for one task, a table keyed by task id for several.
            Known tasks do not need it.
        exposure : (N,) array, optional
            As in `predict`.
        sample_weight : (N,) array, optional
            Weights of the rows in the mean.
        """
        from sklearn.metrics import d2_tweedie_score  # slow to import, and fit does not need it

        predicted = self.predict(X, task=task, side_info=side_info, exposure=exposure)
        predicted = np.maximum(predicted, np.finfo(float).tiny)
        true = target_of(X, y)
        return d2_tweedie_score(true, predicted, sample_weight=sample_weight, power=1)

    summary = summary

    def _learn(self, data: Training) -> Learned:
        alpha = self.alpha
        if alpha != "auto":
            alpha = max(float(alpha), NegativeBinomial.poisson(data.rows))
        given = None if alpha == "auto" else alpha
        found = learn_row_prior(self, data, NegativeBinomial, given)
        tau, factor, alpha, info, spread, cold_spread = found
        info |= {"cold_start_": "prior" if cold_spread is None else "pooled"}
        return Learned(tau, Counts(factor, alpha, spread, cold_spread), info)


def _exposure_of(X: Any) -> np.ndarray | None:
    """Return the exposures that a TaskSet holds, in the order of the input rows; else None."""
    if not isinstance(X, TaskSet) or X.weight is None or X.weight.ndim == 1:
        return None
    return X.restore_order(row_sizes(X.weight, len(X.X)))
