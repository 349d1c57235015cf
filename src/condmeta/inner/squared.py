"""Sufficient statistics of the squared loss, which let a task take further points exactly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class SquaredState(NamedTuple):
    """Statistics of each of T tasks: gram (T, d, d) = X^T X, moment (T, d) = X^T y, count (T,)."""

    gram: np.ndarray
    moment: np.ndarray
    count: np.ndarray

    any_start = True  # statistics do not depend on where a task starts

    @classmethod
    def start(cls, n_tasks: int, n_features: int) -> SquaredState:
        """Return the statistics of tasks that have no point."""
        d = n_features
        return cls(np.zeros((n_tasks, d, d)), np.zeros((n_tasks, d)), np.zeros(n_tasks, np.int64))

    def extend(self, X, y, offsets) -> SquaredState:
        """Return the statistics with further points added."""
        gram, moment = self.gram.copy(), self.moment.copy()
        sizes = np.diff(offsets)
        # Tasks of one size are one stack, so that the loop runs over sizes, not over tasks.
        for n in np.unique(sizes[sizes > 0]):
            tasks = np.flatnonzero(sizes == n)
            rows = offsets[tasks][:, None] + np.arange(n)
            points = X[rows]
            gram[tasks] += np.swapaxes(points, 1, 2) @ points
            moment[tasks] += np.einsum("tni,tn->ti", points, y[rows])
        return SquaredState(gram, moment, self.count + sizes)

    def coef(self, theta: np.ndarray, lam: float) -> np.ndarray:
        """Return theta + (S + n lam I)^-1 (X^T y - S theta), S = X^T X, for each task (T, d)."""
        weight = np.maximum(self.count, 1) * lam
        system = self.gram + weight[:, None, None] * np.eye(theta.shape[1])
        right = self.moment - np.einsum("tij,tj->ti", self.gram, theta)
        return theta + np.linalg.solve(system, right[:, :, None])[:, :, 0]
