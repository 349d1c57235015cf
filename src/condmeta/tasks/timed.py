"""Points of many tasks that have a time each."""

from typing import NamedTuple, Self

import numpy as np

from condmeta.tasks.points import Points
from condmeta.tasks.splits import task_rows


class Timed(NamedTuple):
    """Points of tasks, and the time of each (N,)."""

    points: Points
    time: np.ndarray

    def take(self, at: np.ndarray) -> Self:
        """Return the points of the tasks at positions `at`."""
        rows, offsets = task_rows(self.points.offsets, at)
        return type(self)(self.points.pick(rows, offsets), self.time[rows])

    def where(self, mask: np.ndarray) -> Self:
        """Return the points of a mask (N,), of the same tasks."""
        return type(self)(self.points.where(mask), self.time[mask])

    def sorted(self) -> Self:
        """Return the points of each task by rising time; those of one time keep their order."""
        order = np.lexsort([self.time, self.task_of_row])
        return type(self)(self.points.pick(order, self.points.offsets), self.time[order])

    @property
    def task_of_row(self) -> np.ndarray:
        """The position of each row's task (N,)."""
        return np.repeat(np.arange(len(self.points.sizes)), self.points.sizes)

    def last(self) -> np.ndarray:
        """Return the latest time of each task (T,); NaN for a task without points."""
        latest = np.full(len(self.points.sizes), np.nan)
        filled = np.flatnonzero(self.points.sizes)
        if filled.size:
            latest[filled] = np.maximum.reduceat(self.time, self.points.offsets[filled])
        return latest

    def steps(self, clock: np.ndarray) -> np.ndarray:
        """Return the time since the row before (N,), or since the task's clock; rows are sorted."""
        before = np.append(np.nan, self.time[:-1])
        filled = np.flatnonzero(self.points.sizes)
        before[self.points.offsets[filled]] = clock[filled]
        return np.where(np.isnan(before), 0.0, self.time - before)
