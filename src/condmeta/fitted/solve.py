"""Solve all tasks of a fit from what was collected of them, in memory or in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from condmeta.fitted.at_times import drift_of
from condmeta.fitted.collect import history_rows
from condmeta.fitted.groups import Groups, regroup
from condmeta.fitted.prepared import scaled_rows
from condmeta.fitted.scales import Scales
from condmeta.fitted.starts import with_cold_start
from condmeta.fitted.task_store import TaskStore, narrow
from condmeta.fitted.tau import LinearTau
from condmeta.inner.scatter import Scatter
from condmeta.meta.blocks import LEAF
from condmeta.meta.stored_tasks import StoredTasks
from condmeta.meta.task_statistics import TaskStatistics, scaled_packed, scaled_statistics
from condmeta.meta.trained_tasks import RawBlock
from condmeta.meta.wide_tasks import WideTasks
from condmeta.tasks.points import Points

if TYPE_CHECKING:
    from condmeta.fitted.fitted import Fitted


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
        theta[at], coef[at] = solve_leaf(packed.take(at), Phi[at], fitted.tau, fitted.inner, n_jobs)
    coef = with_cold_start(fitted, coef, Phi, state.whole.count)
    return TaskStore(state.ids, state.whole.count, theta, coef, Phi=narrow(Phi))


def solve_stored(fitted: Fitted, stored: StoredTasks, ids: Any, Phi_empty: Any) -> TaskStore:
    """Return the models of all tasks, leaf after leaf; those without points come last."""
    T, how = len(ids), (fitted.tau, fitted.scales, fitted.inner)
    theta, coef = np.empty((T, fitted.scales.width)), np.empty((T, fitted.scales.width))
    Phi, count = np.empty((T, Phi_empty.shape[1])), np.zeros(T, stored.sampled.whole.count.dtype)
    for at, *found in stored.map_blocks(solve_block, *how):
        count[at], theta[at], coef[at], Phi[at] = found
    for lo in range(len(stored), T, LEAF):
        at = slice(lo, lo + LEAF)
        Phi[at] = Phi_empty[lo - len(stored) : lo - len(stored) + LEAF]
        block = RawBlock(no_statistics(len(Phi[at]), len(fitted.scales.x_mean)), None, Phi[at])
        _, theta[at], solved, _ = solve_block(block, *how)
        coef[at] = with_cold_start(fitted, solved, Phi[at], np.zeros(len(solved)))
    return TaskStore(ids, count, theta, coef, Phi=narrow(Phi))


def solve_block(raw: RawBlock, tau: LinearTau, scales: Scales, inner: Any) -> tuple[Any, ...]:
    """Return the number of points, theta, the model and the features of each task."""
    theta, coef = solve_leaf(scaled_packed(raw.scatter, scales, raw.at), raw.Phi, tau, inner)
    count = raw.scatter.count if raw.at is None else raw.scatter.count[raw.at]
    return count.copy(), theta, coef, raw.Phi.copy()


def solve_leaf(
    stats: Any, Phi, tau: LinearTau, inner: Any, n_jobs: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return theta and the models (T, width) of tasks, from their statistics and features."""
    theta = tau.theta(Phi)
    factors = {} if tau.noise is None else {"factors": tau.noise_factors(Phi)}
    return theta, inner.posterior(stats, theta, n_jobs, **factors).mean


def no_statistics(n_tasks: int, d: int) -> Scatter:
    """Return the statistics of tasks without points."""
    offsets = np.zeros(n_tasks + 1, np.int64)
    return Scatter.of(np.empty((0, d)), np.empty(0), offsets)
