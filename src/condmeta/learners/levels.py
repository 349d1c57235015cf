"""The learned prior of tasks in groups, such as stores in regions, as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.groups import require_parts
from condmeta.fitted.scales import Scales
from condmeta.fitted.tables import group_table
from condmeta.inner.nested import NestedGaussian
from condmeta.inner.posterior import Gaussian
from condmeta.learners.attributes import from_info
from condmeta.learners.levels_learning import STEPS
from condmeta.learners.model_file import storable
from condmeta.learners.parameters import one_of
from condmeta.learners.ridge import ConditionalRidge
from condmeta.learners.ridge_learning import learn_ridge
from condmeta.learners.training import Learned, Training
from condmeta.meta.task_statistics import TaskStatistics
from condmeta.persistence.fields import floats, maybe, number
from condmeta.typing import ColdStart, Drift, Frame


@storable(
    inner=(Gaussian, NestedGaussian),
    state=TaskStatistics,
    info={"H_": maybe(floats("w w")), "s2_": number(above=0, infinite=True)},
)
@dataclass(eq=False, repr=False)
class ConditionalLevels(ConditionalRidge):
    r"""Fit a linear model to each task of nested groups, such as stores in regions in countries.

    With phi = (Phi(s), 1) and W = (M, b), the weights and labels of task t are

        w_t = W phi_t + u_region + v_t,   u ~ N(0, H_region),  v ~ N(0, H),
        y_ti ~ N(<x_ti, w_t>, s2_t),

    and W, all H and the noise maximise the likelihood of all tasks. A task learns from the other
    tasks of its region. A new store of a known region starts at tau(s) + E u_region, a store of a
    new region at tau(s) = W phi. It is lme4's ``(1 + x | region/store)``. If groups do not differ,
    it equals `ConditionalRidge`.

    Task ids have a part for each level, the largest group first: ``task=["region", "store"]`` names
    columns of a frame X, and arrays have tuples (region, store). The id of a store includes its
    region, so names of stores only have to differ within a region. Side information has one row for
    each task; a column that is constant within regions describes regions.

    Parameters
    ----------
    feature_map : "auto", None, a map, a transformer, or a list of them
        Phi: how side information becomes features. "auto" encodes the columns of the side table.
        With None, or without a side table, all tasks start from the same coefficients.
    metric : "auto", "identity", "diagonal" or "full"
        The shape of the covariance H: a multiple of the identity, diagonal, or unrestricted. "auto"
        chooses a shape for each level, or leaves a level out if its groups do not differ. Another
        value applies to all levels.
    noise : "auto", "shared" or "per_task"
        Whether all tasks share one noise variance s2, or each task has its own.
    kappa : "auto" or float in [0, inf]
        Ridge penalty on the map M, which weighs as much as kappa tasks. With infinity, M is zero
        and side information is not used.
    random : "auto", "all", "intercept" or list of columns
        Which coefficients may differ between tasks and between groups. "intercept": the intercept
        alone, lme4's (1 | region/store); a list of names or positions: these columns, and the
        intercept if there is one. All other coefficients are the same for all tasks, do not depend
        on side information, and are not penalised.
    drift : None
        Not available for tasks in groups: `fit` raises an error if it gets times.
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
    context : False
        Not available for tasks in groups (see `ConditionalRidge`).
    cold_start : "prior"
        A task without points starts at the coefficients that its groups and its side information
        give.
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
        hashes. "auto" transforms nothing in `partial_fit`, and with fewer than 20 tasks, more than
        64 columns, a base, a feature map of points or `random` columns.
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
    levels_ : tuple of str
        The shape of H of each level above the tasks, the top first; "none" if its groups do not
        differ.
    metric_, noise_, kappa_ : the other settings, chosen as by `ConditionalRidge`
    H_levels_ : (m, width, width) array
        H of each level, the top first, tasks last, in the learner's units.
    H_ : (width, width) array
        Their sum: the covariance of weights around tau of a task in a new group.
    s2_ : float
        Variance of the noise, in the units of y; infinite if its square is too large for a float.
    objective_ : float
        The log likelihood of all labels, less the penalty (kappa/2) tr(M^T H^-1 M) on the map. With
        `kappa=0` it is the `logLik` of lme4 with REML = FALSE.
    choice_ : list of dict
        The candidates of `ConditionalRidge` that were compared to the end.
    n_iter_ : int
    M_, b_ : (width, k) and (width,) arrays
        The map tau = M Phi + b, in the learner's units.

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> rng = np.random.default_rng(0)
    >>> region = np.repeat(np.arange(30), 40)  # 30 regions of 8 stores of 5 rows
    >>> store = np.tile(np.repeat(np.arange(8), 5), 30)
    >>> level = rng.normal(size=30)[region] + 0.3 * rng.normal(size=240)[8 * region + store]
    >>> X = rng.normal(size=(1200, 1))
    >>> y = level + X[:, 0] + rng.normal(size=1200)
    >>> ids = list(zip(region.tolist(), store.tolist()))
    >>> model = cm.ConditionalLevels().fit(X, y, task=ids)
    >>> new = model.predict([[0.0], [0.0]], task=[(3, "new store"), (4, "new store")])
    >>> bool(abs(new - y.reshape(30, 40).mean(axis=1)[[3, 4]]).max() < 0.3)
    True
    """

    _: KW_ONLY
    context: bool | Literal["auto"] = False
    cold_start: ColdStart = "prior"
    drift: Drift = None

    _rules = ConditionalRidge._rules | {
        "context": one_of((False,)),
        "cold_start": one_of(("prior",)),
        "drift": (lambda value: value is None, "None"),
    }
    _drifts = False
    _side_noise = False
    _heavy_tails = False
    levels_ = from_info()

    @property
    def H_levels_(self) -> np.ndarray:  # noqa: N802 - the model's name
        """H (m, width, width) of each level, the top first, tasks last, in the learner's units."""
        factors = getattr(self.fitted_.inner, "factors", None)
        if factors is not None:
            return factors @ np.swapaxes(factors, 1, 2)
        return np.concatenate([np.zeros((len(self.levels_), *self.H_.shape)), self.H_[None]])

    def group_frame(self, level: int = -1) -> Frame:
        """Return what the tasks of each group have in common, as a table in the user's units.

        One row for each group and coefficient: `effect`, the mean of u given all points, and `std`,
        its standard deviation. (lme4 calls the effects `ranef`.)

        Parameters
        ----------
        level : int
            The level above the tasks: 0 is the top, -1 the level of the smallest groups.
        """
        fitted = self.fitted_
        if fitted.groups is None:
            raise DataError(
                "There are no group effects: the groups do not differ, or the model was saved "
                "without tasks."
            )
        return group_table(fitted, level)

    def _keeps_sparse(self, n_columns: int) -> bool:
        return False

    def _kind_of_statistics(self, scales: Scales) -> type:
        return TaskStatistics

    def _check_ids(self, ids: Any) -> None:
        require_parts(ids.tolist())

    def _learn(self, data: Training) -> Learned:
        return learn_ridge(self, data, STEPS)
