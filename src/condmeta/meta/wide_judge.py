"""Judge fits of the map of many columns as new tasks see them: without points, and with half."""

import numpy as np

from condmeta.inner.posterior import Gaussian
from condmeta.inner.scores import task_scores
from condmeta.inner.squared import SquaredState
from condmeta.meta.prior import Prior
from condmeta.tasks.points import Points
from condmeta.tasks.weights import masses


def held_out_score(points: Points, prior: Prior, Phi) -> float:
    """Return the geometric mean of two root mean square errors of tasks.

    points : Points
        Rows (N, r) in the directions of the prior, and residuals of labels from predictions of fits
        without the task.

    One error is that of the prior's mean; the other is that of every second point, after adapting
    to the others. A ridge that minimises squared errors is the best for tasks without points, if
    levels of tasks go with their inputs; generalised least squares is the better start otherwise.
    """
    theta = prior.theta(Phi)
    alone = points.y - task_scores(points.X, theta, points.offsets)
    weight = masses(points.weight)
    rank = np.arange(len(alone)) - np.repeat(points.offsets[:-1], points.sizes)
    support, query = (SquaredState.of(*points.where(rank % 2 == half)) for half in (1, 0))
    adapted = Gaussian(prior.L, prior.s2, False).posterior(support, theta).mean
    left = query.squared_errors(adapted).sum() / query.count.sum()
    return float(np.sqrt(np.sqrt(np.average(alone**2, weights=weight) * left)))
