"""The training ranges of the features of a table, and rows that lie far outside of them."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import TypeAlias

import numpy as np

from condmeta.evaluation.extrapolation import BEYOND
from condmeta.feature_maps.column_profile import ColumnProfile
from condmeta.feature_maps.table_encoder import TableEncoder
from condmeta.tables.dates import DateReader
from condmeta.tables.raw_columns import Readers
from condmeta.tasks import TaskSet
from condmeta.tasks.numbers import column_ends
from condmeta.text import pluralize
from condmeta.warn import warn

Ranges: TypeAlias = Mapping[str, tuple[float, float]]
CALENDAR = date.max.toordinal()


def ranges_of(profiles: Mapping[str, ColumnProfile]) -> Ranges:
    """Return the least and the largest number of each column of numbers.

    Examples
    --------
    >>> ranges_of({"price": ColumnProfile.of_numbers(np.array([3.0, 1.0, np.nan]), "number")})
    {'price': (1.0, 3.0)}
    """
    numbers = {name: one for name, one in profiles.items() if one.kind == "number"}
    return {name: (one.low, one.high) for name, one in numbers.items() if one.low <= one.high}


def widen(ranges: Ranges, encoder: TableEncoder, X: np.ndarray) -> Ranges:
    """Return ranges that also hold the encoded rows X (N, d)."""
    if not len(X):
        return ranges
    low, high = column_ends(X)
    at = {name: j for name, j in _places(encoder).items() if name in ranges}
    wider = {
        name: (min(ranges[name][0], float(low[j])), max(ranges[name][1], float(high[j])))
        for name, j in at.items()
    }
    return {**ranges, **wider}


def warn_far_rows(ranges: Ranges, encoder: TableEncoder, readers: Readers, tasks: TaskSet) -> None:
    """Warn of rows with a number far outside its training range."""
    far = np.zeros(len(tasks.X), bool)
    named = {}
    for name, j in _places(encoder).items():
        low, high = ranges.get(name, (0.0, 0.0))
        if low == high:  # unknown, or a constant column, whose coefficient is 0
            continue
        off = np.maximum(low - tasks.X[:, j], tasks.X[:, j] - high)
        out = off > BEYOND * (high - low)
        if out.any():
            named[name] = int(np.argmax(off))
        far |= out
    if named:
        n_far = int(far.sum())
        name, worst = next(iter(named.items()))
        value = float(tasks.X[worst, _places(encoder)[name]])
        warn(
            f"{pluralize(n_far, 'row')} of {len(far):,} {'has' if n_far == 1 else 'have'} a number "
            "far outside the training range; predictions there are a guess: row "
            f"{tasks.row_order[worst] + 1:,}, {_reason(name, value, ranges[name], readers)}"
            f"{', and others' if n_far > 1 or len(named) > 1 else ''}."
        )


def _places(encoder: TableEncoder) -> dict[str, int]:
    """Return the position among the encoded columns of each column of numbers."""
    columns = enumerate(encoder.columns_out())
    return {one.source: j for j, one in columns if one.levels is None and not one.boolean}


def _reason(name: str, value: float, ends: tuple[float, float], readers: Readers) -> str:
    """Say that a value is outside its range; days since a start are shown as dates."""
    shown = [f"{number:g}" for number in (value, *ends)]
    for column, reader in readers.items():
        if isinstance(reader, DateReader) and name == f"{column} (days)":
            name = column
            shown = [_as_date(reader.start, number) for number in (value, *ends)]
    where = "below" if value < ends[0] else "above"
    return f"{name} {shown[0]} is {where} the training range {shown[1]} to {shown[2]}"


def _as_date(start: str, days: float) -> str:
    first = date.fromisoformat(start)
    if not 1 <= first.toordinal() + days < CALENDAR:
        return f"{days:g} days after {start}"
    return str(first + timedelta(days=int(np.floor(days))))
