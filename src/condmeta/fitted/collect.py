"""Learners by statistics: reduce tasks to their statistics, and solve tasks from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from condmeta.fitted.at_times import drift_of, required_clock
from condmeta.fitted.groups import Groups, regroup
from condmeta.fitted.prepared import raw_points, scaled_rows, user_points
from condmeta.fitted.starts import aligned_features, with_cold_start
from condmeta.fitted.task_store import TaskStore, narrow
from condmeta.meta.blocks import LEAF
from condmeta.meta.task_statistics import TaskStatistics, scaled_packed, scaled_statistics
from condmeta.meta.wide_tasks import WideTasks
from condmeta.tasks import TaskSet
from condmeta.tasks.points import Points
from condmeta.tasks.splits import first_halves
from condmeta.tasks.timed import Timed
from condmeta.tasks.weights import masses

if TYPE_CHECKING:
    from condmeta.fitted.fitted import Fitted


COLLECTED = TaskStatistics, WideTasks  # what a learner by statistics keeps of its tasks


def collect(
    fitted: Fitted, tasks: TaskSet, points: TaskSet | None, kind: Any = TaskStatistics, timed=False,
    keys: np.ndarray | None = None,
) -> Any:  # fmt: skip
    """Return the statistics of tasks, of one `kind`, and their side rows or features.

    With `timed`, also their rows with their times; `keys` are given if they are known.
    """
    raw = raw_points(tasks, fitted.scales)
    if not fitted.reader.reads_points:
        table = tasks.side
        if table is not None:
            table = table.take(tasks.ids[table.has(tasks.ids)])
        found = kind.of(tasks.ids, raw, table, keys=keys)
        if not timed:
            return found
        clock = required_clock(tasks.time, len(tasks.X), fitted.info.get("time"))
        return found._replace(history=Timed(*raw, clock))
    data, features = fitted.prepare(tasks, points), None
    if points is None and fitted.conditioning == "shared":

        def features(at, shown: Points):
            X, y, *_ = user_points(shown, fitted.scales)
            X, y = fitted.scales.rescaled(X), fitted.scales.target(y)
            own = (*fitted.scales.for_maps(X, y), shown.offsets, masses(shown.weight))
            return aligned_features(fitted, tasks.ids[at], tasks.side, own)

    elif points is None:  # the first half of a task's points only conditions
        raw, keys = raw.where(~first_halves(tasks.offsets)[0]), None
    return kind.of(tasks.ids, raw, None, data.Phi, features, keys=keys)


def history_rows(fitted: Fitted) -> Timed:
    """Return the rows of all tasks with their times, in the learner's units."""
    history = fitted.state.history
    return Timed(*scaled_rows(history.points, fitted.scales), history.time)


def solve_collected(fitted: Fitted, Phi, n_jobs: int = 1) -> TaskStore:
    """Return the models of all tasks that were collected: from their rows if these are kept."""
    state = fitted.state
    if drift_of(fitted.inner) is not None:
        *points, clock = history_rows(fitted)
        return fitted.solve(state.ids, Phi, Points(*points), n_jobs, clock)
    if isinstance(state, WideTasks):
        return fitted.solve(state.ids, Phi, scaled_rows(state.whole, fitted.scales), n_jobs)
    return solve_statistics(fitted, state, Phi, n_jobs)


def solve_in_groups(fitted: Fitted, Phi, n_jobs: int = 1) -> tuple[Groups, TaskStore]:
    """Return what the tasks of each group have in common, and the models of all tasks."""
    ids, kept, base = fitted.state.ids, narrow(Phi), fitted.tau.theta(Phi)
    stats = scaled_statistics(fitted.state.whole, fitted.scales)
    found = regroup(ids, stats, base, kept, fitted.inner, n_jobs)
    store = TaskStore(ids, stats.count, found.theta, found.coef, state=found.priors, Phi=kept)
    return found.groups, store


def solve_statistics(fitted: Fitted, state: TaskStatistics, Phi, n_jobs: int = 1) -> TaskStore:
    """Return the models of all tasks of `state`, leaf after leaf.

    A task's model depends on the tasks of its leaf by rounding; so it has the same bits for any
    order of the tasks. The statistics stay in `state` alone.
    """
    theta = np.empty((len(state.ids), fitted.scales.width))
    coef = np.empty_like(theta)
    packed = scaled_packed(state.whole, fitted.scales)
    empty = np.flatnonzero(state.whole.count == 0)
    spare = [empty[lo : lo + LEAF] for lo in range(0, len(empty), LEAF)]
    for at in (*state.leaves(np.flatnonzero(state.whole.count > 0)), *spare):
        theta[at] = fitted.tau.theta(Phi[at])
        how = {} if fitted.tau.noise is None else {"factors": fitted.tau.noise_factors(Phi[at])}
        coef[at] = fitted.inner.posterior(packed.take(at), theta[at], n_jobs, **how).mean
    coef = with_cold_start(fitted, coef, Phi, state.whole.count)
    return TaskStore(state.ids, state.whole.count, theta, coef, Phi=narrow(Phi))
