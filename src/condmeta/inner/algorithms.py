"""The inner algorithms as objects, with the one interface that learners use.

An inner algorithm has `solve(theta, X, y) -> (w, gradient, gap)`: the weight vector of a task, an
(eps-)subgradient of its meta-loss at theta, and the gap that bounds eps (nan where unknown). That
is all an algorithm of one's own needs. The built-in ones also solve many tasks at once, and where
their state allows it go on exactly when a task gets further points.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError, DivergenceError
from condmeta.inner.batch import batch_tasks, mean_loss_at, require_conjugate
from condmeta.inner.online import OnlineState, online_tasks
from condmeta.inner.squared import SquaredState
from condmeta.losses import get_loss


class Solved(NamedTuple):
    """Many tasks solved: coef (T, d), gap (T,) or None, the state that further points need or None.

    `unsolved` lists the tasks whose gap stayed above the tolerance.
    """

    coef: np.ndarray
    gap: np.ndarray | None = None
    state: Any = None
    unsolved: np.ndarray | None = None


class Online:
    """Fine-tuning, one pass (`condmeta.inner.online`)."""

    resumable = True

    def __init__(self, lam: float, loss):
        self.lam, self.loss = float(lam), get_loss(loss)

    def solve(self, theta, X, y):
        """Return the mean iterate, the meta-gradient and nan (the pass computes no gap)."""
        solved = self.solve_tasks(theta[None], X, y, np.array([0, len(y)]))
        gradient = solved.state.slope_sum[0] / max(len(y), 1)
        return solved.coef[0], gradient, np.nan

    def solve_tasks(self, theta, X, y, offsets, state=None, n_jobs=1, keep_state=True) -> Solved:
        """Run each task's pass from its theta, or go on from `state` (left untouched)."""
        if state is None:
            state = OnlineState.start(*theta.shape)
        else:
            state = OnlineState(*(array.copy() for array in state))
        bad = online_tasks(theta, X, y, offsets, self.lam, self.loss, *state, n_jobs)
        if bad >= 0:
            raise diverged(bad, self.lam)
        return Solved(state.coef(theta, self.lam), state=state if keep_state else None)


class Batch:
    """Biased regularisation, the exact minimiser (`condmeta.inner.batch`)."""

    def __init__(self, lam: float, loss, tol: float = 1e-6):
        self.lam, self.loss, self.tol = float(lam), require_conjugate(get_loss(loss)), tol

    @property
    def resumable(self) -> bool:
        """Whether further points can be added exactly: for the squared loss alone."""
        return getattr(self.loss, "name", None) == "squared"

    def coef(self, state: SquaredState, theta) -> np.ndarray:
        """Return the minimisers (T, d) of tasks from their statistics."""
        return state.coef(theta, self.lam)

    def solve(self, theta, X, y):
        """Return the minimiser, the meta-gradient and the duality gap."""
        offsets = np.array([0, len(y)])
        coef, gradient, gap, _ = batch_tasks(
            theta[None], X, y, offsets, self.lam, self.loss, self.tol, 1
        )
        return coef[0], gradient[0], float(gap[0])

    def solve_tasks(
        self, theta, X, y, offsets, state=None, n_jobs=1, keep_state=True, weight=None
    ) -> Solved:
        """Solve each task around its theta; with `state`, on its earlier points as well."""
        if state is not None:
            state = state.extend(X, y, offsets, weight)
            return Solved(self.coef(state, theta), np.zeros(len(theta)), state)
        coef, _, gap, _ = batch_tasks(
            theta, X, y, offsets, self.lam, self.loss, self.tol, n_jobs, weight
        )
        if self.resumable:
            return Solved(coef, gap, SquaredState.of(X, y, offsets, weight) if keep_state else None)
        unit = mean_loss_at(theta, X, y, offsets, self.loss, weight)
        reached = gap <= np.maximum(self.tol * unit, 1e-15)
        return Solved(coef, gap, unsolved=np.flatnonzero(~reached))


INNER = {"online": Online, "batch": Batch}


def get_inner(inner, lam: float, loss, tol: float):
    """Return the inner algorithm of a name, or the object itself if it has `solve`."""
    if inner == "online":
        return Online(lam, loss)
    if inner == "batch":
        return Batch(lam, loss, tol)
    if not isinstance(inner, str) and hasattr(inner, "solve"):
        return inner
    raise DataError(
        "The 'inner' parameter must be 'online', 'batch' or an object with a method 'solve'. "
        f"Got {inner!r} instead."
    )


def solve_tasks(inner, theta, X, y, offsets, n_jobs=1, keep_state=True, weight=None) -> Solved:
    """Solve T tasks by any inner algorithm, built-in or of the user's.

    Only algorithms that have a weight read one.
    """
    if hasattr(inner, "solve_tasks"):
        options = {"n_jobs": n_jobs, "keep_state": keep_state} | weighted(weight)
        return inner.solve_tasks(theta, X, y, offsets, **options)
    coef, gap = theta.copy(), np.zeros(len(theta))
    for t, (lo, hi) in enumerate(pairwise(offsets)):
        if lo < hi:
            coef[t], _, gap[t] = inner.solve(theta[t], X[lo:hi], y[lo:hi])
    return Solved(coef, gap)


def weighted(weight) -> dict:
    """Return the argument `weight` where there is one: online algorithms have no such argument."""
    return {} if weight is None else {"weight": weight}


def diverged(position: int, lam: float) -> DivergenceError:
    """Return the error for a task, by position, whose online pass diverges."""
    error = DivergenceError(
        f"The online pass diverges at lam={lam:g}. Use inner='batch', a larger lam, a loss with "
        "bounded slopes, or scale='standard'."
    )
    error.position = position
    return error
