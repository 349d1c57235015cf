"""What a side table held in fit, so that a later row can be told from what was seen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condmeta.tasks.numbers import level_name
from condmeta.tasks.task_table import TaskTable


class Odd(NamedTuple):
    """A value unlike those of fit: row of the table, column, the value, and what is odd."""

    row: int
    column: str
    value: Any
    reason: str


class SeenColumns:
    """The range of each column of numbers, the levels of the others, and which had gaps.

    Parameters
    ----------
    ranges : dict of column -> (lowest, highest)
    levels : dict of column -> tuple of str
    gaps : tuple of str
        Columns with a gap.

    Examples
    --------
    >>> seen = SeenColumns.of(TaskTable({"size": [1.0, 3.0], "city": ["Rome", "Bonn"]}, ["a", "b"]))
    >>> new = TaskTable({"size": [5.0], "city": ["Oslo"]}, ["c"])
    >>> [odd.reason for odd in seen.oddities(new)]
    ['above the training range 1 to 3', 'a level not seen in training']
    """

    def __init__(self, ranges: dict, levels: dict, gaps: tuple[str, ...]):
        self.ranges, self.levels, self.gaps = ranges, levels, gaps

    @classmethod
    def of(cls, table: TaskTable) -> SeenColumns:
        """Read what a table holds."""
        ranges, levels, gaps = {}, {}, []
        for name, column in table.data.items():
            there = ~_gaps(column)
            if not there.all():
                gaps.append(name)
            if _is_numeric(column):
                if there.any():
                    ranges[name] = float(column[there].min()), float(column[there].max())
            else:
                levels[name] = tuple(sorted(map(level_name, set(column[there].tolist()))))
        return cls(ranges, levels, tuple(gaps))

    def join(self, other: SeenColumns) -> SeenColumns:
        """Return what either has seen."""
        ranges = dict(self.ranges)
        for name, (low, high) in other.ranges.items():
            known = ranges.get(name, (low, high))
            ranges[name] = min(low, known[0]), max(high, known[1])
        levels = {
            name: tuple(sorted({*self.levels.get(name, ()), *other.levels.get(name, ())}))
            for name in {**self.levels, **other.levels}
        }
        return SeenColumns(ranges, levels, tuple(dict.fromkeys((*self.gaps, *other.gaps))))

    def oddities(self, table: TaskTable) -> list[Odd]:
        """Return the values of a table that are unlike those seen, row by row."""
        found = []
        for name, column in table.data.items():
            gap = _gaps(column)
            if name not in self.gaps:
                missing = "missing, which no training task was"
                found += [Odd(int(t), name, None, missing) for t in np.flatnonzero(gap)]
            found += self._odd_values(name, column, gap)
        return sorted(found, key=lambda odd: odd.row)

    def _odd_values(self, name: str, column: np.ndarray, gap: np.ndarray) -> list[Odd]:
        if name in self.ranges and _is_numeric(column):
            low, high = self.ranges[name]
            told = f"the training range {low:g} to {high:g}"
            return [
                Odd(int(t), name, float(column[t]), f"{where} {told}")
                for where, at in (("below", column < low), ("above", column > high))
                for t in np.flatnonzero(at & ~gap)
            ]
        if name in self.levels:
            known, odd = set(self.levels[name]), "a level not seen in training"
            texts = {int(t): level_name(column[t]) for t in np.flatnonzero(~gap)}
            return [Odd(t, name, text, odd) for t, text in texts.items() if text not in known]
        return []


def _is_numeric(column: np.ndarray) -> bool:
    return column.dtype != object and column.dtype != bool


def _gaps(column: np.ndarray) -> np.ndarray:
    if column.dtype == object:
        return np.array([value is None for value in column.tolist()], dtype=bool)
    return np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), bool)
