"""Points of many tasks in flat arrays, as meta-learners read them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


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
        sizes = self.count[at]
        ends = np.cumsum(sizes)
        shift = np.repeat(self.offsets[at] - (ends - sizes), sizes)
        rows = np.arange(len(shift)) + shift
        return Points(self.X[rows], self.y[rows], np.concatenate([[0], ends]))
