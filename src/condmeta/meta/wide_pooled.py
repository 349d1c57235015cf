"""The pooled ridge of many columns: all rows count alike, whatever the task.

For tasks without points it is the best map if the levels of tasks go with their inputs: a row then
says what level its task has. Fits that know of levels remove just this.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from condmeta.inner.squared import SquaredState
from condmeta.meta.prior import SMALLEST, Prior
from condmeta.meta.ridge import learn_prior
from condmeta.meta.ridge_judge import ROUGH
from condmeta.meta.wide_judge import held_out_errors
from condmeta.meta.wide_noise import TaskNoise
from condmeta.meta.wide_ridge import Ridge, choose_ridge, is_better
from condmeta.meta.wide_rows import WideRows
from condmeta.meta.wide_solve import WideFit, fit_folds
from condmeta.tasks.points import Points
from condmeta.tasks.weights import masses


class PooledFit(NamedTuple):
    """A fit by ordinary least squares to `target` (N,), and the whole map of labels.

    `left` (N,) has the residuals of held-out tasks from the map. The map (k+1, d) or (k+1, d+1) has
    the level of tasks by their side information in its last column, if there is an intercept.
    """

    fit: WideFit
    target: np.ndarray
    left: np.ndarray
    map: np.ndarray


def pooled_fit(
    data: WideRows, points: Points, ridge: Ridge, fold, intercept: bool, kappa: float
) -> PooledFit:
    """Fit all columns with a ridge of its own; then the levels, to the residuals.

    Levels go by side information if that clearly predicts left-out tasks better. `ridge` is in
    units of the noise.
    """
    weight = masses(points.weight)
    root = np.ones(len(points.y)) if weight is None else np.sqrt(weight)
    mean = float(np.average(points.y, weights=weight)) if intercept else 0.0
    target = root * (points.y - mean)
    s2 = max(float(np.mean(target**2)), SMALLEST)
    noise = TaskNoise(np.zeros((len(target), 1)), s2, data.offsets)
    ridge = choose_ridge(data, target, noise, ridge._replace(lam=ridge.lam / s2))
    fit = fit_folds(data, target, noise, ridge, fold)
    left = (target - fit.held_out) / root
    if not intercept:
        return PooledFit(fit, target, left, fit.B)
    levels = points._replace(X=np.ones((len(left), 1)), y=left)
    found = {
        one: held_out_errors(levels, data.Phi, fold, partial(rough_prior, kappa=one)).alone
        for one in dict.fromkeys((np.inf, kappa))
    }
    by_task = {
        one: np.add.reduceat((root * e) ** 2, points.offsets[:-1]) for one, e in found.items()
    }
    best = kappa if is_better(by_task[kappa], by_task[np.inf]) else np.inf
    level = rough_prior(SquaredState.of(*levels), data.Phi, best).W
    level[-1] += mean
    return PooledFit(fit, target, found[best], np.hstack([fit.B, level]))


def rough_prior(stats: SquaredState, Phi, kappa: float) -> Prior:
    """Fit a prior with a diagonal covariance, in few steps."""
    return learn_prior(stats, Phi, "diagonal", kappa, stopping=ROUGH).prior
