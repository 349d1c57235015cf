"""Points of many tasks in flat arrays, as meta-learners read them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.tasks.splits import task_rows
from condmeta.tasks.weights import task_sums


class Points(NamedTuple):
    """Points of tasks: X (N, d), y (N,), offsets (T+1,)."""

    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray

    @property
    def count(self) -> np.ndarray:
        """Points of each task (T,)."""
        return np.diff(self.offsets)

    def take(self, at) -> Points:
        """Return the points of the tasks at positions `at`."""
        rows, offsets = task_rows(self.offsets, at)
        return Points(self.X[rows], self.y[rows], offsets)


class WeightedPoints(NamedTuple):
    """Points of tasks that count several times: X (N, d), y (N,), offsets (T+1,), weight (N,) > 0.

    Without weights each counts once.
    """

    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    weight: np.ndarray | None = None

    @property
    def sizes(self) -> np.ndarray:
        """Points of each task (T,)."""
        return np.diff(self.offsets)

    @property
    def count(self) -> np.ndarray:
        """Points of each task (T,), by how often they count."""
        return self.sizes if self.weight is None else task_sums(self.weight, self.offsets)

    @property
    def times(self) -> np.ndarray:
        """How often each point counts (N,)."""
        return np.ones(len(self.y)) if self.weight is None else self.weight

    def take(self, at) -> WeightedPoints:
        """Return the points of the tasks at positions `at`."""
        rows, offsets = task_rows(self.offsets, at)
        return self._rows(rows, offsets)

    def where(self, mask) -> WeightedPoints:
        """Return the points of a mask (N,), of the same tasks."""
        return self._rows(mask, np.append(0, np.cumsum(mask))[self.offsets])

    def _rows(self, rows, offsets) -> WeightedPoints:
        weight = None if self.weight is None else self.weight[rows]
        return WeightedPoints(self.X[rows], self.y[rows], offsets, weight)
