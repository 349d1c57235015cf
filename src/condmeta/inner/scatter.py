"""Statistics of each task around its own means: the same bits whatever the other tasks are."""

from typing import NamedTuple, Self

import numpy as np

from condmeta.inner.squared import SquaredState
from condmeta.persistence.registry import register_tuple
from condmeta.tasks.weights import task_sums

BLOCK = 1 << 17  # numbers in a temporary


@register_tuple
class Scatter(NamedTuple):
    """Statistics of the points (x, y) of each of T tasks.

    count (T,); mean (T, d+1); scatter (T, d+1, d+1), the sum of (z - mean)(z - mean)^T, z = (x, y).
    A point with a weight counts that many times in all three. No digits are lost if x or y have
    large means, and a constant column has a scatter of exactly zero.
    """

    count: np.ndarray
    mean: np.ndarray
    scatter: np.ndarray

    @classmethod
    def of(cls, X, y, offsets, weight=None) -> Self:
        """Return the statistics of tasks with points X (N, d), y (N,), offsets (T+1,).

        A point counts weight (N,) times, more than 0.
        """
        sizes, p = np.diff(offsets), X.shape[1] + 1
        count = sizes if weight is None else task_sums(weight, offsets)
        mean, scatter = np.zeros((len(sizes), p)), np.zeros((len(sizes), p, p))
        # Tasks of equal size form one stack: the loop runs over sizes, not over tasks.
        for n in np.unique(sizes[sizes > 0]):
            average = np.full((1, n), 1.0 / n)
            for tasks in _blocks(np.flatnonzero(sizes == n), n * p):
                rows = offsets[tasks][:, None] + np.arange(n)
                points = np.empty((len(tasks), n, p))
                points[:, :, :-1], points[:, :, -1] = X[rows], y[rows]
                if weight is not None:
                    average = (weight[rows] / count[tasks, None])[:, None, :]
                first = points[:, :1].copy()
                points -= first  # a constant column is then exactly zero
                middle = average @ points
                points -= middle
                mean[tasks] = (first + middle)[:, 0]
                if weight is not None:
                    points *= np.sqrt(weight[rows])[:, :, None]
                scatter[tasks] = np.swapaxes(points, 1, 2) @ points
        return cls(count, mean, scatter)

    def take(self, at) -> Self:
        """Return the statistics of the tasks at positions `at`."""
        return type(self)(*(array[at] for array in self))

    def times(self, factor: np.ndarray) -> Self:
        """Return the statistics of points z times a factor (d+1,)."""
        outer = np.outer(factor, factor)
        return self._replace(mean=self.mean * factor, scatter=self.scatter * outer)

    def transformed(self, A, centre) -> Self:
        """Return the statistics of A (z - centre), for A (p, d+1) and centre (d+1,)."""
        return type(self)(self.count, (self.mean - centre) @ A.T, A @ self.scatter @ A.T)

    def join(self, other: Self) -> Self:
        """Return the statistics of these tasks, then of further ones."""
        return type(self)(*map(np.concatenate, zip(self, other, strict=True)))

    def extend(self, other: Self) -> Self:
        """Return the statistics with further points of the same tasks added."""
        count = self.count + other.count
        share = other.count / np.where(count > 0, count, 1)
        gap = other.mean - self.mean
        spread = (self.count * share)[:, None, None] * gap[:, :, None] * gap[:, None, :]
        scatter = self.scatter + other.scatter + spread
        return type(self)(count, self.mean + share[:, None] * gap, scatter)

    def overall(self, at=slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation (d+1,) of all points of the tasks at `at`."""
        count, means = self.count[at], self.mean[at]
        n = count.sum() or 1
        first = means[0]  # around it the mean of a constant column is exact
        mean = first + count @ (means - first) / n
        between = count @ (means - mean) ** 2
        within = np.einsum("tii->ti", self.scatter)[at].sum(axis=0)
        return mean, np.sqrt((within + between) / n)

    def statistics(self, mean, scale, intercept: bool, at=None) -> SquaredState:
        """Return the statistics of rows (x - mean) / scale and labels y - mean, of tasks at `at`.

        mean (d+1,), of x and y; scale (d,). With an intercept the rows end with a one.
        """
        at = np.arange(len(self.mean)) if at is None else at
        T, p = len(at), self.mean.shape[1]
        last = p - 1  # the column of y, and then of the intercept
        by = 1 / np.outer(np.append(scale, 1.0), np.append(scale, 1.0))
        gram, moment, square = np.empty((T, p, p)), np.empty((T, p)), np.empty(T)
        for here in _blocks(np.arange(T), p * p):
            part, tasks = slice(here[0], here[-1] + 1), at[here]
            n, center, whole = self.count[tasks][:, None], self.mean[tasks] - mean, gram[part]
            center[:, :-1] /= scale
            np.take(self.scatter, tasks, axis=0, out=whole, mode="clip")
            whole *= by
            whole += (n * center)[:, :, None] * center[:, None, :]
            moment[part], square[part] = whole[:, last], whole[:, last, last]
            # The column of ones replaces that of y.
            whole[:, last, :-1] = whole[:, :-1, last] = n * center[:, :-1]
            whole[:, last, last], moment[part, last] = n[:, 0], n[:, 0] * center[:, -1]
        if not intercept:
            gram, moment = np.ascontiguousarray(gram[:, :-1, :-1]), moment[:, :-1].copy()
        return SquaredState(gram, moment, square, self.count[at])


def _blocks(tasks: np.ndarray, size: int):
    """Cut tasks into blocks whose temporaries, `size` numbers a task, stay in the cache."""
    step = max(BLOCK // size, 1)
    return (tasks[lo : lo + step] for lo in range(0, len(tasks), step))
