"""Shrink estimates that others made: a prior from coefficients and their covariances, no rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import product
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from condmeta.blas_threads import limit_threads
from condmeta.errors import DataError
from condmeta.fitted.summary import Summary
from condmeta.fitted.task_model import TaskModel, TaskModels
from condmeta.fitted.tau import LinearTau
from condmeta.inner.estimates import GaussianOfEstimates
from condmeta.inner.squared import SquaredState
from condmeta.learners.attributes import from_info
from condmeta.learners.inputs import inputs_of
from condmeta.learners.learn import learn
from condmeta.learners.learner import Learner
from condmeta.learners.model_file import storable
from condmeta.learners.parameters import NON_NEGATIVE, check_learner, jobs_of, one_of, or_word
from condmeta.learners.training import Learned, Training
from condmeta.meta.ascent import Stopping
from condmeta.meta.map_covariance import best_map
from condmeta.meta.prior import METRICS
from condmeta.meta.ridge import learn_prior
from condmeta.meta.ridge_choice import KAPPAS, choose_by_evidence
from condmeta.meta.ridge_judge import RidgeSetting
from condmeta.meta.rotation import Rotation
from condmeta.meta.selection import Selection
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.frames import is_frame
from condmeta.tasks.messages import name_task
from condmeta.tasks.side_table import read_side_table
from condmeta.typing import FeatureMapLike, Ids, Metric, MissingSide, Numbers, SideInfo, Table

NEW = "(new)"  # the id of a task that `adapt` is given without one


def shrink(
    estimates: Numbers | Table | Mapping[str, Any], covariances: Numbers | None = None, *,
    std_errors: Numbers | Table | Mapping[str, Any] | None = None, task: Ids = None,
    side_info: SideInfo = None, feature_map: FeatureMapLike = "auto", metric: Metric = "auto",
    kappa: float | Literal["auto"] = "auto", missing_side: MissingSide = "error",
) -> Shrinkage:  # fmt: skip
    r"""Learn tau(s) from coefficients that were estimated task by task, and shrink them towards it.

    With estimates b_t ~ N(w_t, C_t) and coefficients w_t ~ N(W phi_t, H), phi_t = (Phi(s_t), 1), W
    and H maximise the likelihood of the estimates; the shrunken coefficients are the mean of w_t
    given b_t. No row of the original data is needed: one regression per customer, or the studies of
    a meta-analysis, are enough.

    Parameters
    ----------
    estimates : table keyed by task id, dict of id -> row, or TaskTable
        One row for each task, one column for each coefficient. NaN: not estimated.
    covariances : (T, d, d) array, or dict of id -> (d, d), optional
        The covariance C_t of each task's estimates, in the order of the estimates.
    std_errors : like `estimates`, optional
        Standard errors, in place of covariances, if estimates are independent of each other. The
        columns are named as those of the estimates; a single one may have another name.
    task : name of a column, or several names, optional
        The column with the task ids, in tables that are not keyed by their index.
    side_info : table keyed by task id, optional
        One row of facts for each task. A task without an estimate gets the coefficients tau(s).
    feature_map : as for `ConditionalRidge`
    metric : "auto", "identity", "diagonal" or "full"
        The shape of the covariance H: a multiple of the identity, diagonal, or unrestricted.
    kappa : "auto" or float in [0, inf]
        Ridge penalty on the map, which weighs as much as kappa tasks; 0 is maximum likelihood.
        "auto" settings are chosen by the evidence (marginal likelihood).
    missing_side : "error" or "mean"

    Returns
    -------
    Shrinkage
        With `coef_frame(std=True)`, `summary()`, `theta_for(side)`, `adapt(...)`, `update(...)`,
        `save(path)`.

    Examples
    --------
    Three trials of a vaccine, and a fourth one to come:

    >>> import condmeta as cm
    >>> effects, errors = {"A": -0.9, "B": -1.6, "C": -0.4}, {"A": 0.6, "B": 0.4, "C": 0.2}
    >>> result = cm.shrink(effects, std_errors=errors, kappa=0.0)
    >>> result.coef_frame()["adapted"].round(2).tolist()
    [-0.88, -1.26, -0.49]
    >>> round(float(result.adapt([-0.2], std_errors=[0.5]).coef_[0]), 2)
    -0.6
    """
    learner = Shrinkage(feature_map, metric=metric, kappa=kappa, missing_side=missing_side)
    return learner.fit(
        estimates, covariances, std_errors=std_errors, task=task, side_info=side_info
    )


@storable
@dataclass(eq=False, repr=False)
class Shrinkage(Learner):
    """Coefficients shrunken towards tau(s): the result of `condmeta.shrink`.

    Attributes
    ----------
    metric_, kappa_ : the settings
    choice_ : list of dict
        The settings that were compared, the best first.
    H_ : (d, d) array
        Covariance of coefficients around tau, in the learner's units.
    objective_ : float
        The log likelihood of the estimates, less the penalty on the map.

    Examples
    --------
    >>> import condmeta as cm
    >>> result = cm.Shrinkage(kappa=0.0).fit({"A": 1.0, "B": 3.0}, std_errors={"A": 1.0, "B": 1.0})
    >>> result.theta_mean_.round(6).tolist()
    [2.0]
    """

    feature_map: FeatureMapLike = "auto"
    _: KW_ONLY
    metric: Metric = "auto"
    kappa: float | Literal["auto"] = "auto"
    missing_side: MissingSide = "error"
    fit_intercept: bool = False
    tol: float = 1e-8
    max_iter: int = 300

    _rules = {
        "metric": or_word("auto", one_of(METRICS)),
        "kappa": or_word("auto", NON_NEGATIVE),
    }
    metric_, kappa_, choice_ = from_info(), from_info(), from_info()
    H_, objective_ = from_info(), from_info()

    def fit(
        self,
        estimates: Numbers | Table | Mapping[str, Any],
        covariances: Numbers | None = None,
        *,
        std_errors: Numbers | Table | Mapping[str, Any] | None = None,
        task: Ids = None,
        side_info: SideInfo = None,
    ) -> Shrinkage:
        """Learn the prior; see `condmeta.shrink`."""
        given = _read(estimates, covariances, std_errors, task, side_info)
        inputs = inputs_of(self, given.tasks)
        columns = inputs.columns._replace(task_name=given.task_name, backend=given.backend)
        check_learner(self)
        self._model = learn(self, inputs._replace(columns=columns))
        return self

    def adapt(
        self,
        estimates: Numbers | Table | Mapping[str, Any] | None = None,
        covariances: Numbers | None = None,
        *,
        std_errors: Numbers | Table | Mapping[str, Any] | None = None,
        task: Ids = None,
        side_info: SideInfo = None,
    ) -> TaskModel | TaskModels:
        """Shrink the estimates of new tasks.

        `estimates` (d,) with `covariances` (d, d) or `std_errors` (d,) and a row of side
        information are one task, and give a `TaskModel`; a table or dict keyed by task id, as in
        `fit`, gives `TaskModels`. Without estimates the coefficients are tau(s).
        """
        if estimates is None:
            return super().adapt(side_info=side_info)
        names = self._columns.names
        if isinstance(estimates, (Mapping, TaskTable)) or is_frame(estimates):
            return super().adapt(
                _read(estimates, covariances, std_errors, task, side_info, names).tasks
            )
        row = TaskTable(np.asarray(estimates, float)[None], [NEW], names)
        if std_errors is not None:
            std_errors = TaskTable(np.asarray(std_errors, float)[None], [NEW], names)
        if covariances is not None:
            covariances = np.asarray(covariances, float)[None]
        side_info = None if side_info is None else {NEW: side_info}
        return super().adapt(_read(row, covariances, std_errors, None, side_info).tasks).at(0)

    def update(
        self,
        estimates: Numbers | Table | Mapping[str, Any],
        covariances: Numbers | None = None,
        *,
        std_errors: Numbers | Table | Mapping[str, Any] | None = None,
        task: Ids = None,
        side_info: SideInfo = None,
    ) -> Self:
        """Add independent estimates of known tasks, and add new tasks; tau does not change."""
        names = self._columns.names
        return super().update(
            _read(estimates, covariances, std_errors, task, side_info, names).tasks
        )

    def summary(self, level: float = 0.95, robust: bool | None = None) -> Summary:
        """Return the effects of side columns with intervals; see `ConditionalRidge.summary`."""
        return Summary.of(self.fitted_, level, robust, "Shrunken estimates")

    def _learn(self, data: Training) -> Learned:
        """Choose settings by the evidence, and learn the prior with noise 1."""
        stats, rotation = SquaredState.of(*data.rows), Rotation.learn(data.Phi)
        Z, d = rotation.apply(data.Phi), data.rows.X.shape[1]
        metrics = ("diagonal", "full")[: min(d, 2)] if self.metric == "auto" else (self.metric,)
        kappas = KAPPAS if self.kappa == "auto" else (float(self.kappa),)
        kappas = kappas if Z.shape[1] else (np.inf,)
        candidates = [RidgeSetting(*parts) for parts in product(metrics, ("shared",), kappas)]
        with limit_threads(1):  # the matrices are small: threads of BLAS would only wait
            choice = Selection.given(candidates[0])
            if len(candidates) > 1:
                choice = choose_by_evidence(stats, Z, candidates, jobs_of(self), s2=1.0)
            metric, _, kappa = choice.chosen
            stopping = Stopping(self.tol, self.max_iter)
            learned = learn_prior(
                stats, Z, metric, kappa, choice.start, noise=1.0, stopping=stopping,
                n_jobs=jobs_of(self),
            )  # fmt: skip
        prior = learned.prior
        # Where H is close to zero the ascent hardly moves W.
        W = best_map(stats, Z, prior.W, prior.L, np.ones(len(Z)), kappa)
        info = {
            "metric_": metric,
            "kappa_": kappa,
            "choice_": choice.rows(),
            "H_": prior.H,
            "objective_": learned.objective + _log_volume(data.tasks),
        }
        tau = LinearTau(rotation.undo(W), data.Phi.mean(axis=0))
        return Learned(tau, GaussianOfEstimates(prior.L, 1.0, False), info)


class Estimates(NamedTuple):
    """Estimates as tasks, the name of the task column, and the kind of table they came in."""

    tasks: TaskSet
    task_name: Any
    backend: str | None


def _read(
    estimates: Any,
    covariances: Any,
    std_errors: Any,
    task: Ids,
    side_info: SideInfo,
    names: Any = None,
) -> Estimates:
    """Read estimates and their covariances; `names` are the coefficients of a fitted model."""
    table = _keyed(estimates, task, "estimates")
    table = table if names is None else table.align(names)
    if side_info is not None:
        side_info = read_side_table(side_info, task_name=task)
    if std_errors is not None:
        std_errors = _named_as(table, _keyed(std_errors, task, "std_errors"))
    tasks = _whitened(table, _covariances(table, covariances, std_errors), side_info)
    name = task if task is not None else getattr(getattr(estimates, "index", None), "name", None)
    return Estimates(tasks, name, table.backend)


def _keyed(values: Any, task: Ids, argument: str) -> TaskTable:
    """Read a table with a row for each task; a Series is a table of one column."""
    if hasattr(values, "to_frame") and not is_frame(values):
        values = values.to_frame("estimate")
    if not (isinstance(values, (Mapping, TaskTable)) or is_frame(values)):
        raise DataError(
            f"{argument} must be keyed by task id: a table or a Series with the ids as its index, "
            f"a dict of id -> estimates, or TaskTable(values, ids). Got a {type(values).__name__}."
        )
    index = getattr(values, "index", None)
    bare = index is None or (type(index).__name__ == "RangeIndex" and index.name is None)
    if task is None and bare and is_frame(values):
        raise DataError(
            f"{argument} has no task ids: name their column in task=, or set the index of the "
            "table to them."
        )
    return read_side_table(values, side_key=task)


def _named_as(estimates: TaskTable, errors: TaskTable) -> TaskTable:
    """Return standard errors with the columns of the estimates, in their order."""
    if len(estimates.columns) == len(errors.columns) == 1:
        return TaskTable(errors.data[errors.columns[0]][:, None], errors.ids, estimates.columns)
    if set(errors.columns) != set(estimates.columns):
        raise DataError(
            f"std_errors has the columns {', '.join(map(repr, errors.columns))}, and the estimates "
            f"have {', '.join(map(repr, estimates.columns))}: give them the same names."
        )
    return errors.align(estimates.columns)


def _covariances(table: TaskTable, covariances: Any, std_errors: TaskTable | None) -> np.ndarray:
    """Return the covariances (T, d, d) of the estimates in a table."""
    T, d = table.n_tasks, len(table.columns)
    if not T:
        raise DataError("There are no tasks: the table of estimates has no rows.")
    if (covariances is None) == (std_errors is None):
        raise DataError("Give either covariances= or std_errors= of the estimates.")
    if std_errors is not None:
        errors = std_errors.take(table.ids).numeric(allow_gaps=True)
        negative = np.argwhere(errors < 0)
        if len(negative):
            t, j = negative[0]
            raise DataError(
                f"{name_task(table.ids[t])} has a standard error of {errors[t, j]:g} for "
                f"{table.columns[j]!r}: it must be positive."
            )
        return errors[:, :, None] ** 2 * np.eye(d)
    if isinstance(covariances, Mapping):
        lacking = [task for task in table.ids.tolist() if task not in covariances]
        if lacking:
            raise DataError(f"{name_task(lacking[0])} has an estimate, but no covariance.")
        covariances = [covariances[task] for task in table.ids.tolist()]
    try:
        covariances = np.asarray(covariances, float)
    except (TypeError, ValueError):
        raise DataError(f"covariances must hold a ({d}, {d}) matrix for each task.") from None
    if covariances.shape != (T, d, d):
        raise DataError(
            f"covariances must have the shape {(T, d, d)}: {T} tasks, {d} coefficients. Got "
            f"{covariances.shape}. If you have variances, give their square roots as std_errors=."
        )
    return covariances


def _whitened(table: TaskTable, covariances: np.ndarray, side_info: SideInfo) -> TaskSet:
    """Return tasks whose rows carry the estimates: X^T X = C^-1, X^T y = C^-1 b, noise 1.

    With C = R R^T, the rows are R^-1 and the labels R^-1 b. Coefficients that are NaN have no row.
    """
    b = table.numeric(allow_gaps=True)
    rows, labels, counts = [], [], []
    for task, estimate, covariance in zip(table.ids, b, covariances, strict=True):
        known = np.flatnonzero(~np.isnan(estimate))
        try:
            root = np.linalg.cholesky(covariance[np.ix_(known, known)])
        except np.linalg.LinAlgError:
            root = np.full((len(known), len(known)), np.nan)
        if not np.isfinite(root).all() or not np.allclose(covariance, covariance.T, equal_nan=True):
            raise DataError(
                f"{name_task(task)} has a covariance that is not symmetric and positive definite. "
                "Standard errors must be positive; leave an unknown estimate out as NaN."
            )
        part = np.zeros((len(known), b.shape[1]))
        part[:, known] = np.linalg.solve(root, np.eye(len(known)))
        rows.append(part)
        labels.append(np.linalg.solve(root, estimate[known]))
        counts.append(len(known))
    ids = np.repeat(table.ids, counts)
    X, y = np.concatenate(rows), np.concatenate(labels)
    return TaskSet.from_arrays(X, y, ids, side_info, feature_names=table.columns)


def _log_volume(tasks: TaskSet) -> float:
    """Return the sum of log |R_t^-1|: a density of whitened labels as one of estimates."""
    return float(sum(np.linalg.slogdet(task.X @ task.X.T)[1] for task in tasks) / 2)
