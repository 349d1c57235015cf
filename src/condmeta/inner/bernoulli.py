"""The inner algorithm of a learned prior with two classes, and the state that predictions need."""

from typing import NamedTuple

import numpy as np

from condmeta.inner.algorithms import Solved
from condmeta.inner.posterior import precision
from condmeta.inner.squared import SquaredState
from condmeta.inner.variational import Variational, invert, variational_pass
from condmeta.losses import LogisticLoss
from condmeta.persistence.fields import floats
from condmeta.persistence.registry import construct, register, register_tuple

BLOCK = 1 << 20  # numbers in the largest temporary


def find_posteriors(X, y, offsets, theta, factor, tol=1e-9, n_jobs=1, times=None) -> Variational:
    """Return the posteriors of tasks (see `variational_pass`), started at z = 0."""
    start = np.full(len(y), 0.1) * (1.0 if times is None else times), np.zeros(len(y))
    return Variational(*variational_pass(X, y, offsets, theta, factor, *start, tol, n_jobs, times))


def weighted_statistics(X, offsets, weight) -> SquaredState:
    """Return statistics of tasks with gram = X^T diag(weight) X; their labels are zero."""
    return SquaredState.of(np.sqrt(weight)[:, None] * X, np.zeros(len(X)), offsets)


@register_tuple(fields={"covariance": floats("T d d")})
class Covariances(NamedTuple):
    """The state of T tasks that predictions need: covariance (T, d, d) of the weights."""

    covariance: np.ndarray

    predicts = True  # so that model files always hold it


@register(restore=construct, fields={"factor": floats("d d")})
class Bernoulli:
    """The inner algorithm A(theta, Z) = mean of the posterior, with a learned metric.

    Parameters
    ----------
    factor : (d, d) array
        L, lower triangular, H = L L^T.
    """

    resumable = False  # the covariance is invalid once points are added
    loss = LogisticLoss()

    def __init__(self, factor):
        self.factor = factor

    def solve(self, theta, X, y):
        """Return the mean, the gradient of the averaged loss there, and no gap."""
        found = find_posteriors(X, y, np.array([0, len(y)]), theta[None], self.factor)
        return theta + self.factor @ found.z[0], -found.g[0] / len(y), 0.0

    def solve_tasks(
        self, theta, X, y, offsets, state=None, n_jobs=1, keep_state=True, weight=None
    ) -> Solved:
        """Return the mean of every task, and its covariance as the state."""
        found = find_posteriors(X, y, offsets, theta, self.factor, n_jobs=n_jobs, times=weight)
        mean = theta + found.z @ self.factor.T
        if not keep_state:
            return Solved(mean)
        # P = L A^-1 L^T; H of tasks without points
        gram = weighted_statistics(X, offsets, found.weight).gram
        inverse, _ = invert(precision(gram, self.factor, np.ones(len(gram))))
        return Solved(mean, state=Covariances(self.factor @ inverse @ self.factor.T))

    def variances(self, state: Covariances, rows, codes) -> np.ndarray:
        """Return <x, P x> of rows (N, d); `codes` (N,) are positions of their tasks."""
        out, block = np.empty(len(rows)), max(BLOCK // rows.shape[1] ** 2, 1)
        for lo in range(0, len(rows), block):
            at = slice(lo, lo + block)
            parts = rows[at], state.covariance[codes[at]], rows[at]
            out[at] = np.einsum("ij,ijk,ik->i", *parts, optimize=True)
        return np.maximum(out, 0.0)
