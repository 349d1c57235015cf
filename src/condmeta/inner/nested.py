r"""The weights of tasks in groups: each task has a prior of its own, from the tasks of its group.

Given all other tasks, the weights of a task are w ~ N(theta, Q): Q is the covariance H between the
tasks of a group, and what is left open about the group. With S = X^T X, e = X^T (y - X theta),
Q = R R^T, A = I + R^T S R / s2 = C C^T and B = C^-1 R^T,

    m = theta + B^T B e / s2,   covariance B^T B

are mean and covariance given its own points as well. Q is never inverted, and may be singular.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from condmeta.inner.algorithms import Solved
from condmeta.inner.posterior import BLOCK, PRIOR_POINTS, ROUNDS, Posterior, require_finite, root
from condmeta.inner.squared import SquaredState
from condmeta.persistence.fields import FLAG, floats, number
from condmeta.persistence.registry import construct, register, register_tuple


@register_tuple(fields={"base": floats("T d"), "covariance": floats("T d d")})
class TaskPriors(NamedTuple):
    """Priors of T tasks: base (T, d), tau without the group, and covariance Q (T, d, d)."""

    base: np.ndarray
    covariance: np.ndarray

    def take(self, at) -> Self:
        """Return the priors of the tasks at positions `at`."""
        return type(self)(*(array[at] for array in self))


class NestedState(NamedTuple):
    """Statistics of T tasks (see `SquaredState`), and their priors (see `TaskPriors`)."""

    gram: np.ndarray
    moment: np.ndarray
    square: np.ndarray
    count: np.ndarray
    base: np.ndarray
    covariance: np.ndarray

    @property
    def priors(self) -> TaskPriors:
        """The priors alone."""
        return TaskPriors(self.base, self.covariance)

    @property
    def squared(self) -> SquaredState:
        """The statistics alone."""
        return SquaredState(*self[:4])

    def take(self, at) -> Self:
        """Return the state of the tasks at positions `at`."""
        return type(self)(*(array[at] for array in self))


@register(
    restore=construct,
    fields={"factors": floats("m d d"), "s2": number(above=0), "own_noise": FLAG},
)
class NestedGaussian:
    """The inner algorithm A(theta, Z) = m of tasks in groups.

    Parameters
    ----------
    factors : (m, d, d) array
        L of each level, H = L L^T: the top level first, tasks last.
    s2 : float
        The variance of the noise.
    own_noise : bool
        Whether each task has a noise of its own, as for `Gaussian`.
    """

    resumable = True

    def __init__(self, factors, s2: float, own_noise: bool):
        self.factors, self.s2, self.own_noise = factors, float(s2), bool(own_noise)

    def covariance_below(self, level: int) -> np.ndarray:
        """Return the covariance (d, d) of a task's weights around those of its group of a level.

        Level -1 is above the top: the covariance around tau.
        """
        below = self.factors[level + 1 :]
        return np.einsum("mij,mkj->ik", below, below)

    def start(self, theta) -> NestedState:
        """Return the state of tasks without points, in groups that are not known."""
        empty = SquaredState.start(*theta.shape)
        H = self.covariance_below(-1)
        return NestedState(*empty, theta, np.repeat(H[None], len(theta), axis=0))

    def solve(self, theta, X, y):
        """Return m, the gradient X^T (X m - y) / n of the mean squared loss there, and gap 0."""
        m = self.solve_tasks(theta[None], X, y, np.array([0, len(y)])).coef[0]
        return m, X.T @ (X @ m - y) / len(y), 0.0

    def solve_tasks(
        self, theta, X, y, offsets, state=None, n_jobs=1, keep_state=True, weight=None
    ) -> Solved:
        """Return the posterior mean of every task; `state` has its prior and earlier points."""
        before = self.start(theta) if state is None else state
        after = before.squared.extend(X, y, offsets, weight)
        state = NestedState(*after, before.base, before.covariance)
        mean = self.posterior(state, theta).mean
        return Solved(mean, np.zeros(len(mean)), state if keep_state else None)

    def posterior(self, state: NestedState, theta, n_jobs=1) -> Posterior:
        """Return the posterior means and the noise of tasks."""
        mean, noise = np.empty_like(theta), np.full(len(theta), self.s2)
        block = max(BLOCK // theta.shape[1] ** 2, 1)
        for lo in range(0, len(theta), block):
            part = slice(lo, lo + block)
            stats, at = state.squared.take(part), theta[part]
            R = _roots(state.covariance[part])
            e = stats.moment - np.einsum("tij,tj->ti", stats.gram, at)
            mean[part], B = _solve(stats, R, at, e, noise[part])
            for _ in range(ROUNDS if self.own_noise else 0):
                open_ = np.einsum("tij,tij->t", B @ stats.gram, B)  # tr(S P) = tr(B S B^T)
                rss = stats.squared_errors(mean[part]) + open_
                noise[part] = own_noise(rss, stats.count, self.s2)
                mean[part], B = _solve(stats, R, at, e, noise[part])
        return Posterior(mean, noise)

    def covariances(self, state: NestedState, theta) -> np.ndarray:
        """Return the covariances (T, d, d) of the weights of tasks given their points."""
        B = _half(state.gram, _roots(state.covariance), self.posterior(state, theta).s2)
        return np.swapaxes(B, 1, 2) @ B

    def spread(self, state: NestedState, theta, rows, codes, precisions=1.0) -> np.ndarray:
        """Return the standard deviation of a new label at rows (N, d); see `Gaussian.spread`."""
        P, s2 = self.covariances(state, theta), self.posterior(state, theta).s2
        of_score, block = np.empty(len(rows)), max(BLOCK // theta.shape[1] ** 2, 1)
        for lo in range(0, len(rows), block):
            part = slice(lo, lo + block)
            of_score[part] = np.einsum("ni,nij,nj->n", rows[part], P[codes[part]], rows[part])
        return np.sqrt(np.maximum(of_score, 0.0) + s2[codes] / precisions)


def own_noise(rss, count, s2: float) -> np.ndarray:
    """Return a task's own noise (T,), from its expected residuals and the noise of all tasks."""
    return (rss + PRIOR_POINTS * s2) / (count + PRIOR_POINTS)


def _solve(stats: SquaredState, R, theta, e, s2) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior means (T, d), and B of each task (T, d, d)."""
    B = _half(stats.gram, R, s2)
    z = np.einsum("tij,tj->ti", B, e) / s2[:, None]
    return theta + np.einsum("tij,ti->tj", B, z), B


def _roots(Q) -> np.ndarray:
    """Return R with Q = R R^T of each task (T, d, d)."""
    require_finite(Q)
    try:
        return np.linalg.cholesky(Q)
    except np.linalg.LinAlgError:  # one of them is singular
        values, vectors = np.linalg.eigh(Q)
        return vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]


def _half(gram, R, s2) -> np.ndarray:
    """Return B = C^-1 R^T of each task (T, d, d), with C C^T = I + R^T S R / s2."""
    transposed = np.swapaxes(R, 1, 2)
    A = transposed @ gram @ R / s2[:, None, None]
    A[:, np.arange(A.shape[1]), np.arange(A.shape[1])] += 1.0
    return np.linalg.solve(root(A), transposed)
