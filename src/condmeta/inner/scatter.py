"""Statistics of each task around its own means: the same bits whatever else is in the data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.inner.squared import SquaredState


class Scatter(NamedTuple):
    """Statistics of the points (x, y) of each of T tasks.

    count (T,); mean (T, d+1); scatter (T, d+1, d+1), the sum of (z - mean)(z - mean)^T, z = (x, y).
    Nothing is lost when x or y lie far from zero.
    """

    count: np.ndarray
    mean: np.ndarray
    scatter: np.ndarray

    @classmethod
    def of(cls, X, y, offsets) -> Scatter:
        """Return the statistics of tasks with points X (N, d), y (N,), offsets (T+1,)."""
        sizes, p = np.diff(offsets), X.shape[1] + 1
        mean, scatter = np.zeros((len(sizes), p)), np.zeros((len(sizes), p, p))
        # Tasks of one size are one stack, so that the loop runs over sizes, not over tasks.
        for n in np.unique(sizes[sizes > 0]):
            tasks = np.flatnonzero(sizes == n)
            rows = offsets[tasks][:, None] + np.arange(n)
            points = np.concatenate([X[rows], y[rows][:, :, None]], axis=2)
            middle = np.full((1, n), 1.0 / n) @ points
            points -= middle
            mean[tasks] = middle[:, 0]
            scatter[tasks] = np.swapaxes(points, 1, 2) @ points
        return cls(sizes, mean, scatter)

    def take(self, at) -> Scatter:
        """Return the statistics of the tasks at positions `at`."""
        return Scatter(*(array[at] for array in self))

    def join(self, other: Scatter) -> Scatter:
        """Return the statistics of further tasks behind these."""
        return Scatter(*map(np.concatenate, zip(self, other, strict=True)))

    def extend(self, other: Scatter) -> Scatter:
        """Return the statistics with further points of the same tasks added."""
        count = self.count + other.count
        share = other.count / np.maximum(count, 1)
        gap = other.mean - self.mean
        spread = (self.count * share)[:, None, None] * gap[:, :, None] * gap[:, None, :]
        return Scatter(
            count, self.mean + share[:, None] * gap, self.scatter + other.scatter + spread
        )

    def overall(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation (d+1,) of all points of all tasks."""
        n = max(self.count.sum(), 1)
        mean = self.count @ self.mean / n
        between = self.count @ (self.mean - mean) ** 2
        return mean, np.sqrt((np.einsum("tii->i", self.scatter) + between) / n)

    def statistics(self, mean, scale, intercept: bool) -> SquaredState:
        """Return the statistics of rows (x - mean) / scale and labels y - mean.

        mean (d+1,), of x and y; scale (d,). The rows end with a one if there is an intercept.
        """
        n = self.count[:, None]
        center = self.mean - mean
        center[:, :-1] /= scale
        by = np.append(scale, 1.0)
        whole = self.scatter / np.outer(by, by)
        whole += n[:, :, None] * center[:, :, None] * center[:, None, :]
        gram, moment, square = whole[:, :-1, :-1], whole[:, :-1, -1], whole[:, -1, -1]
        if intercept:
            sums = n * center[:, :-1]
            gram = np.concatenate([gram, sums[:, None, :]], axis=1)
            column = np.concatenate([sums, n], axis=1)[:, :, None]
            gram = np.concatenate([gram, column], axis=2)
            moment = np.concatenate([moment, n * center[:, -1:]], axis=1)
        return SquaredState(*map(np.ascontiguousarray, (gram, moment, square)), self.count)
