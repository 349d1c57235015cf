"""Points of many tasks that have a time each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condmeta.persistence.fields import InvalidFieldError, either, floats, integers, maybe
from condmeta.persistence.registry import register_tuple
from condmeta.tasks.points import Points
from condmeta.tasks.splits import task_rows


def offsets_rise(state: dict, sizes: dict[str, int]) -> None:
    """Raise if the offsets of a stored object do not fit its N rows."""
    offsets = state["offsets"]
    if offsets[0] != 0 or offsets[-1] != sizes["N"] or (np.diff(offsets) < 0).any():
        raise InvalidFieldError("offsets", "must rise from 0 to the number of rows")


@register_tuple(
    fields={
        "X": floats("N d"), "y": floats("N"), "offsets": integers("T+1", low=0),
        "weight": maybe(either(floats("N", low=0), floats("N 2", low=0))), "time": floats("N"),
    },
    rule=offsets_rise,
)  # fmt: skip
class Timed(NamedTuple):
    """Points of T tasks, as in `Points`, and the time (N,) of each, as a number."""

    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    weight: np.ndarray | None
    time: np.ndarray

    @property
    def points(self) -> Points:
        """The points without their times."""
        return Points(*self[:4])

    @property
    def task_of_row(self) -> np.ndarray:
        """The position of each row's task (N,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def pick(self, rows: Any, offsets: np.ndarray) -> Timed:
        """Return some rows, which belong to tasks with these offsets."""
        return Timed(*self.points.pick(rows, offsets), self.time[rows])

    def take(self, at: np.ndarray) -> Timed:
        """Return the points of the tasks at positions `at`."""
        return self.pick(*task_rows(self.offsets, at))

    def where(self, mask: np.ndarray) -> Timed:
        """Return the points of a mask (N,), of the same tasks."""
        return self.pick(mask, np.append(0, np.cumsum(mask))[self.offsets])

    def sorted(self) -> Timed:
        """Return the points of each task by rising time; those of one time keep their order."""
        task = self.task_of_row
        if ((np.diff(task) > 0) | (np.diff(self.time) >= 0)).all():
            return self
        return self.pick(np.lexsort([self.time, task]), self.offsets)

    def join(self, other: Timed) -> Timed:
        """Return the points of these tasks, then of others."""
        time = np.append(self.time, other.time)
        return Timed(*self.points.join(other.points), time)

    def extend(self, at: np.ndarray, more: Timed) -> Timed:
        """Return it with further points of the tasks at positions `at`."""
        both = self.join(more)
        owner = np.concatenate([self.task_of_row, at[more.task_of_row]])
        sizes = np.bincount(owner, minlength=len(self.offsets) - 1)
        return both.pick(np.argsort(owner, kind="stable"), np.append(0, np.cumsum(sizes)))

    def last(self) -> np.ndarray:
        """Return the latest time of each task (T,); NaN for a task without points."""
        sizes = np.diff(self.offsets)
        latest, filled = np.full(len(sizes), np.nan), np.flatnonzero(sizes)
        if filled.size:
            latest[filled] = np.maximum.reduceat(self.time, self.offsets[filled])
        return latest

    def steps(self, clock: np.ndarray) -> np.ndarray:
        """Return the time since the row before (N,), or since the task's clock; rows are sorted."""
        before = np.append(np.nan, self.time)[:-1]
        filled = np.flatnonzero(np.diff(self.offsets))
        before[self.offsets[filled]] = clock[filled]
        return np.where(np.isnan(before), 0.0, self.time - before)
