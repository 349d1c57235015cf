r"""Algorithm 1 of the paper by kernel evaluations only: no feature map, no matrix M.

With kk(a, b) = k(a, b) + 1, in which the 1 is the part of b, only the side information s_j of a
task and its meta-gradient g_j are stored:

    theta_{t+1} = -meta_step sum_{j<=t} kk(s_j, s_{t+1}) g_j
    tau(s)      = sum_j c_j kk(s_j, s) g_j,    c_j = -meta_step (1 - j/T)               "uniform"
                                               c_j = -meta_step (1 - j(j+1)/(T(T+1)))   "linear"
                                               c_j = -meta_step                         "last"
    b           = sum_j c_j g_j
    ||(M, b)||_F^2 = sum_ij c_i c_j <g_i, g_j> kk(s_i, s_j)

T(T-1)/2 evaluations in all, a block of rows at a time: memory stays O(T (d + |s|)).
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from condmeta.engine import twin
from condmeta.meta.sgd import inner_gradient

ROWS = 32  # rows of kernel values held at a time


class KernelMap(NamedTuple):
    """The learned map: side information of its support, and weights (T, d) = c_j g_j."""

    sides: Any
    weights: np.ndarray


def task_weights(n_tasks: int, meta_step: float, averaging: str = "uniform") -> np.ndarray:
    """Return c (T,), the weights of the tasks in the learned map."""
    j, T = np.arange(1.0, n_tasks + 1), n_tasks
    if averaging == "last":
        return np.full(n_tasks, -meta_step)
    share = j / T if averaging == "uniform" else j * (j + 1) / (T * (T + 1))
    return meta_step * (share - 1.0)


@twin
def kernel_pass(sides, gradients, start, X, y, offsets, kernel, lam, loss, meta_step, batch, tol):
    """Run Algorithm 1 over T tasks after `start` earlier ones, with a built-in inner algorithm.

    sides: side information of all tasks, the earlier ones first; gradients (start + T, d), of which
    the rows from `start` on are the result; X (N, d), y (N,), offsets (T+1,) of the T tasks, each
    with at least one point. Returns -1, or the position of the first task with an inner pass that
    diverges.
    """
    gradient = inner_gradient(lam, loss, batch, tol)
    return kernel_steps(sides, gradients, start, X, y, offsets, kernel, gradient, meta_step)


def kernel_steps(sides, gradients, start, X, y, offsets, kernel, gradient, meta_step) -> int:
    """Run Algorithm 1 with any inner algorithm: `gradient(theta, X, y)` returns g, or None."""
    kk = np.empty((0, 0))
    for t, (lo, hi) in enumerate(pairwise(offsets)):
        at, row = start + t, t % ROWS
        if row == 0:
            stop = min(at + ROWS, len(sides))
            kk = kernel.gram(sides[at:stop], sides[:stop]) + 1.0
        theta = -meta_step * (kk[row, :at] @ gradients[:at])
        g = gradient(theta, X[lo:hi], y[lo:hi])
        if g is None or not np.isfinite(g).all():
            return t
        gradients[at] = g
    return -1


@twin
def kernel_theta(rows, sides, weights, kernel, n_jobs) -> np.ndarray:
    """Return sum_j kk(s_j, s) weights_j of V tasks, (V, d).

    rows: side information of the V tasks; sides: of the support; weights (T, d) = c_j g_j.
    """
    out = np.empty((len(rows), weights.shape[1]))
    for lo in range(0, len(rows), ROWS):
        block = slice(lo, lo + ROWS)
        out[block] = (kernel.gram(rows[block], sides) + 1.0) @ weights
    return out


def squared_norm(sides, weights, kernel, n_jobs=1) -> float:
    """Return ||(M, b)||_F^2 of the map with weights (T, d) = c_j g_j."""
    return float(np.sum(weights * kernel_theta(sides, sides, weights, kernel, n_jobs)))


def learning_curve(
    rows, sides, gradients, kernel, meta_step, averaging="uniform"
) -> Iterator[np.ndarray]:
    """Yield tau_T(s) of V tasks, (V, d), as learned from the first T = 1, 2, ... tasks.

    Two running sums give every average, O(d) numbers a task:
    A_T = sum_{j<=T} kk_j g_j and B_T = sum_{j<=T} q_j kk_j g_j, with q_j = j (or j(j+1)/2,
    "linear"); then tau_T(s) = -meta_step (A_T - B_T / q_T), and -meta_step A_T is the last iterate.
    """
    A = np.zeros((len(rows), gradients.shape[1]))
    B = np.zeros_like(A)
    for lo in range(0, len(sides), ROWS):
        kk = kernel.gram(rows, sides[lo : lo + ROWS]) + 1.0
        for T, column in enumerate(kk.T, start=lo + 1):
            q = T * (T + 1) / 2 if averaging == "linear" else T
            step = np.outer(column, gradients[T - 1])
            A += step
            B += q * step
            yield meta_step * ((0.0 if averaging == "last" else B / q) - A)
