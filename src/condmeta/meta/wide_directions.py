r"""The directions in which the weights of tasks may differ, for tables of many columns.

A covariance H of d x d cannot be learned from tasks with fewer rows than columns: H = P K P^T, with
K learned and P (d+1, r) made of

- the leading principal directions of the rows: in a direction of small variance, a few points say
  nothing about a task's weight, so that the task stays at the mean of all tasks;
- columns with coefficients that differ clearly between tasks, by the score test of a variance of
  zero: with u_t = x_t^T V_t^-1 e_t and i_t = x_t^T V_t^-1 x_t for column x_t and residuals e_t,
  sum_t (u_t^2 - i_t) is the derivative of twice the log likelihood by the variance, with the
  variance 2 sum_t i_t^2 under the null hypothesis;
- the weights of the mean of all tasks: a task may be a multiple of it;
- the intercept.
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
    """P (d, r), or (d+1, r) with the intercept last, and the rows Z = X P (N, r)."""

    P: np.ndarray
    Z: np.ndarray

    @classmethod
    def first(cls, X, intercept: bool, columns=None) -> Self:
        """Return the given columns of X (N, d), or its principal directions; and the intercept."""
        d = X.shape[1]
        V = principal_directions(X) if columns is None else np.eye(d)[:, columns]
        P, Z = V, X @ V
        if intercept:
            P = np.zeros((d + 1, V.shape[1] + 1))
            P[:d, :-1], P[d, -1] = V, 1.0
            Z = np.hstack([Z, np.ones((len(Z), 1))])
        return cls(P, Z)

    def with_columns(self, X, columns) -> Self:
        """Return it with columns of X as further directions."""
        V = np.zeros((len(self.P), len(columns)))
        V[columns, np.arange(len(columns))] = 1.0
        return type(self)(np.hstack([V, self.P]), np.hstack([X @ V[: X.shape[1]], self.Z]))

    def with_mean(self, b, predicted) -> Self:
        """Return it with the direction of b (d,), in which rows are predictions (N,) / ||b||."""
        size = float(np.linalg.norm(b))
        if not size > 0:
            return self
        v = np.zeros((len(self.P), 1))
        v[: len(b), 0] = b / size
        return type(self)(np.hstack([v, self.P]), np.hstack([predicted[:, None] / size, self.Z]))

    def useful(self, prior: Prior, n_tasks: int) -> Self:
        """Return the directions in which the points of a task say something about its weight.

        In direction j, with variance h_j, the ratio of variances is h_j z_j^T z_j / s2. If h_j is
        zero, its estimate has about the standard error sqrt(2 / T): a direction stays if it has
        twice that. The last direction, the intercept, always stays.
        """
        ratio = np.einsum("ij,ij->j", self.Z, self.Z) / n_tasks * prior.H.diagonal() / prior.s2
        kept = ratio > 2 * np.sqrt(2 / n_tasks)
        kept[-1] = True
        return type(self)(self.P[:, kept], self.Z[:, kept])


def principal_directions(X) -> np.ndarray:
    """Return orthonormal directions (d, r) of the largest sums of squares of rows X (N, d)."""
    r = min(PRINCIPAL, *X.shape)
    return randomized_svd(X, r, n_iter=4, random_state=0)[2].T


def differing_columns(X, residual, noise: TaskNoise) -> np.ndarray:
    """Return the positions of columns with coefficients that differ between tasks, clearest first."""
    d = X.shape[1]
    white, score, variance = noise.solve(residual), np.zeros(d), np.zeros(d)
    for t, (lo, hi) in enumerate(pairwise(noise.offsets)):
        rows = X[lo:hi]
        squares = rows.multiply(rows) if hasattr(rows, "multiply") else rows * rows
        information = np.asarray(squares.sum(axis=0)).ravel() - (noise.inside(X, t) ** 2).sum(axis=0)
        information = np.maximum(information, 0.0) / noise.s2
        score += (rows.T @ white[lo:hi]) ** 2 - information
        variance += 2 * information**2
    z = score / np.sqrt(np.maximum(variance, 1e-300))
    order = np.argsort(-z, kind="stable")[:MOST_COLUMNS]
    return order[z[order] > np.sqrt(2 * np.log(max(d, 2))) + MARGIN]
