"""`ConditionalRidge(drift=...)`: what a call's times mean, and the drift that a fit chooses."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.collect import history_rows
from condmeta.fitted.fitted import Fitted
from condmeta.inner.drift import KINDS, Drift, Process
from condmeta.inner.drifting import DriftingGaussian
from condmeta.inner.hedge import Hedge, HedgedGaussian
from condmeta.learners.checks import refuse_weighing
from condmeta.learners.parameters import jobs_of
from condmeta.meta.drift_choice import NONE, choose_drift, drift_pays, typical_gap
from condmeta.meta.ridge_choice import NOISES
from condmeta.meta.ridge_judge import BY_SIDE
from condmeta.meta.selection import GIVEN, Selection
from condmeta.meta.task_statistics import TaskStatistics
from condmeta.meta.wide_tasks import WIDE
from condmeta.tasks import TaskSet
from condmeta.tasks.times import kind_of

DRIFTS = "'auto', None, ('decay', rho), ('ar', phi) or rho alone, with rho and phi in (0, 1]"


def is_drift(value: Any) -> bool:
    """Return whether a value can be the parameter `drift`."""
    if value is None or (isinstance(value, str) and value == "auto"):
        return True
    kind, *numbers = parts_of(value)
    within = [isinstance(n, Real) and not isinstance(n, bool) and 0 < n <= 1 for n in numbers]
    return isinstance(kind, str) and kind in KINDS and 1 <= len(within) <= 2 and all(within)


def parts_of(value: Any) -> tuple[Any, ...]:
    """Return the kind of a drift and its numbers; a number alone is a decay."""
    is_sequence = isinstance(value, (tuple, list)) and len(value) > 0
    return tuple(value) if is_sequence else ("decay", value)


def noises_of(learner: Any, alike: bool) -> tuple[str, ...]:
    """Return the noises to choose from: AR(1) statistics know no noise of a task's own.

    `alike`: the noise cannot follow side information, as there is none, or tasks may change.
    """
    refuse_weighing(learner)
    alike = alike or not learner._side_noise
    if learner.noise == BY_SIDE and alike:
        raise DataError(
            "noise='by_side' works with ConditionalRidge, with 1 to 128 side features and "
            "without drift: use noise='shared' or 'per_task' instead."
        )
    if learner.drift in (None, "auto") or parts_of(learner.drift)[0] != "ar":
        usual = NOISES[:2] if alike else NOISES
        return usual if learner.noise == "auto" else (learner.noise,)
    if learner.noise == "per_task":
        raise DataError(
            "drift=('ar', phi) does not work with noise='per_task': use noise='shared', or "
            "another drift."
        )
    return NOISES[:1]


def context_of(learner: Any, timed: bool) -> Any:
    """Return whether levels may depend on inputs: not if tasks may change with time."""
    if not timed:
        return learner.context
    if learner.context is True:
        raise DataError("context=True does not work with drift: use drift=None.")
    return False


def require_timed(fitted: Fitted) -> None:
    """Raise if a model that was fitted without times is given some."""
    if fitted.info.get("time") is None:
        raise DataError(
            "The model was fitted without time=. Fit it again with the time of each row, or "
            "leave time out."
        )


def with_times(learner: Any, start: Fitted, tasks: TaskSet, kind: type) -> tuple[Fitted, bool]:
    """Return a value that knows the kind of the times of a fit, and whether rows are kept by them.

    Raise if the learner cannot forget here.
    """
    drift = getattr(learner, "drift", None)
    if tasks.time is None:
        if drift not in (None, "auto"):
            raise DataError(
                f"drift={drift!r} needs the time of each row: give time=, or use drift=None."
            )
        return start, False
    if not hasattr(learner, "drift"):
        return start, False
    if not learner._drifts:
        raise DataError(
            f"{type(learner).__name__} does not forget old rows: leave time out, or use "
            "ConditionalRidge."
        )
    start = start._replace(info=start.info | {"time": kind_of(tasks.time)})
    if drift is None:
        return start, False
    if kind is not TaskStatistics:
        raise DataError(
            f"Drift works with up to {WIDE} columns: leave time out, use drift=None or "
            "random='all', or give fewer columns."
        )
    if start.reader.reads_points:
        raise DataError(
            "Drift does not work with a feature map of the task's own points: leave time out, "
            "use drift=None, or use another feature map."
        )
    return start, True


def settle_drift(
    learner: Any, fitted: Fitted, Phi: np.ndarray, stay: Callable[[], Fitted]
) -> Fitted:
    """Return the value with the drift that its tasks have: given, chosen, or none.

    `stay()` learns again for tasks that do not change: such a model may read their context. It is
    what `drift="auto"` leaves unless forgetting clearly pays.
    """
    choice = Selection.given(None)
    if fitted.keeps_history:
        choice = _chosen(learner, fitted, Phi)
        if learner.drift == "auto" and learner.context == "auto":
            still = stay()._replace(state=fitted.state)
            if choice.chosen is None or not _beats(choice.chosen, fitted, still, Phi, learner):
                fitted, choice = still, choice._replace(chosen=None)
    drift, inner = choice.chosen, fitted.inner
    info = fitted.info | {"drift_choice_": choice.rows()}
    if drift is None:
        return fitted._replace(info=info)
    own_noise = inner.own_noise and choice.method == GIVEN  # candidates have one noise for all
    parts = inner.factor, drift.noise * inner.s2, own_noise, drift
    if choice.method == GIVEN:
        inner = DriftingGaussian(*parts)
    else:
        inner = HedgedGaussian(*parts, _hedge(fitted, choice.scores[NONE]))
    info |= {"s2_": drift.noise * info["s2_"], "noise_": NOISES[own_noise]}
    return fitted._replace(predictor=fitted.predictor._replace(inner=inner), info=info)


def _chosen(learner: Any, fitted: Fitted, Phi: np.ndarray) -> Selection:
    """Return the drift of the parameter, or the best one for the later rows of the tasks."""
    unit = fitted.info["time"]
    if learner.drift != "auto":
        kind, *numbers = parts_of(learner.drift)
        return Selection.given(Drift(kind, *map(float, numbers))._replace(unit=unit))
    state = fitted.state
    rows = history_rows(fitted).take(state.sample)
    theta = fitted.tau.theta(Phi[state.sample])
    choice = choose_drift(fitted.inner, theta, rows, jobs_of(learner))
    chosen = None if choice.chosen is NONE else Drift(*choice.chosen, unit)
    return choice._replace(chosen=chosen)


def _beats(drift: Drift, fitted: Fitted, still: Fitted, Phi: np.ndarray, learner: Any) -> bool:
    """Return whether a model that drifts clearly beats one that stays, which may have a context."""
    if not still.info.get("context_"):
        return True  # it was among the candidates
    at = fitted.state.sample
    rows, inner = history_rows(fitted).take(at), fitted.inner
    process = Process(drift, inner.factor, inner.s2 * drift.noise)
    theta, stays = (value.tau.theta(Phi[at]) for value in (fitted, still))
    return drift_pays(process, theta, still.inner, stays, rows, jobs_of(learner))


def _hedge(fitted: Fitted, error: float) -> Hedge:
    """Return the first hedge of a chosen drift; `error` is the mean one of weights that stay."""
    rows = history_rows(fitted).sorted()
    gap, first, last = typical_gap(rows), rows.time.min(), rows.time.max()
    rows_of_gap = len(rows.time) / ((last - first) / gap + 1)
    return Hedge.start(error * rows_of_gap, last, gap)


def require_history(learner: Any, fitted: Fitted, what: str) -> None:
    """Raise if drift would have to be learned again, and the rows of the fit are not kept."""
    timed = fitted.info.get("time") is not None and learner.drift is not None
    if timed and not fitted.keeps_history:
        raise DataError(
            f"{what} would have to learn drift again, from rows and times that fit does not "
            "keep. Fit again with all rows, use partial_fit from the start, or set drift=None."
        )
