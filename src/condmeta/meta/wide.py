r"""A learned prior over task weights for tables of many columns.

The model is that of `meta.ridge`, w_t ~ N(W phi_t, H), with a covariance of low rank:

    W phi_t = B phi_t + P A phi_t,   H = P K P^T,   P (d, r).

B is a ridge on all columns (`meta.wide_solve`), in the span of the rows. P holds the directions in
which tasks may differ (`meta.wide_directions`). A and K are the prior of `meta.ridge` for r columns
X P, and its choice of metric, noise and ridge is that of `meta.ridge_choice`. The two parts are
fitted in turn: B by generalised least squares, with the covariance that K and the noise give the
labels of a task; A and K to the residuals of labels from fits of B without the task's fold.

A pooled ridge, by ordinary least squares, is fitted last. It takes the place of B if held-out tasks
are predicted better after adapting to half of their points. It is the map of tasks without points
if it predicts these better: so it does if the levels of tasks go with their inputs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from condmeta.inner.scores import task_scores
from condmeta.inner.squared import SquaredState
from condmeta.meta.prior import Prior
from condmeta.meta.ridge_choice import COLD_STARTS, TIE
from condmeta.meta.selection import close_to_best
from condmeta.meta.wide_directions import Directions, differing
from condmeta.meta.wide_judge import held_out_errors
from condmeta.meta.wide_noise import TaskNoise
from condmeta.meta.wide_pooled import pooled_fit, rough_prior
from condmeta.meta.wide_ridge import choose_ridge
from condmeta.meta.wide_rows import WideRows, times
from condmeta.meta.wide_solve import fit_folds
from condmeta.tasks.points import Points
from condmeta.tasks.weights import masses

log = logging.getLogger(__name__)  # steps: the command line shows them
LEAST_EXPLAINED = (
    0.01  # share of the squares by which the mean must predict tasks, to be a direction
)
ROUNDS = 2  # in which both parts are fitted in turn


class WidePrior(NamedTuple):
    """B^T (k+1, d) with b last, P (d, r), and what `learn_heads` found in these directions.

    `cold_start` is a name of `COLD_STARTS`; `pooled` (k+1, d) or (k+1, d+1), with an intercept, is
    the map that it speaks of.
    """

    B: np.ndarray
    P: np.ndarray
    heads: Any
    cold_start: str
    pooled: np.ndarray


def learn_wide(
    points: Points, Phi, fold, intercept: bool, learn_heads: Callable, columns=None,
    cold_starts: Sequence[str] = tuple(COLD_STARTS),
) -> WidePrior:  # fmt: skip
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
    cold_starts : names of `COLD_STARTS`
        The candidates for tasks without points.
    """
    X, y, offsets, weight = points
    root = np.ones(len(y)) if weight is None else np.sqrt(masses(weight))
    data = WideRows(X if weight is None else times(X, root), offsets, Phi)
    directions = Directions.first(X, columns)
    kappa = 1.0 if Phi.shape[1] else np.inf

    def rough_fit(target) -> tuple[Prior, np.ndarray]:
        Z = directions.rows(intercept)
        return rough_prior(SquaredState.of(Z, target, offsets, weight), Phi, kappa), Z

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
    in_noise = ridge._replace(lam=ridge.lam * prior.s2)
    pooled = pooled_fit(data, points, in_noise, fold, intercept, kappa)
    fits = {"weighted": (fit, target), "pooled": (pooled.fit, pooled.target)}
    rows, learn = points._replace(X=directions.rows(intercept)), partial(rough_prior, kappa=kappa)
    errors = {
        name: held_out_errors(rows._replace(y=y - one.held_out / root), Phi, fold, learn)
        for name, (one, _) in fits.items()
    }
    best = close_to_best({name: each.adapted for name, each in errors.items()}, TIE)[0]
    (fit, target), alone = fits[best], errors[best].alone
    cold = {
        name: float(np.linalg.norm(root * (alone + COLD_STARTS[name] * (pooled.left - alone))))
        for name in cold_starts
    }
    held_out = fit.held_out / root
    explains = np.sum((target - fit.held_out) ** 2) < (1 - LEAST_EXPLAINED) * np.sum(target**2)
    if columns is None and not ridge.c and explains:
        directions = directions.with_mean(fit.B[-1], held_out)
    log.info("prior of %d directions in which tasks differ", directions.P.shape[1])
    heads = learn_heads(Points(directions.Z, y - held_out, offsets, weight))
    return WidePrior(fit.B, directions.P, heads, close_to_best(cold, TIE)[0], pooled.map)
