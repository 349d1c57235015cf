r"""A learned prior over task weights for tables of many columns.

The model is that of `meta.ridge`, w_t ~ N(W phi_t, H), with a covariance of low rank:

    W phi_t = B phi_t + P A phi_t,   H = P K P^T,   P (d+1, r).

B is a ridge on all columns (`meta.wide_solve`), in the span of the rows. P holds the directions in
which tasks may differ (`meta.wide_directions`). A and K are the prior of `meta.ridge` for r columns
X P, and its choice of metric, noise and ridge is that of `meta.ridge_choice`. The two parts are
fitted in turn: B by generalised least squares, with the covariance that K and the noise give the
labels of a task; A and K to the residuals of labels from fits of B without the task's fold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from condmeta.inner.squared import SquaredState
from condmeta.meta.prior import LearnedPrior, Prior
from condmeta.meta.ridge import learn_prior
from condmeta.meta.ridge_choice import ROUGH
from condmeta.meta.selection import Selection
from condmeta.meta.wide_directions import Directions, differing_columns
from condmeta.meta.wide_noise import TaskNoise
from condmeta.meta.wide_ridge import Ridge, choose_ridge
from condmeta.meta.wide_rows import WideRows, times
from condmeta.meta.wide_solve import fit_folds
from condmeta.tasks.points import Points

ROUNDS = 2  # in which both parts are fitted in turn


class WidePrior(NamedTuple):
    """W^T (k+1, d+1) and F (d+1, r), H = F F^T, with the choice and the fit of A and K."""

    W: np.ndarray
    factor: np.ndarray
    choice: Selection
    learned: LearnedPrior
    ridge: Ridge


def learn_wide(
    points: Points, Phi, fold, intercept: bool, learn_heads: Callable, given=None
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
        Whether weights end with an intercept.
    learn_heads : callable
        `learn_heads(Points of r columns)` returns the choice and the fit of A and K.
    given : (m,) positions of columns, optional
        The columns whose weights may differ; P is found if there are none.
    """
    X, y, offsets, weight = points
    root = np.ones(len(y)) if weight is None else np.sqrt(weight)
    data = WideRows(X if weight is None else times(X, root), offsets, Phi)
    directions = Directions.first(X, intercept, given)
    kappa = 1.0 if Phi.shape[1] else np.inf

    def noise_of(prior: Prior) -> TaskNoise:
        return TaskNoise(root[:, None] * (directions.Z @ prior.L), prior.s2, offsets)

    def rough_fit(target) -> Prior:
        stats = SquaredState.of(directions.Z, target, offsets, weight)
        return learn_prior(stats, Phi, "diagonal", kappa, stopping=ROUGH).prior

    prior, ridge = rough_fit(y), None
    for turn in range(ROUNDS):
        noise = noise_of(prior)
        target = y - np.einsum("ij,ij->i", directions.Z, prior.theta(Phi)[data.task])
        ridge = choose_ridge(data, root * target, noise, ridge)
        fit = fit_folds(data, root * target, noise, ridge, fold)
        held_out = fit.held_out / root
        if turn + 1 < ROUNDS:
            if given is None:
                directions = directions.useful(rough_fit(y - held_out), len(Phi))
                found = differing_columns(data.X, root * (target - held_out), noise)
                directions = directions.with_columns(X, found)
            prior = rough_fit(y - held_out)
    if given is None and not ridge.c:
        directions = directions.with_mean(fit.B[-1], held_out)
    choice, learned = learn_heads(Points(directions.Z, y - held_out, offsets, weight))
    P, prior = directions.P, learned.prior
    B = np.hstack([fit.B, np.zeros((len(fit.B), 1))]) if intercept else fit.B
    return WidePrior(B + prior.W @ P.T, P @ prior.L, choice, learned, ridge)
