"""The ranges and levels of a side table in fit, to find unusual values in later rows."""

from typing import Any, NamedTuple, Self

import numpy as np

from condmeta.persistence import register
from condmeta.persistence.fields import TEXT, Field, mapping, number, sequence
from condmeta.tasks.numbers import level_name
from condmeta.tasks.task_table import TaskTable


class UnusualValue(NamedTuple):
    """A value outside those of fit: row of the table, column, the value, and why it is unusual."""

    row: int
    column: str
    value: Any
    reason: str


def _is_range(value: Any, sizes: Any) -> bool:
    ends = isinstance(value, tuple | list) and len(value) == 2
    return ends and all(number().holds(end, sizes) for end in value) and value[0] <= value[1]


RANGE = Field("(lowest, highest)", _is_range)


@register(
    name="SeenColumns",
    fields={
        "ranges": mapping(RANGE),
        "levels": mapping(sequence(TEXT, distinct=True)), "gaps": sequence(TEXT, distinct=True),
    },
)  # fmt: skip
class TrainingRanges:
    """The range of each numeric column, the levels of the other columns, and which had gaps.

    Parameters
    ----------
    ranges : dict of column -> (lowest, highest)
    levels : dict of column -> tuple of str
    gaps : tuple of str
        Columns with a gap.

    Examples
    --------
    >>> known = TaskTable({"size": [1.0, 3.0], "city": ["Rome", "Bonn"]}, ["a", "b"])
    >>> new = TaskTable({"size": [5.0], "city": ["Oslo"]}, ["c"])
    >>> [value.reason for value in TrainingRanges.of(known).unusual_values(new)]
    ['above the training range 1 to 3', 'a level not seen in training']
    """

    def __init__(self, ranges: dict, levels: dict, gaps: tuple[str, ...]):
        self.ranges, self.levels, self.gaps = ranges, levels, gaps

    @classmethod
    def of(cls, table: TaskTable) -> Self:
        """Return the ranges and levels of a table."""
        ranges, levels, gaps = {}, {}, []
        for (name, column), there in zip(table.data.items(), ~table.gaps().T, strict=True):
            if not there.all():
                gaps.append(name)
            if _is_numeric(column):
                if there.any():
                    ranges[name] = float(column[there].min()), float(column[there].max())
            else:
                levels[name] = tuple(sorted(map(level_name, set(column[there].tolist()))))
        return cls(ranges, levels, tuple(gaps))

    def join(self, other: Self) -> Self:
        """Return the ranges and levels of both together."""
        ranges = dict(self.ranges)
        for name, (low, high) in other.ranges.items():
            known = ranges.get(name, (low, high))
            ranges[name] = min(low, known[0]), max(high, known[1])
        levels = {
            name: tuple(sorted({*self.levels.get(name, ()), *other.levels.get(name, ())}))
            for name in {**self.levels, **other.levels}
        }
        return type(self)(ranges, levels, tuple(dict.fromkeys((*self.gaps, *other.gaps))))

    def unusual_values(self, table: TaskTable) -> list[UnusualValue]:
        """Return the values outside the training ranges and levels, row by row."""
        found = []
        for (name, column), gap in zip(table.data.items(), table.gaps().T, strict=True):
            if name not in self.gaps:
                missing = "missing, which no training task was"
                found += [UnusualValue(int(t), name, None, missing) for t in np.flatnonzero(gap)]
            found += self._unusual_in(name, column, gap)
        return sorted(found, key=lambda value: value.row)

    def _unusual_in(self, name: str, column: np.ndarray, gap: np.ndarray) -> list[UnusualValue]:
        if name in self.ranges and _is_numeric(column):
            low, high = self.ranges[name]
            training = f"the training range {low:g} to {high:g}"
            return [
                UnusualValue(int(t), name, float(column[t]), f"{where} {training}")
                for where, at in (("below", column < low), ("above", column > high))
                for t in np.flatnonzero(at & ~gap)
            ]
        if name in self.levels:
            known, reason = set(self.levels[name]), "a level not seen in training"
            texts = {int(t): level_name(column[t]) for t in np.flatnonzero(~gap)}
            new = {t: text for t, text in texts.items() if text not in known}
            return [UnusualValue(t, name, text, reason) for t, text in new.items()]
        return []


def _is_numeric(column: np.ndarray) -> bool:
    return column.dtype != object and column.dtype != bool
