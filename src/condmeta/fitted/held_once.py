"""Statistics in a file of a fitted value: where they are kept, once."""

from dataclasses import replace

from condmeta.fitted.task_store import TaskStore
from condmeta.inner.drifting import TimedState
from condmeta.inner.hedge import HedgedState
from condmeta.inner.nested import TaskPriors
from condmeta.inner.posterior import Gaussian
from condmeta.meta.task_statistics import TaskStatistics, scaled_statistics

TIMED = TimedState, HedgedState


def held_once(cls, parts: dict) -> dict:
    """Return the parts of a file; statistics are in `state`, and not in the store as well.

    Statistics of some tasks, of which nothing can be learned, are those of a store.
    """
    state, store = parts.get("state"), parts.get("tasks")
    if not isinstance(state, TaskStatistics) or not isinstance(store, TaskStore):
        return parts
    if len(state.ids) and not len(state.sample):
        own = store.state if isinstance(store.state, TIMED) else None
        if type(parts["predictor"].inner) is Gaussian:
            own = scaled_statistics(state.whole, parts["predictor"].scales)
        return parts | {"tasks": replace(store, state=own), "state": None}
    if isinstance(store.state, (TaskPriors, *TIMED)):
        return parts
    return parts | {"tasks": replace(store, state=None)}
