"""Whether the parts of a fitted value from a file fit each other, so that it can be used.

The schema of each class checks its own fields, and the sizes that its parts share. Here is what
only the whole shows.
"""

from __future__ import annotations

import numpy as np

from condmeta.fitted.at_times import drift_of
from condmeta.fitted.collect import COLLECTED
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.kept_rows import KeptRows
from condmeta.fitted.tau import KernelTau
from condmeta.inner.algorithms import Batch, Online, can_resume
from condmeta.inner.coin import Coin, CoinTasks
from condmeta.inner.drifting import DriftingGaussian, TimedState
from condmeta.inner.hedge import HedgedGaussian, HedgedState
from condmeta.inner.low_rank import LowRankGaussian
from condmeta.inner.nested import NestedGaussian, TaskPriors
from condmeta.inner.no_adaptation import NoAdaptation, PointCount
from condmeta.inner.online import OnlineState
from condmeta.inner.posterior import Gaussian
from condmeta.inner.row_posterior import Bernoulli, Counts, Covariances, Ordinal
from condmeta.inner.squared import SquaredState
from condmeta.meta.wide_tasks import WideTasks
from condmeta.persistence.fields import Field, InvalidFieldError, Sizes, describe

STATES = {  # what further points of a task need, by inner algorithm
    Online: OnlineState, Batch: SquaredState, Gaussian: SquaredState, Coin: CoinTasks,
    NoAdaptation: PointCount, Bernoulli: Covariances, LowRankGaussian: SquaredState,
    DriftingGaussian: TimedState, HedgedGaussian: HedgedState,
    Counts: Covariances, Ordinal: Covariances,
    NestedGaussian: TaskPriors,
}  # fmt: skip


def check_fitted(fitted: Fitted, info: dict[str, Field]) -> None:
    """Raise `InvalidFieldError` if the parts do not fit; `info` is the schema of `Fitted.info`."""
    _check_inputs(fitted)
    _check_inner(fitted)
    _check_info(fitted, info)
    _check_times(fitted)
    _check_map(fitted)
    _check_shared(fitted)
    _check_tasks(fitted)
    _check_statistics(fitted)


def _refuse(field: str, problem: str) -> InvalidFieldError:
    return InvalidFieldError(f"fitted.{field}", problem)


def _check_inputs(fitted: Fitted) -> None:
    scales, shared = fitted.scales, fitted.predictor.shared
    added = shared is not None and shared.classes  # its log odds are an input
    if scales.transformer is None and scales.n_inputs + added != len(scales.x_mean):
        raise _refuse("predictor.scales.x_mean", f"must have {scales.n_inputs + added} numbers")


def _check_inner(fitted: Fitted) -> None:
    predictor, store = fitted.predictor, fitted.tasks
    state = STATES.get(type(predictor.inner))
    if predictor.resumable and not can_resume(predictor.inner):
        raise _refuse("predictor.resumable", "must be False with this inner algorithm")
    if store is None or state is None:
        return
    needed = getattr(state, "predicts", False)
    if store.state is None and not needed:
        return
    if not isinstance(store.state, state):
        raise _refuse("tasks.state", f"must be {state.__name__}")
    width = getattr(predictor.inner, "state_width", fitted.scales.width)
    for name, array in store.state._asdict().items():
        if array.shape[1:] and array.shape[1] != width:
            raise _refuse(f"tasks.state.{name}", f"must have {width} columns")


def _check_info(fitted: Fitted, info: dict[str, Field]) -> None:
    sizes = Sizes(lambda value: None)
    sizes.named["w"] = fitted.scales.width
    for name, field in info.items():
        value = fitted.info.get(name)
        if not field.holds(value, sizes):
            got = describe(value)
            raise _refuse(f"info[{name!r}]", f"must be {field.says}. Got {got} instead")


def _check_times(fitted: Fitted) -> None:
    unit, drift = fitted.info.get("time"), drift_of(fitted.inner)
    known = (None, "days", "numbers") if drift is None else (drift.unit,)
    if unit not in known:
        raise _refuse("info['time']", f"must be {known[-1]!r}. Got {describe(unit)} instead")


def _check_map(fitted: Fitted) -> None:
    tau, reader = fitted.tau, fitted.reader
    if isinstance(tau, KernelTau) != (reader.kernel is not None):
        raise _refuse("reader.kernel", "must be kept with a KernelTau alone")
    if isinstance(tau, KernelTau):
        tau.check(len(reader.names), fitted.scales.width)


def _check_shared(fitted: Fitted) -> None:
    shared, store = fitted.predictor.shared, fitted.tasks
    if shared is None:
        return
    inputs, splits = fitted.scales.n_inputs + len(shared.fill), shared.model.splits
    if splits is not None:
        if len(splits.groups.group) != inputs:
            raise _refuse("predictor.shared.model.splits", f"must be of {inputs} columns")
        inputs = splits.groups.width
    if shared.model.feature.max(initial=-1) >= inputs:
        raise _refuse("predictor.shared.model.feature", f"must be below {inputs}")
    if shared.classes != (fitted.predictor.classes is not None):
        raise _refuse("predictor.shared.classes", "must be that of the learner")
    if store is not None and store.sides is None:
        raise _refuse("tasks.sides", "must be kept with a shared model")


def _check_tasks(fitted: Fitted) -> None:
    """Refuse coefficients that are too large for the user's units."""
    store, scales = fitted.tasks, fitted.scales
    known = [] if store is None else [("tasks.coef", store.coef), ("tasks.theta", store.theta)]
    for name, weights in [*known, ("tau", fitted.tau.theta_mean[None])]:
        with np.errstate(over="ignore", invalid="ignore"):
            user = scales.user_vector(weights)
        if not np.isfinite(user).all():
            raise _refuse(name, "must be finite in the units of the data")


def _check_rows(fitted: Fitted, state: KeptRows) -> None:
    """Refuse rows that are not those of the task models."""
    store, width = fitted.tasks, len(fitted.scales.x_mean)
    if store is None or len(state.offsets) != len(store) + 1:
        raise _refuse("state.offsets", "must have the rows of each task")
    if state.X.shape[1] != width:
        raise _refuse("state.X", f"must have {width} columns")
    if not fitted.inner.allows(state.y):
        raise _refuse("state.y", "must be labels of the learner")
    if state.weight is not None and (state.weight <= 0).any():
        raise _refuse("state.weight", "must be above 0")
    if not np.allclose(state.points.count, store.sizes):
        raise _refuse("tasks.sizes", "must be the numbers of rows")


def _check_statistics(fitted: Fitted) -> None:
    state, store = fitted.state, fitted.tasks
    if isinstance(state, KeptRows):
        _check_rows(fitted, state)
    if not isinstance(state, COLLECTED) or store is None:
        return
    if state.ids.tolist() != store.ids.tolist():
        raise _refuse("state.ids", "must be the ids of the tasks")
    wide = isinstance(state, WideTasks)
    columns = state.X.shape[1] if wide else state.whole.mean.shape[1] - 1
    if columns != len(fitted.scales.x_mean):
        field = "state.X" if wide else "state.whole.mean"
        raise _refuse(field, "must have a column for each feature")
