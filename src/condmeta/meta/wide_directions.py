r"""The directions in which the weights of tasks may differ, for tables of many columns.

A covariance H of d x d cannot be learned from tasks with fewer rows than columns: H = P K P^T, with
K learned and P (d, r) made of

- the leading principal directions of the rows: in a direction of small variance, a few points say
  nothing about a task's weight, so that the task stays at the mean of all tasks;
- columns with coefficients that differ clearly between tasks, by the score test of a variance of
  zero: with u_t = x_t^T V_t^-1 e_t and i_t = x_t^T V_t^-1 x_t for column x_t and residuals e_t,
  sum_t (u_t^2 - i_t) is the derivative of twice the log likelihood by the variance, with the
  variance 2 sum_t i_t^2 under the null hypothesis;
- the mean of the weights of all tasks: a task may be a multiple of it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from sklearn.utils.extmath import randomized_svd

from condmeta.meta.prior import Prior
from condmeta.meta.wide_noise import TaskNoise

PRINCIPAL = 20  # principal directions
MOST_COLUMNS = 16  # single columns
MARGIN = 1.5  # by which a score must exceed that expected of the largest of d, sqrt(2 log d)


class Directions(NamedTuple):
    """P (d, r), and the rows Z = X P (N, r)."""

    P: np.ndarray
    Z: np.ndarray

    @classmethod
    def first(cls, X, columns=None) -> Self:
        """Return the given columns of X (N, d), or its principal directions."""
        nothing = cls(np.empty((X.shape[1], 0)), np.empty((X.shape[0], 0)))
        if columns is not None:
            return nothing.with_columns(X, columns)
        P = principal_directions(X)
        return cls(P, X @ P)

    def rows(self, intercept: bool) -> np.ndarray:
        """Return Z, with a column of ones if there is an intercept."""
        return np.hstack([self.Z, np.ones((len(self.Z), 1))]) if intercept else self.Z

    def with_columns(self, X, columns) -> Self:
        """Return it with columns of X as further directions."""
        V = np.zeros((len(self.P), len(columns)))
        V[columns, np.arange(len(columns))] = 1.0
        return type(self)(np.hstack([V, self.P]), np.hstack([X @ V, self.Z]))

    def with_mean(self, b, predicted) -> Self:
        """Return it with the direction of b (d,), in which rows are predictions (N,) / ||b||."""
        size = float(np.linalg.norm(b))
        if not size > 0:
            return self
        Z = np.hstack([predicted[:, None] / size, self.Z])
        return type(self)(np.hstack([b[:, None] / size, self.P]), Z)

    def useful(self, prior: Prior, n_tasks: int) -> Self:
        """Return the directions in which the points of a task say something about its weight.

        In direction j, with variance h_j, the ratio of variances is h_j z_j^T z_j / s2. If h_j is
        zero, its estimate has about the standard error sqrt(2 / T): a direction stays if it has
        twice that. The clearest one always stays.
        """
        h = prior.H.diagonal()[: self.Z.shape[1]]
        ratio = np.einsum("ij,ij->j", self.Z, self.Z) / n_tasks * h / prior.s2
        kept = ratio >= min(2 * np.sqrt(2 / n_tasks), ratio.max())
        return type(self)(self.P[:, kept], self.Z[:, kept])


def principal_directions(X) -> np.ndarray:
    """Return orthonormal directions (d, r) of the largest sums of squares of rows X (N, d)."""
    r = min(PRINCIPAL, *X.shape)
    return randomized_svd(X, r, n_iter=4, random_state=0)[2].T


def differing(X, residual, noise: TaskNoise) -> np.ndarray:
    """Return the positions of columns with weights that differ between tasks, clearest first."""
    d = X.shape[1]
    white, score, variance = noise.solve(residual), np.zeros(d), np.zeros(d)
    for t, (lo, hi) in enumerate(pairwise(noise.offsets)):
        rows = X[lo:hi]
        squares = rows.multiply(rows) if hasattr(rows, "multiply") else rows * rows
        information = np.asarray(squares.sum(axis=0)).ravel() - (noise.inside(X, t) ** 2).sum(
            axis=0
        )
        information = np.maximum(information, 0.0) / noise.s2
        score += (rows.T @ white[lo:hi]) ** 2 - information
        variance += 2 * information**2
    z = score / np.sqrt(np.maximum(variance, 1e-300))
    order = np.argsort(-z, kind="stable")[:MOST_COLUMNS]
    return order[z[order] > np.sqrt(2 * np.log(max(d, 2))) + MARGIN]
