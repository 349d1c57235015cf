"""Further points of known tasks, and new tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.at_times import drift_of
from condmeta.fitted.collect import COLLECTED, collect
from condmeta.fitted.groups import regroup, same_top
from condmeta.fitted.kept_rows import KeptRows
from condmeta.fitted.known_statistics import with_priors
from condmeta.fitted.prepared import raw_points, scaled_rows
from condmeta.fitted.scales import FARTHEST
from condmeta.fitted.task_model import require_resumable
from condmeta.fitted.task_store import TaskStore
from condmeta.fitted.weighing import weighed, with_inner
from condmeta.inner.hedge import HedgedGaussian
from condmeta.inner.row_posterior import RowPosterior
from condmeta.inner.student import StudentGaussian
from condmeta.meta.task_statistics import TaskStatistics, scaled_statistics
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.points import Points
from condmeta.tasks.timed import Timed

if TYPE_CHECKING:
    from condmeta.fitted.fitted import Fitted


def updated(fitted: Fitted, tasks: TaskSet, points: TaskSet | None, n_jobs: int = 1) -> Fitted:
    """Return a value in which known tasks have further points, and new tasks are added."""
    store = fitted.tasks
    if store is None:
        raise DataError("The model keeps no task models to update: fit with keep_tasks=True.")
    if isinstance(fitted.inner, StudentGaussian):
        normal = with_inner(fitted, fitted.inner.normal)
        after = updated(normal, weighed(fitted, tasks, points, n_jobs), points, n_jobs)
        return with_inner(after, fitted.inner)
    state, by_statistics = fitted.state, isinstance(fitted.state, TaskStatistics)
    drifts = drift_of(fitted.inner) is not None
    kept, share = isinstance(fitted.inner, RowPosterior), _share(fitted.inner)
    require_resumable(fitted.predictor, state if by_statistics or kept else store.state)
    found = store.positions(tasks.ids.tolist())
    known, new = np.flatnonzero(found >= 0), np.flatnonzero(found < 0)
    store.refuse_lookalikes(tasks.ids[new].tolist())
    tasks, side = fitted.past_shared_model(tasks), tasks.side
    if len(known):
        part, at = tasks.subset(known), found[known]
        clock, raw = fitted.clock(part), None
        if isinstance(state, COLLECTED):
            raw = raw_points(part, fitted.scales, FARTHEST)
            state = state.extend(at, raw)
            if isinstance(state, TaskStatistics):
                state = state.remember(at, raw, clock)
        if by_statistics and not drifts:
            stats = scaled_statistics(state.whole, fitted.scales, at)
            store = store.resolved(fitted.inner, at, with_priors(fitted, stats, at), n_jobs)
        else:
            if isinstance(state, KeptRows):
                state = state.extend(at, raw_points(part, fitted.scales, FARTHEST))
                rows = scaled_rows(state.points.take(at), fitted.scales)
                store = store.solved_again(fitted.inner, at, rows, n_jobs)
            else:
                raw = raw or raw_points(part, fitted.scales, FARTHEST)
                rows = scaled_rows(raw, fitted.scales)
                fitted = _hedged(fitted, at, rows, clock, n_jobs)
                store = store.extend(fitted.inner, at, rows, n_jobs, clock if drifts else None)
                store = _with_share(store, share, fitted.inner, n_jobs)
    if len(new):
        part = tasks.subset(new)
        more, _ = new_models(fitted, part, points, side, n_jobs)
        if by_statistics and not drifts:
            more = replace(more, state=getattr(more.state, "priors", None))
        store = store.concat(more)
        if isinstance(state, KeptRows):
            state = state.join(raw_points(part, fitted.scales), side)
        if isinstance(state, COLLECTED):
            more = collect(fitted, part, points, type(state), fitted.keeps_history)
            state = state.join(more)
    after = fitted._replace(tasks=store, state=state)
    if fitted.groups is None:
        return after
    changed = np.append(found[known], np.arange(len(store) - len(new), len(store)))
    return _regrouped(after, changed, n_jobs)


def new_models(
    fitted: Fitted, tasks: TaskSet, points: TaskSet | None, side: TaskTable | None, n_jobs: int = 1
) -> tuple[TaskStore, Points]:
    """Return the models of new tasks, and their points in the learner's units.

    `tasks` have passed the shared model, which reads `side`.
    """
    data = fitted.prepare(tasks, points)
    clock = fitted.clock(tasks) if drift_of(fitted.inner) is not None else None
    store = fitted.solve(data.ids, data.Phi, data.points, n_jobs, clock)
    return replace(store, sides=fitted.shared_sides(store.ids, side)), data.points


def _share(inner: Any) -> float | None:
    """Return how much of predictions is that of weights that drift; None if this is not learned."""
    return inner.hedge.share if isinstance(inner, HedgedGaussian) else None


def _hedged(fitted: Fitted, at, rows: Points, clock, n_jobs: int) -> Fitted:
    """Return a value that has learned from the errors of new rows of the tasks at `at`."""
    if not isinstance(fitted.inner, HedgedGaussian):
        return fitted
    store = fitted.tasks
    inner = fitted.inner.after(store.state, store.theta, at, Timed(*rows, clock), n_jobs)
    return fitted._replace(predictor=fitted.predictor._replace(inner=inner))


def _with_share(store: TaskStore, before: float | None, inner: Any, n_jobs: int) -> TaskStore:
    """Return a store of models with the share that `inner` has now."""
    if _share(inner) == before:
        return store
    at = np.flatnonzero(store.sizes > 0)
    state, theta = store.state.take(at), store.theta[at]
    return store.put(at, theta, inner.posterior(state, theta, n_jobs).mean, state)


def _regrouped(fitted: Fitted, changed, n_jobs: int) -> Fitted:
    """Return a value in which the tasks that share a group with changed ones have moved."""
    store = fitted.tasks
    at = same_top(store.ids.tolist(), changed)
    stats = scaled_statistics(fitted.state.whole, fitted.scales, at)
    Phi = None if store.Phi is None else store.Phi[at]
    found = regroup(store.ids[at], stats, store.state.base[at], Phi, fitted.inner, n_jobs)
    store = store.put(at, found.theta, found.coef, found.priors)
    return fitted._replace(tasks=store, groups=fitted.groups.put(found.groups))
