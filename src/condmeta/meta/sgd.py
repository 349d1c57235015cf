r"""Algorithm 1 of the paper: stochastic gradient steps on the map, one task a step.

    theta_t = M_t Phi(s_t) + b_t,   g_t = meta-gradient of the inner run on task t at theta_t,
    M_{t+1} = M_t - meta_step g_t Phi(s_t)^T,   b_{t+1} = b_t - meta_step g_t,   M_1 = 0, b_1 = 0.

With Phi1 = (Phi, 1) and G_t = Phi1(s_t) g_t^T all iterates and averages follow from two sums,

    grad_sum = sum_t G_t,   weighted_sum = sum_t q_t G_t,   q_t = t  (or t(t+1)/2, "linear"),

no copy of the map is kept for each step, and a stream can be continued bit for bit:

    M_{T+1}                = -meta_step grad_sum                                 "last"
    mean(M_1..M_T)         = meta_step (weighted_sum / T - grad_sum)             "uniform"
    sum t M_t / sum t      = meta_step (weighted_sum / (T(T+1)/2) - grad_sum)    "linear"
    mean(M_2..M_{T+1})     = meta_step (weighted_sum - (T+1) grad_sum) / T   gradient_at="average"

Maps are stored feature-major, (k+1, d), the last row being b.
"""

from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from condmeta.engine import twin
from condmeta.inner.batch import solve_dual
from condmeta.inner.online import run_points
from condmeta.persistence.fields import floats
from condmeta.persistence.registry import register_tuple

AVERAGING = ("uniform", "linear", "last")
GRADIENT_AT = ("current", "average")


@register_tuple(
    fields={
        "grad_sum": floats("k+1 d"), "weighted_sum": floats("k+1 d"), "phi_sum": floats("k+1"),
    }
)  # fmt: skip
class SGDState(NamedTuple):
    """The state of the meta-learner after T tasks: all that further tasks need.

    Attributes
    ----------
    grad_sum, weighted_sum : (k+1, d)
    phi_sum : (k+1,)    sum of Phi1; its last entry is T
    """

    grad_sum: np.ndarray
    weighted_sum: np.ndarray
    phi_sum: np.ndarray

    @classmethod
    def start(cls, k: int, d: int) -> Self:
        """Return the state before the first task, M_1 = 0 and b_1 = 0."""
        return cls(np.zeros((k + 1, d)), np.zeros((k + 1, d)), np.zeros(k + 1))

    def copy(self) -> Self:
        """Return a state that can be advanced without touching this one."""
        return type(self)(*(array.copy() for array in self))

    @property
    def n_tasks(self) -> int:
        """T, the tasks seen."""
        return int(self.phi_sum[-1])

    @property
    def phi_mean(self) -> np.ndarray:
        """The mean training Phi (k,), 0 before the first task."""
        return self.phi_sum[:-1] / max(self.n_tasks, 1)

    def map(self, meta_step: float, averaging="uniform", gradient_at="current") -> np.ndarray:
        """Return the learned map (k+1, d): M transposed over b."""
        T = max(self.n_tasks, 1)
        A, B = self.grad_sum, self.weighted_sum
        if gradient_at == "average":
            return meta_step * ((B - (T + 1) * A) / T)
        if averaging == "last":
            return meta_step * (0.0 - A)
        return meta_step * (B / (T if averaging == "uniform" else T * (T + 1) / 2) - A)


@twin
def sgd_pass(
    grad_sum, weighted_sum, phi_sum, X, y, offsets, Phi,
    lam, loss, meta_step, linear, at_average, batch, tol,
) -> int:  # fmt: skip
    """Run Algorithm 1 over T tasks with a built-in inner algorithm, in place on the state.

    grad_sum, weighted_sum (k+1, d); phi_sum (k+1,); X (N, d); y (N,); offsets (T+1,); Phi (T, k);
    linear, at_average, batch: bool. Tasks without points are skipped.
    Returns -1, or the position of the first task with an inner pass that diverges.
    """
    state = SGDState(grad_sum, weighted_sum, phi_sum)
    gradient = inner_gradient(lam, loss, batch, tol)
    return sgd_steps(state, X, y, offsets, Phi, gradient, meta_step, linear, at_average)


def inner_gradient(lam, loss, batch, tol):
    """Return `gradient(theta, X, y)` of a built-in inner algorithm: g, or None if it diverges."""

    def gradient(theta, X, y):
        if batch:
            return X.T @ solve_dual(theta, X, y, np.ones(len(y)), lam, loss, tol) / len(y)
        u = np.zeros_like(theta)
        _, finite = run_points(theta, X, y, lam, loss, u, np.zeros_like(theta), 0.0, 0)
        return u / len(y) if finite else None

    return gradient


def sgd_steps(state, X, y, offsets, Phi, gradient, meta_step, linear, at_average) -> int:
    """Run Algorithm 1 with any inner algorithm: `gradient(theta, X, y)` returns g, or None."""
    A, B, phi_sum = state
    phi1 = np.ones(len(A))
    for t, (lo, hi) in enumerate(pairwise(offsets)):
        if lo == hi:
            continue
        step = phi_sum[-1] + 1  # t in the paper
        phi1[:-1] = Phi[t]
        theta = -meta_step * (phi1 @ A)
        if at_average and step > 1:
            theta = (step * theta + meta_step * (phi1 @ B)) / (step - 1)
        g = gradient(theta, X[lo:hi], y[lo:hi])
        if g is None or not np.isfinite(g).all():
            return t
        update = np.outer(phi1, g)
        A += update
        B += (step * (step + 1) / 2 if linear else step) * update
        phi_sum += phi1
    return -1
