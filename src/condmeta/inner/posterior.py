r"""Biased regularisation with a learned metric: the posterior of a task's weights.

A task's weights are w ~ N(theta, H) and its labels y_i ~ N(<x_i, w>, s2). With H = L L^T,
S = X^T X and A = I + L^T S L / s2,

    P = L A^-1 L^T,   m = theta + P X^T (y - X theta) / s2

are the covariance and the mean of w given the points; H is never inverted, and may be singular.
Algorithm 1's regulariser lam/2 ||w - theta||^2 is the case H = s2/(n lam) I.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.engine import twin
from condmeta.inner.algorithms import Solved
from condmeta.inner.squared import SquaredState

PRIOR_POINTS = 4.0  # a task's own noise counts as many residuals as if it had these more points
ROUNDS = 10  # of weights and own noise in turn
BLOCK = 1 << 21  # numbers in the largest temporary of the NumPy engine


@twin
def posterior_pass(gram, moment, square, count, theta, factor, s2, n_jobs):
    """Return the posteriors of T tasks: m (T, d), sum of A^-1 (d, d), rss (T,), loglik (T,).

    gram, moment, square, count: see `SquaredState`; theta (T, d); factor L (d, d), lower
    triangular; s2 (T,). rss is the expected ||y - X w||^2, loglik the log density of y, both given
    H and s2. Tasks are independent: the compiled twin runs chunks of them on `n_jobs` threads.
    """
    T, d = theta.shape
    mean, inverses = np.empty((T, d)), np.zeros((d, d))
    rss, loglik = np.empty(T), np.empty(T)
    for lo in range(0, T, max(BLOCK // (d * d), 1)):
        part = slice(lo, lo + max(BLOCK // (d * d), 1))
        S, at, noise = gram[part], theta[part], s2[part]
        A = precision(S, factor, noise)
        inverse = np.linalg.inv(A)
        logdet = 2 * np.log(np.einsum("tii->ti", np.linalg.cholesky(A))).sum(axis=1)
        fitted = np.einsum("tij,tj->ti", S, at)
        e = moment[part] - fitted  # X^T (y - X theta)
        u = e @ factor
        v = np.einsum("tij,tj->ti", inverse, u)
        move = v @ factor.T / noise[:, None]
        residual = square[part] + np.einsum("ti,ti->t", at, fitted - 2 * moment[part])
        residual = np.maximum(residual, 0.0)  # ||y - X theta||^2
        after = residual + np.einsum("ti,ti->t", move, np.einsum("tij,tj->ti", S, move) - 2 * e)
        mean[part] = at + move
        inverses += inverse.sum(axis=0)
        # tr(S P) = s2 tr(I - A^-1)
        rss[part] = np.maximum(after, 0.0) + noise * (d - np.einsum("tii->t", inverse))
        surprise = (residual - np.einsum("ti,ti->t", u, v) / noise) / noise
        loglik[part] = -0.5 * (count[part] * np.log(2 * np.pi * noise) + logdet + surprise)
    return mean, inverses, rss, loglik


def precision(S, factor, s2) -> np.ndarray:
    """Return A = I + L^T S L / s2 of each task (T, d, d)."""
    A = factor.T @ S @ factor
    A /= s2[:, None, None]
    A[:, np.arange(len(factor)), np.arange(len(factor))] += 1.0
    return A


class Posterior(NamedTuple):
    """Posteriors of T tasks: mean (T, d), s2 (T,), and for each the rss that its noise is from."""

    mean: np.ndarray
    s2: np.ndarray


class Gaussian:
    """The inner algorithm A(theta, Z) = m, for a metric and a noise that were learned.

    Parameters
    ----------
    factor : (d, d) array
        L, lower triangular, H = L L^T.
    s2 : float
        The variance of the noise.
    own_noise : bool
        Whether each task has a noise of its own, s2_t = (rss_t + 4 s2) / (n_t + 4), in turn with
        its weights.
    """

    resumable = True

    def __init__(self, factor, s2: float, own_noise: bool):
        self.factor, self.s2, self.own_noise = factor, float(s2), bool(own_noise)

    def solve(self, theta, X, y):
        """Return m, the gradient -S2/n H^-1 (m - theta) = X^T (X m - y) / n, and no gap."""
        m = self.solve_tasks(theta[None], X, y, np.array([0, len(y)])).coef[0]
        return m, X.T @ (X @ m - y) / len(y), 0.0

    def solve_tasks(self, theta, X, y, offsets, state=None, n_jobs=1, keep_state=True) -> Solved:
        """Return the posterior mean of every task, from its points or with `state` also from those."""
        before = SquaredState.start(*theta.shape) if state is None else state
        state = before.extend(X, y, offsets)
        mean = self.posterior(state, theta, n_jobs).mean
        return Solved(mean, np.zeros(len(mean)), state if keep_state else None)

    def posterior(self, state: SquaredState, theta, n_jobs=1) -> Posterior:
        """Return the posterior means and the noise of tasks."""
        count = state.count.astype(float)
        statistics = *state[:3], count
        s2 = np.full(len(theta), self.s2)
        mean, _, rss, _ = posterior_pass(*statistics, theta, self.factor, s2, n_jobs)
        for _ in range(ROUNDS if self.own_noise else 0):
            s2 = (rss + PRIOR_POINTS * self.s2) / (count + PRIOR_POINTS)
            mean, _, rss, _ = posterior_pass(*statistics, theta, self.factor, s2, n_jobs)
        return Posterior(mean, s2)

    def roots(self, state: SquaredState, s2) -> np.ndarray:
        """Return B (T, d, d) with P_t = B_t B_t^T, the covariances of the weights."""
        lower = np.linalg.cholesky(precision(state.gram, self.factor, s2))
        inverse = np.linalg.inv(lower)  # A^-1 = inverse^T inverse
        return self.factor @ np.swapaxes(inverse, 1, 2)
