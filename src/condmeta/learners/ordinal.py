"""The learned prior over task weights for ordered classes, as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.kept_rows import KeptRows
from condmeta.inner.likelihoods import Ordered
from condmeta.inner.row_posterior import Ordinal
from condmeta.learners.attributes import from_info
from condmeta.learners.gathered import gather_more
from condmeta.learners.labels import two_classes
from condmeta.learners.learner import Learner
from condmeta.learners.model_file import storable
from condmeta.learners.parameters import NON_NEGATIVE, one_of, or_word
from condmeta.learners.row_prior import learn_row_prior
from condmeta.learners.row_summary import summary
from condmeta.learners.shared_columns import is_random
from condmeta.learners.targets import Classifier
from condmeta.learners.training import Learned, Training
from condmeta.learners.writing import writing
from condmeta.meta.prior import METRICS
from condmeta.persistence.fields import InvalidFieldError, floats
from condmeta.tasks.categories import ordered_categories
from condmeta.typing import (
    Conditioning,
    FeatureMapLike,
    Ids,
    Labels,
    Matrix,
    Metric,
    MissingSide,
    RandomColumns,
    SideInfo,
    Values,
)

TINY = 1e-300  # a probability of which the logarithm is finite


def _check_classes(learner: Any, fitted: Any) -> None:
    predictor = fitted.predictor
    if learner.classes is not None and _different(learner.classes) is None:
        raise InvalidFieldError("params['classes']", "must hold two or more different labels")
    if len(predictor.inner.gaps) != len(predictor.classes) - 2:
        raise InvalidFieldError("fitted.predictor.inner.gaps", "must lie between all classes")


def _different(classes: Any) -> np.ndarray | None:
    """Return two or more different labels as an array (K,); None if they are something else."""
    try:
        found = np.asarray(classes)
        good = found.ndim == 1 and 2 <= len(found) == len(set(found.tolist()))
    except (TypeError, ValueError):  # lists in a list
        return None
    return found if good else None


@storable(inner=Ordinal, state=KeptRows, info={"H_": floats("w w")}, also=_check_classes)
@dataclass(eq=False, repr=False)
class ConditionalOrdinal(Classifier, Learner):
    r"""Fit an ordinal regression to each task, from all tasks together and their side information.

    With phi = (Phi(s), 1) and W = (M, b), the weights and labels of task t are

        w_t ~ N(W phi_t, H),   P(y_ti > class k) = 1 / (1 + exp(c_k - <x_ti, w_t>)),

    and W, H and the cuts c_0 < c_1 < ... maximise a variational bound of the likelihood of all
    tasks: proportional odds, with coefficients of each task and cuts that all tasks share. A task's
    model is the posterior mean of w given its points; without points it is W phi = tau(s).
    Probabilities average over the posterior of w. The slopes in b have the weak prior of
    `ConditionalLogistic`.

    Parameters
    ----------
    feature_map : "auto", None, a map, a transformer, or a list of them
        Phi: how side information becomes features. "auto" encodes the columns of the side table.
        With None, or without a side table, all tasks start from the same coefficients.
    classes : sequence of labels, optional
        The classes from the lowest to the highest. None: numbers are ordered by size, and a pandas
        or polars column of ordered categories by these; texts need it.
    metric : "auto", "identity", "diagonal" or "full"
        The shape of the covariance H: a multiple of the identity, diagonal, or unrestricted.
    kappa : "auto" or float in [0, inf]
        Ridge penalty on the map M, which weighs as much as kappa tasks. With infinity, M is zero
        and side information is not used; 0 is maximum likelihood, without a prior of b.
    random : "all", "intercept" or list of columns
        Which coefficients may differ between tasks. "intercept": the intercept alone, (1 | g) of
        lme4; a list of names or positions: these columns, and the intercept if there is one. All
        other coefficients are the same for all tasks, do not depend on side information, and are
        not penalised. Settings are then not averaged.
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
        Chosen by the log loss on held-out tasks: each half of the points of such a task is
        predicted without points, and after adapting to 1, 3 and all points of the other half. If
        fewer than 30 tasks have points to predict, the evidence (marginal likelihood) decides
        instead.
    choice_ : list of dict
        The candidates that were compared to the end, with their scores, the best first, and their
        weights in the average.
    cuts_ : (K - 1,) array
        The cuts between the classes on the scale of <x, w>; the first is 0.
    H_ : (width, width) array
        Covariance of task weights around tau, in the learner's units.
    n_iter_ : int
    objective_ : float
        The bound of the log likelihood, less the penalty on the map.
    classes_ : (K,) array
        The classes, from the lowest to the highest.
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
    >>> latent = 2 * s[:, None] * X[:, :, 0] + rng.logistic(size=(80, 8))
    >>> order = ["bad", "fair", "good"]
    >>> y = np.array(order)[np.digitize(latent, [-1, 1])]
    >>> model = cm.ConditionalOrdinal(classes=order).fit(
    ...     X.reshape(-1, 1), y.ravel(), task=np.repeat(np.arange(80), 8),
    ...     side_info=cm.TaskTable(s[:, None], ids=range(80)),
    ... )
    >>> new = model.adapt(side_info=[1.0])  # no points: tau(s)
    >>> new.predict([[2.0], [-2.0]]).tolist(), new.predict_proba([[0.0]]).round(1)
    (['good', 'bad'], array([[0.3, 0.4, 0.3]]))
    """

    feature_map: FeatureMapLike = "auto"
    _: KW_ONLY
    classes: Labels = None
    metric: Metric = "auto"
    kappa: float | Literal["auto"] = "auto"
    random: RandomColumns = "all"
    conditioning: Conditioning = "shared"
    missing_side: MissingSide = "error"
    tol: float = 1e-2
    max_iter: int = 300

    loss = "logistic"

    _rules = {
        "metric": or_word("auto", one_of(METRICS)),
        "kappa": or_word("auto", NON_NEGATIVE),
        "random": (is_random, "'all', 'intercept' or a list of columns"),
    }
    metric_, kappa_, choice_ = from_info(), from_info(), from_info()
    H_, n_iter_, objective_ = from_info(), from_info(), from_info()

    @property
    def cuts_(self) -> np.ndarray:
        """The cuts (K - 1,) between the classes."""
        return self.fitted_.inner.likelihood.cuts

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags

    def _given_classes(self, y: Any) -> np.ndarray | None:
        """Return the order of the classes: the parameter, or that of ordered categories."""
        return ordered_categories(y) if self.classes is None else self._order(self.classes)

    def _order(self, classes: Any) -> np.ndarray:
        """Return the classes that the user gave, or raise."""
        found = _different(classes)
        if found is None:
            raise DataError(
                "The 'classes' parameter of ConditionalOrdinal must be two or more different "
                f"labels, from the lowest to the highest, or None. Got {classes!r} instead."
            )
        return found

    def _classes_of(self, y: np.ndarray) -> np.ndarray:
        """Return numbers in their order; the order of texts has to be given."""
        classes = np.unique(y)
        if len(classes) <= 2:
            return two_classes(y)
        if classes.dtype.kind not in "biuf" and not all(
            isinstance(label, int | float | np.number) for label in classes.tolist()
        ):
            raise DataError(
                f"y holds texts, which have no order ({str(classes[:3].tolist())[1:-1]}, ...): "
                "give classes=, from the lowest to the highest, or a column of ordered categories."
            )
        return classes

    def partial_fit(
        self, X: Matrix, y: Values = None, *, task: Ids = None, side_info: SideInfo = None,
        sample_weight: Values = None, classes: Labels = None,
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
            The class of each row.
        task : (N,) ids, optional
            The task of each row: strings, integers, dates, tuples; the name of a column of X; None
            means one task.
        side_info : table keyed by task id, optional
            One raw row for each task (see `TaskTable`), or a `TaskSet` of conditioning points. Ids
            without rows in X are kept as tasks without points.
        sample_weight : (N,) array, optional
            How often each row counts: 2 counts as two equal rows, 0 as no row.
        classes : (K,) array, optional
            In the first call, all classes in their order, if its rows may not hold them.

        Returns
        -------
        self
        """
        classes = self._given_classes(y) if classes is None else self._order(classes)
        with writing(self):
            call = X, y, task, side_info, sample_weight
            self._model = gather_more(self, self._model, *call, classes)
        return self

    summary = summary

    def _learn(self, data: Training) -> Learned:
        tau, factor, gaps, info, spread, _ = learn_row_prior(self, data, Ordered)
        return Learned(tau, Ordinal(factor, gaps, spread), info)

    def decision_function(
        self, X: Matrix, *, task: Ids = None, side_info: SideInfo = None
    ) -> np.ndarray:
        """Return the log odds of the second of two classes (N,), or log probabilities (N, K).

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
        """
        if len(self.classes_) == 2:
            return super().decision_function(X, task=task, side_info=side_info)
        chances = self.predict_proba(X, task=task, side_info=side_info)
        return np.log(np.maximum(chances, TINY))

    def predict_proba(
        self, X: Matrix, *, task: Ids = None, side_info: SideInfo = None
    ) -> np.ndarray:
        """Return the probabilities of the classes (N, K), in the order of `classes_`.

        They average over the posterior of the task's weights; for a task without points, over
        N(tau, H). The most probable class is the one that `predict` returns.

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
        """
        return super().predict_proba(X, task=task, side_info=side_info)
