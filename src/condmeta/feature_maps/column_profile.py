"""What an encoder learns from a column, so that it can be fitted without the column itself."""

import math
from collections.abc import Iterable
from itertools import chain, repeat
from typing import NamedTuple, Self

import numpy as np

from condmeta.tasks.codes import object_codes
from condmeta.tasks.numbers import level_name, standard_deviation


class ColumnProfile(NamedTuple):
    """The values of a column, summed up.

    Attributes
    ----------
    kind : "number", "boolean" or "category"
    size, gaps : int
        Its values, and how many of them are missing.
    mean, scale : float
        Of numbers and booleans.
    low, high : float
        The least and the largest number; NaN if there is none.
    counts : dict of level -> int
        Of a category.

    Examples
    --------
    >>> import numpy as np
    >>> from condmeta.feature_maps.column_profile import ColumnProfile
    >>> ColumnProfile.of_levels(np.array(["a", "b", None], object), np.array([5, 1, 2])).counts
    {'a': 5, 'b': 1}
    """

    kind: str
    size: int
    gaps: int
    mean: float = 0.0
    scale: float = 1.0
    counts: dict[str, int] = {}
    low: float = math.nan
    high: float = math.nan

    @classmethod
    def of_numbers(cls, values: np.ndarray, kind: str, times: np.ndarray | None = None) -> Self:
        """Return the profile of floats, NaN for gaps, each of which counts `times` (n,)."""
        there = ~np.isnan(values)
        seen, (size, gaps) = values[there], _sizes(~there, times)
        constant = seen.size == 0 or seen.min() == seen.max()
        if seen.size == 0:
            mean = 0.0
        elif constant:
            mean = float(seen[0])
        elif gaps:
            mean = exact_mean(seen, size - gaps, None if times is None else times[there])
        else:
            mean = float(seen.mean())
        scale = 1.0 if constant or kind == "boolean" else standard_deviation(seen)
        ends = (float(seen.min()), float(seen.max())) if seen.size else (math.nan, math.nan)
        return cls(kind, size, gaps, mean, scale if scale > 0 else 1.0, {}, *ends)

    @classmethod
    def of_levels(cls, column: np.ndarray, times: np.ndarray | None = None) -> Self:
        """Return the profile of a categorical column, whose values count `times` (n,)."""
        codes, levels = coded(column)
        counts: dict[str, int] = {}
        number = np.bincount(codes, weights=times, minlength=len(levels))
        for level, count in zip(levels, number, strict=True):
            if level is not None:
                counts[level] = counts.get(level, 0) + int(count)
        size, _ = _sizes(np.zeros(column.size, bool), times)
        return cls("category", size, size - sum(counts.values()), counts=counts)

    def with_ends(self, low: float | None, high: float | None) -> Self:
        """Return the profile with the least and the largest number, if there are any."""
        return self if low is None or high is None else self._replace(low=low, high=high)

    @property
    def is_unique(self) -> bool:
        """Whether nearly every text is different: names, not categories."""
        return len(self.counts) > max(10, 0.9 * (self.size - self.gaps))


def exact_mean(values: Iterable[float], count: int, times: np.ndarray | None = None) -> float:
    """Return the mean of numbers, each `times`, which fills gaps: rounded once, in any order.

    Rows that come in another order, or from files, then have the same bits.
    """
    if times is not None:
        values = chain.from_iterable(map(repeat, values, times.tolist()))
    elif isinstance(values, np.ndarray):
        values = values.tolist()
    try:
        return math.fsum(values) / count
    except OverflowError:
        return math.inf


def _sizes(gap: np.ndarray, times: np.ndarray | None) -> tuple[int, int]:
    if times is None:
        return gap.size, int(gap.sum())
    return int(times.sum()), int(times[gap].sum())


def coded(column: np.ndarray) -> tuple[np.ndarray, list[str | None]]:
    """Return codes (n,) of a categorical column and its levels as text, None for gaps.

    Numbers become text, so two levels may have the same text.
    """
    codes, values = object_codes(column.tolist())
    # NaN differs from itself: each gap of a numeric column is a value of its own
    return codes, [None if v is None or v != v else level_name(v) for v in values]


def kind_of(column: np.ndarray) -> str:
    """Return "number", "boolean" or "category"."""
    if column.dtype == bool:
        return "boolean"
    if column.dtype != object:
        return "number"
    return "boolean" if all(v is None or isinstance(v, bool) for v in column) else "category"
