"""Judge fits of the map of many columns as new tasks see them: without points, and with half."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from condmeta.inner.posterior import Gaussian
from condmeta.inner.scores import task_scores
from condmeta.inner.squared import SquaredState
from condmeta.tasks.points import Points


class HeldOutErrors(NamedTuple):
    """The residuals (N,) of the prior's mean, and the root mean square error after adapting."""

    alone: np.ndarray
    adapted: float


def held_out_errors(points: Points, Phi, fold, learn: Callable) -> HeldOutErrors:
    """Return the errors of tasks without points, and of every second point after the others.

    points : Points
        Rows (N, r) in some directions, and labels.
    fold : (T,) int array
    learn : callable
        `learn(SquaredState, Phi)` returns a `Prior`. It is called without each fold.
    """
    stats = SquaredState.of(*points)
    theta, adapted = np.empty((len(Phi), points.X.shape[1])), 0.0
    rank = np.arange(len(points.y)) - np.repeat(points.offsets[:-1], points.sizes)
    support, query = (SquaredState.of(*points.where(rank % 2 == half)) for half in (1, 0))
    for f in np.unique(fold):
        out, kept = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
        prior = learn(stats.take(kept), Phi[kept])
        theta[out] = prior.theta(Phi[out])
        inner = Gaussian(prior.L, prior.s2, False)
        w = inner.posterior(support.take(out), theta[out]).mean
        adapted += float(query.take(out).squared_errors(w).sum())
    alone = points.y - task_scores(points.X, theta, points.offsets)
    return HeldOutErrors(alone, float(np.sqrt(adapted / query.count.sum())))
