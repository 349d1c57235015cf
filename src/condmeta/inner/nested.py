r"""The weights of tasks in groups: each task has a prior of its own, from the tasks of its group.

Given all other tasks, the weights of a task are w ~ N(theta, Q): Q is the covariance H between the
tasks of a group, and what is left open about the group. With S = X^T X, e = X^T (y - X theta),

    m = theta + Q g,   g = (s2 I + S Q)^-1 e,   covariance s2 Q (s2 I + S Q)^-1

are mean and covariance given its own points as well. Q may be singular.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from condmeta.inner.algorithms import Solved
from condmeta.inner.posterior import BLOCK, PRIOR_POINTS, ROUNDS, Posterior
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
            stats, Q, at = state.squared.take(part), state.covariance[part], theta[part]
            e = stats.moment - np.einsum("tij,tj->ti", stats.gram, at)
            mean[part], system = _solve(stats, Q, at, e, noise[part])
            for _ in range(ROUNDS if self.own_noise else 0):
                # tr(S P) = s2 tr(S Q (s2 I + S Q)^-1)
                open_ = np.einsum("tii->t", np.linalg.solve(system, stats.gram @ Q))
                rss = stats.squared_errors(mean[part]) + noise[part] * open_
                noise[part] = own_noise(rss, stats.count, self.s2)
                mean[part], system = _solve(stats, Q, at, e, noise[part])
        return Posterior(mean, noise)

    def covariances(self, state: NestedState, theta) -> np.ndarray:
        """Return the covariances (T, d, d) of the weights of tasks given their points."""
        s2, Q = self.posterior(state, theta).s2, state.covariance
        # Q (s2 I + S Q)^-1 is the transpose of (s2 I + Q S)^-1 Q
        P = s2[:, None, None] * np.linalg.solve(np.swapaxes(_system(state.gram, Q, s2), 1, 2), Q)
        return (P + np.swapaxes(P, 1, 2)) / 2

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


def _solve(stats: SquaredState, Q, theta, e, s2) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior means (T, d), and s2 I + S Q of each task."""
    system = _system(stats.gram, Q, s2)
    g = np.linalg.solve(system, e[:, :, None])[:, :, 0]
    return theta + np.einsum("tij,tj->ti", Q, g), system


def _system(gram, Q, s2) -> np.ndarray:
    """Return s2 I + S Q of each task (T, d, d)."""
    system = gram @ Q
    system[:, np.arange(system.shape[1]), np.arange(system.shape[1])] += s2[:, None]
    return system
