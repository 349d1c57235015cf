"""Where tasks start: from side information to Phi and theta."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from condmeta.fitted.prepared import align_points, no_points
from condmeta.fitted.tau import LinearTau
from condmeta.inner.nested import NestedGaussian, TaskPriors
from condmeta.inner.row_posterior import RowPosterior
from condmeta.inner.squared import NoisyState, SquaredState
from condmeta.tasks import TaskSet, TaskTable

if TYPE_CHECKING:
    from condmeta.fitted.fitted import Fitted
    from condmeta.fitted.rows import Rows


def features(fitted: Fitted, ids, table: TaskTable | None, points: TaskSet | None = None):
    """Return Phi of tasks from their side rows and conditioning points alone."""
    given = None
    if fitted.reader.reads_points:
        given = no_points(len(ids), len(fitted.scales.x_mean))
        if points is not None:
            given = align_points(points, ids, fitted.scales, fitted.predictor.classes)
    return aligned_features(fitted, ids, _aligned(fitted, table), given)


def _aligned(fitted: Fitted, table: TaskTable | None) -> TaskTable | None:
    columns = fitted.reader.columns
    return table if table is None or columns is None else table.align(columns)


def aligned_features(fitted: Fitted, ids, table, given):
    """Return Phi; a known task without a side row has the Phi that it is known by.

    With missing_side="mean", another task without one has the mean Phi of its group.
    """
    read, store = fitted.reader.features, fitted.tasks
    linear = isinstance(fitted.tau, LinearTau) and not fitted.reader.reads_points
    nameless = len(ids) == 1 and ids[0] is None
    has = np.zeros(len(ids), bool) if table is None else table.has(ids)
    if fitted.groups is not None and fitted.reader.missing_side == "mean" and not has.all():

        def read(ids, table, given, tau):
            Phi = fitted.reader.features(ids, table, given, tau)
            lacking = np.ones(len(ids), bool) if table is None else ~table.has(ids)
            Phi[lacking] = fitted.groups.fill(ids[lacking], Phi[lacking])
            return Phi

    if store is None or store.Phi is None or not linear or nameless:
        return read(ids, table, given, fitted.tau)
    at = np.where(has, -1, store.positions(ids.tolist()))
    if not (at >= 0).any():
        return read(ids, table, given, fitted.tau)
    Phi = np.empty((len(ids), len(fitted.reader.names)))
    Phi[at >= 0] = store.Phi[at[at >= 0]]
    if (at < 0).any():
        Phi[at < 0] = read(ids[at < 0], table, given, fitted.tau)
    return Phi


def start(fitted: Fitted, ids, Phi, n_jobs: int = 1) -> tuple[np.ndarray, Any]:
    """Return where tasks start (T, width), and their priors or noises if these differ.

    A known task starts from the other tasks of its groups: its own points count once.
    """
    theta, store = fitted.tau.theta(Phi, n_jobs), fitted.tasks
    if getattr(fitted.tau, "noise", None) is not None:
        empty = SquaredState.start(*theta.shape)
        return theta, NoisyState(*empty, fitted.tau.noise_factors(Phi))
    if isinstance(fitted.inner, RowPosterior):
        return theta, fitted.inner.priors(Phi)
    if not isinstance(fitted.inner, NestedGaussian):
        return theta, None
    if fitted.groups is None:
        return theta, fitted.inner.start(theta)
    theta, state = fitted.groups.prior(ids, theta, fitted.inner)
    if store is not None and isinstance(store.state, TaskPriors):
        at = store.positions(ids.tolist())
        known, at = at >= 0, at[at >= 0]
        theta[known] = state.base[known] + store.theta[at] - store.state.base[at]
        state.covariance[known] = store.state.covariance[at]
    return theta, state


def with_cold_start(fitted: Fitted, coef: np.ndarray, Phi, sizes) -> np.ndarray:
    """Return the models of tasks (T, width), those without points by `tau.cold_start`."""
    empty = np.flatnonzero(sizes == 0)
    if not len(empty) or getattr(fitted.tau, "cold", None) is None:
        return coef
    coef = coef.copy()
    coef[empty] = fitted.tau.cold_start(Phi[empty])
    return coef


def read_anew(fitted: Fitted, rows: Rows) -> np.ndarray:
    """Return which tasks of a call are read from its side information (T,): those without points.

    A known task without points starts, and stays, at tau of the side row given now.
    """
    ids, store = rows.ids, fitted.tasks
    if store is None:
        return np.ones(len(ids), bool)
    found = store.positions(ids.tolist())
    new = found < 0
    store.refuse_lookalikes(ids[new].tolist())
    if (rows.side is not None or rows.points is not None) and not new.all():
        given = rows.points is not None and np.isin(ids, rows.points.ids)
        given |= rows.side is not None and rows.side.has(ids)
        empty = np.zeros(len(ids), bool)
        empty[~new] = store.sizes[found[~new]] == 0
        new |= empty & given
    return new
