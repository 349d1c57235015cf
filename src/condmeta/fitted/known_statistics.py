"""What a fit knows of its tasks: their statistics, and covariances of their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from condmeta.fitted.at_times import drift_of
from condmeta.fitted.starts import features, read_anew
from condmeta.inner.nested import NestedGaussian, NestedState, TaskPriors
from condmeta.inner.row_posterior import Covariances
from condmeta.inner.squared import NoisyState, SquaredState
from condmeta.meta.task_statistics import TaskStatistics, scaled_statistics

if TYPE_CHECKING:
    from condmeta.fitted.fitted import Fitted
    from condmeta.fitted.rows import Rows


def statistics(fitted: Fitted, ids, side=None, points=None) -> tuple[np.ndarray, Any]:
    """Return theta (T, width) and statistics of tasks: zero for unknown, None if not kept.

    `side` and `points`, from which Phi is read, matter if the noise follows side information.
    """
    store, width = fitted.tasks, fitted.scales.width
    columns, theta = getattr(fitted.inner, "state_width", width), np.zeros((len(ids), width))
    stats: Any = SquaredState.start(len(ids), columns)
    if isinstance(fitted.inner, NestedGaussian):
        stats = _without_features(fitted, ids)
    elif drift_of(fitted.inner) is not None:
        stats = fitted.inner.state_type.start(len(ids), columns)
    elif getattr(fitted.tau, "noise", None) is not None:
        Phi = features(fitted, ids, side, points)
        stats = NoisyState(*stats, fitted.tau.noise_factors(Phi))
    at = np.full(len(ids), -1) if store is None else store.positions(ids.tolist())
    if not (at >= 0).any():
        return theta, stats
    found = known_statistics(fitted, at[at >= 0])
    if found is None:
        return theta, None
    stats = stats._replace(count=stats.count.astype(float))  # sums of weights are no integers
    theta[at >= 0] = store.theta[at[at >= 0]]
    for mine, theirs in zip(stats, found, strict=True):
        mine[at >= 0] = theirs
    return theta, stats


def known_statistics(fitted: Fitted, at=None) -> Any:
    """Return the statistics of the known tasks at positions `at`; None if they are not kept.

    A learner by statistics keeps them once, in `state`; others in `tasks`. Tasks that drift
    have two: in `state` those of all rows alike, in `tasks` what is not forgotten of them.
    """
    if isinstance(fitted.state, TaskStatistics) and drift_of(fitted.inner) is None:
        stats = scaled_statistics(fitted.state.whole, fitted.scales, at)
        return with_priors(fitted, stats, at)
    state = None if fitted.tasks is None else fitted.tasks.state
    state = state if state is None or at is None else state.take(at)
    return state if state is None else with_priors(fitted, state, at)


def with_priors(fitted: Fitted, stats: Any, at=None) -> Any:
    """Return statistics of the known tasks at `at`, with their priors or noises if these differ."""
    store = fitted.tasks
    priors = None if store is None else store.state
    if isinstance(priors, TaskPriors) and isinstance(stats, SquaredState):
        return NestedState(*stats, *(priors if at is None else priors.take(at)))
    if getattr(fitted.tau, "noise", None) is None or not isinstance(stats, SquaredState):
        return stats
    Phi = store.Phi if at is None else store.Phi[at]
    return NoisyState(*stats, fitted.tau.noise_factors(Phi))


def _without_features(fitted: Fitted, ids) -> NestedState:
    """Return the priors of tasks without points; their covariances do not depend on Phi."""
    zero = np.zeros((len(ids), fitted.scales.width))
    if fitted.groups is None:
        return fitted.inner.start(zero)
    return fitted.groups.prior(ids, zero, fitted.inner)[1]


def own_estimates(fitted: Fitted) -> np.ndarray:
    """Return each known task's own least-squares estimate (T, width), in the user's units."""
    return fitted.tasks.own_estimates(fitted.scales, own_statistics(fitted))


def own_statistics(fitted: Fitted) -> Any:
    """Return the statistics of all rows of the known tasks; None if they are not kept."""
    if isinstance(fitted.state, TaskStatistics):
        return scaled_statistics(fitted.state.whole, fitted.scales)
    stats = known_statistics(fitted)
    return stats.squared if isinstance(stats, NestedState | NoisyState) else stats


def covariances(fitted: Fitted, rows: Rows) -> Covariances:
    """Return the covariances of the weights of the tasks of a call; of the prior without points."""
    ids, inner, new = rows.ids, fitted.inner, read_anew(fitted, rows)
    covariance = np.empty((len(ids), *inner.factor.shape))
    if new.any():
        factor = inner.factor[None]
        if inner.prior_covariance is not None:
            priors = inner.priors(features(fitted, ids[new], rows.side, rows.points))
            factor = priors.of_sizes(np.zeros(new.sum()))
        covariance[new] = factor @ np.swapaxes(factor, 1, 2)
    if not new.all():
        at = fitted.tasks.positions(ids[~new].tolist())
        covariance[~new] = fitted.tasks.state.covariance[at]
    return Covariances(covariance)
