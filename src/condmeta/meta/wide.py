r"""A learned prior over task weights for tables of many columns.

The model is that of `meta.ridge`, w_t ~ N(W phi_t, H), with a covariance of low rank:

    W phi_t = B phi_t + P A phi_t,   H = P K P^T,   P (d, r).

B is a ridge on all columns (`meta.wide_solve`), in the span of the rows. P holds the directions in
which tasks may differ (`meta.wide_directions`). A and K are the prior of `meta.ridge` for r columns
X P, and its choice of metric, noise and ridge is that of `meta.ridge_choice`. The two parts are
fitted in turn: B by generalised least squares, with the covariance that K and the noise give the
labels of a task; A and K to the residuals of labels from fits of B without the task's fold. At the
end a pooled ridge takes the place of B if it predicts held-out tasks better: so it does if the
levels of tasks go with their inputs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from condmeta.inner.scores import task_scores
from condmeta.inner.squared import SquaredState
from condmeta.meta.prior import SMALLEST, Prior
from condmeta.meta.ridge import learn_prior
from condmeta.meta.ridge_judge import ROUGH
from condmeta.meta.wide_directions import Directions, differing
from condmeta.meta.wide_judge import held_out_score
from condmeta.meta.wide_noise import TaskNoise
from condmeta.meta.wide_ridge import Ridge, choose_ridge
from condmeta.meta.wide_rows import WideRows, times
from condmeta.meta.wide_solve import WideFit, fit_folds
from condmeta.tasks.points import Points
from condmeta.tasks.weights import masses

log = logging.getLogger(__name__)  # steps: the command line shows them
WORTH = 1e-3  # relative gain of a pooled ridge, to be taken in place of the weighted one
LEAST_EXPLAINED = (
    0.01  # share of the squares by which the mean must predict tasks, to be a direction
)
ROUNDS = 2  # in which both parts are fitted in turn


class WidePrior(NamedTuple):
    """B^T (k+1, d) with b last, P (d, r), and what `learn_heads` found in these directions."""

    B: np.ndarray
    P: np.ndarray
    heads: Any


def learn_wide(
    points: Points, Phi, fold, intercept: bool, learn_heads: Callable, columns=None
) -> WidePrior:
    """Fit the prior to T tasks, all of which have rows.

    Parameters
    ----------
    points : Points
        Rows in the learner's units, dense or sparse, X (N, d) without the intercept.
    Phi : (T, k) array
        Standardised.
    fold : (T,) int array
        The folds of tasks that B is fitted without.
    intercept : bool
        Whether tasks have intercepts, which may differ.
    learn_heads : callable
        `learn_heads(Points)` learns A and K from the residuals, on rows (N, r) in the directions P.
    columns : (m,) positions, optional
        The columns with weights that may differ; by default P is found.
    """
    X, y, offsets, weight = points
    root = np.ones(len(y)) if weight is None else np.sqrt(masses(weight))
    data = WideRows(X if weight is None else times(X, root), offsets, Phi)
    directions = Directions.first(X, columns)
    kappa = 1.0 if Phi.shape[1] else np.inf

    def rough_fit(target) -> tuple[Prior, np.ndarray]:
        Z = directions.rows(intercept)
        stats = SquaredState.of(Z, target, offsets, weight)
        return learn_prior(stats, Phi, "diagonal", kappa, stopping=ROUGH).prior, Z

    prior, Z = rough_fit(y)
    ridge, fit, held_out = None, None, np.zeros(len(y))
    for turn in range(ROUNDS):
        log.info("ridge on %d columns, round %d of %d", X.shape[1], turn + 1, ROUNDS)
        if turn > 0:
            prior, Z = rough_fit(y - held_out)
            if columns is None:
                directions = directions.useful(prior, len(Phi))
                noise = TaskNoise(root[:, None] * (Z @ prior.L), prior.s2, offsets)
                left = y - held_out - task_scores(Z, prior.theta(Phi), offsets)
                directions = directions.with_columns(X, differing(data.X, root * left, noise))
                directions = directions.useful(rough_fit(y - held_out)[0], len(Phi))
                prior, Z = rough_fit(y - held_out)
        noise = TaskNoise(root[:, None] * (Z @ prior.L), prior.s2, offsets)
        target = root * (y - task_scores(Z, prior.theta(Phi), offsets))
        ridge = choose_ridge(data, target, noise, ridge)
        fit = fit_folds(data, target, noise, ridge, fold)
        held_out = fit.held_out / root
    pooled = _pooled_fit(data, target, ridge, fold)
    scores = []
    for one in (fit, pooled):
        left = y - one.held_out / root
        prior, Z = rough_fit(left)
        scores.append(held_out_score(Points(Z, left, offsets, weight), prior, Phi))
    fit = pooled if scores[1] < (1 - WORTH) * scores[0] else fit
    held_out = fit.held_out / root
    explains = np.sum((target - fit.held_out) ** 2) < (1 - LEAST_EXPLAINED) * np.sum(target**2)
    if columns is None and not ridge.c and explains:
        directions = directions.with_mean(fit.B[-1], held_out)
    log.info("prior of %d directions in which tasks differ", directions.P.shape[1])
    heads = learn_heads(Points(directions.Z, y - held_out, offsets, weight))
    return WidePrior(fit.B, directions.P, heads)


def _pooled_fit(data: WideRows, target, ridge: Ridge, fold) -> WideFit:
    """Return a fit by ordinary least squares, with a ridge of its own."""
    s2 = max(float(np.mean(target**2)), SMALLEST)
    noise = TaskNoise(np.zeros((len(target), 1)), s2, data.offsets)
    return fit_folds(data, target, noise, choose_ridge(data, target, noise, ridge), fold)
