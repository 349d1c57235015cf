"""Points of many tasks in flat arrays, as meta-learners read them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condmeta.tasks.arrays import stack_rows
from condmeta.tasks.splits import task_rows
from condmeta.tasks.weights import join_weights, repeats, task_sums


class Points(NamedTuple):
    """Points of T tasks: X (N, d), y (N,), offsets (T+1,), and optionally weight (N,) > 0.

    A weight is how often a point counts; without weights every point counts once. Weights (N, 2)
    hold the precision of labels as well (see `condmeta.tasks.weights`).
    """

    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    weight: np.ndarray | None = None

    @property
    def sizes(self) -> np.ndarray:
        """Number of points of each task (T,)."""
        return np.diff(self.offsets)

    @property
    def count(self) -> np.ndarray:
        """Sum of the weights of each task's points (T,); without weights, their number."""
        if self.weight is None:
            return self.sizes
        return task_sums(repeats(self.weight), self.offsets)

    def take(self, at: np.ndarray) -> Points:
        """Return the points of the tasks at positions `at`."""
        return self.pick(*task_rows(self.offsets, at))

    def where(self, mask: np.ndarray) -> Points:
        """Return the points of a mask (N,), of the same tasks."""
        return self.pick(mask, np.append(0, np.cumsum(mask))[self.offsets])

    def columns(self, kept: np.ndarray) -> Points:
        """Return the points with the columns of a mask (d,)."""
        return self if kept.all() else self._replace(X=np.ascontiguousarray(self.X[:, kept]))

    def pick(self, rows: Any, offsets: np.ndarray) -> Points:
        """Return the points of some rows, which belong to tasks with these offsets."""
        weight = None if self.weight is None else self.weight[rows]
        return Points(self.X[rows], self.y[rows], offsets, weight)

    def join(self, other: Points) -> Points:
        """Return the points of these tasks, then of others."""
        weight = join_weights(self.weight, len(self.y), other.weight, len(other.y))
        offsets = np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]])
        return Points(stack_rows([self.X, other.X]), np.append(self.y, other.y), offsets, weight)

    def extend(self, at: np.ndarray, more: Points) -> Points:
        """Return the points of these tasks, with further ones of the tasks at positions `at`."""
        both, sizes = self.join(more), self.sizes.copy()
        sizes[at] += more.sizes
        task = np.repeat(np.concatenate([np.arange(len(sizes)), at]), both.sizes)
        return both.pick(np.argsort(task, kind="stable"), np.append(0, np.cumsum(sizes)))
