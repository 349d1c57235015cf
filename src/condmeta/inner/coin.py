r"""Betting: one pass over a task's points without a step size (Krichevsky-Trofimov).

A gambler with wealth A_1 = stake bets on every point; the wealth decides how far w moves:

    w_i = theta - A_i g_{i-1} / (R i),                 g_i = sum_{j <= i} s_j x_j,
    A_{i+1} = A_i - s_i <x_i, w_i - theta> / R,        s_i = sign(<x_i, w_i> - y_i).

R >= ||x_i|| keeps the wealth positive; a longer row enters the bet (g and A, not s) with its norm
clipped to R. The predictor is the mean of w_1..w_n: one point alone returns theta. g_n / n is the
meta-gradient. Doubling x halves w, doubling y doubles it, if R and the stake scale with them.

Ties: a residual r_i counts as zero, and s_i as 0, when |r_i| <= 1e-10 (|y_i| + ||x_i|| (||theta||
+ A_i)). Otherwise rounding would decide a sign that is zero in exact arithmetic.
"""

from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from condmeta.engine import twin
from condmeta.inner.algorithms import Solved
from condmeta.inner.online import TIE
from condmeta.losses import Absolute
from condmeta.persistence.fields import floats, number, point_counts
from condmeta.persistence.registry import construct, register, register_tuple


@register_tuple(
    fields={
        "slope_sum": floats("T d"), "path_sum": floats("T d"), "wealth": floats("T", low=0),
        "count": point_counts("T"),
    }
)  # fmt: skip
class CoinTasks(NamedTuple):
    """The state of the bets of each of T tasks: all that further points need.

    Attributes
    ----------
    slope_sum : (T, d)   g_n = sum of s_j x_j
    path_sum : (T, d)    sum over i of A_i g_{i-1} / (R i) = theta - w_i
    wealth : (T,)        A_{n+1}
    count : (T,)         n, the points seen
    """

    slope_sum: np.ndarray
    path_sum: np.ndarray
    wealth: np.ndarray
    count: np.ndarray

    @classmethod
    def start(cls, n_tasks: int, n_features: int, stake: float) -> Self:
        """Return the state of tasks that have seen no point."""
        slope_sum, path_sum = np.zeros((2, n_tasks, n_features))
        return cls(slope_sum, path_sum, np.full(n_tasks, stake), np.zeros(n_tasks, np.int64))

    def coef(self, theta: np.ndarray) -> np.ndarray:
        """Return the mean iterate of each task, theta itself where there are no points."""
        return theta - self.path_sum / np.maximum(self.count, 1)[:, None]


@register(restore=construct, fields={"radius": number(low=0), "stake": number(low=0)})
class Coin:
    """Betting as the inner algorithm of a learner.

    Parameters
    ----------
    radius : float
        R, the longest row of the training tasks.
    stake : float
        The wealth of every task before its first point: about how far w will move from theta.
    """

    resumable = True
    loss = Absolute()

    def __init__(self, radius: float, stake: float):
        self.radius, self.stake = radius, stake

    def solve(self, theta, X, y):
        """Return the mean iterate, the meta-gradient and nan (the pass computes no gap)."""
        solved = self.solve_tasks(theta[None], X, y, np.array([0, len(y)]))
        return solved.coef[0], solved.state.slope_sum[0] / max(len(y), 1), np.nan

    def solve_tasks(self, theta, X, y, offsets, state=None, n_jobs=1, keep_state=True) -> Solved:
        """Run each task's bets from its theta, or continue from `state` (left untouched)."""
        before = CoinTasks.start(*theta.shape, self.stake) if state is None else state
        state = CoinTasks(*(array.copy() for array in before))
        coin_tasks(theta, X, y, offsets, self.radius, *state, n_jobs)
        return Solved(state.coef(theta), state=state if keep_state else None)


@twin
def coin_tasks(theta, X, y, offsets, radius, slope_sum, path_sum, wealth, count, n_jobs) -> None:
    """Bet on the points of T tasks, from their states and in place.

    theta, slope_sum, path_sum (T, d); X (N, d); y (N,); offsets (T+1,); wealth, count (T,).
    """
    for t, (lo, hi) in enumerate(pairwise(offsets)):
        wealth[t] = run_bets(
            theta[t], X[lo:hi], y[lo:hi], radius, slope_sum[t], path_sum[t], wealth[t], count[t]
        )
        count[t] += hi - lo


def row_norms(X) -> np.ndarray:
    """Return ||x_i|| of the rows."""
    return np.sqrt(np.einsum("ij,ij->i", X, X))


def run_bets(theta, X, y, radius, g, path, wealth, count) -> float:
    """Bet on the points of one task, in place on g and path; return the wealth."""
    norms = row_norms(X)
    cut = np.divide(radius, norms, out=np.ones_like(norms), where=norms > radius)
    by_radius = 1.0 / radius if radius > 0 else 0.0  # all rows are zero: nothing moves
    size = np.sqrt(theta @ theta)
    start = X @ theta
    for j, (x, label) in enumerate(zip(X, y, strict=True)):
        share = wealth * by_radius / (count + j + 1)
        move = -share * (x @ g)  # <x, w - theta>
        path += share * g
        residual = start[j] + move - label
        tie = TIE * (abs(label) + norms[j] * (size + wealth))
        bet = np.sign(residual) * cut[j] if abs(residual) > tie else 0.0
        wealth -= bet * move * by_radius
        g += bet * x
    return wealth
