"""Encode raw columns as numbers: for `feature_map="auto"`, and for the features of a table."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np

from condmeta.errors import DataError
from condmeta.feature_maps.column_profile import ColumnProfile, coded, kind_of
from condmeta.persistence import register
from condmeta.persistence.fields import (
    FLAG,
    TEXT,
    InvalidFieldError,
    mapping,
    number,
    one_of,
    sequence,
)
from condmeta.tasks.messages import name_task, show_id
from condmeta.tasks.task_table import TaskTable
from condmeta.warn import warn

OTHER = "(other)"
MISSING = "(missing)"
UNSEEN = "hold levels not seen in training"


@contextmanager
def allow_unseen_levels() -> Iterator[None]:
    """Do not warn of levels that were not seen in training.

    For tasks that we hold out ourselves, and where the caller is told of such levels otherwise.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", rf"(Side columns|Columns) {UNSEEN}")
        yield


class EncodedColumn(NamedTuple):
    """How one encoded column is computed from a raw one.

    source : the raw column; levels : None for a number, (value - mean) / scale with gaps filled by
    `fill`; else the column is 1 where the raw one has one of these levels (None: a gap), else 0.
    """

    source: str
    levels: tuple[str | None, ...] | None
    fill: float = 0.0
    mean: float = 0.0
    scale: float = 1.0
    boolean: bool = False


def _columns_agree(state: dict, sizes: dict[str, int]) -> None:
    """Refuse an encoder with parts that are not about the same columns."""
    columns, kinds = state["columns_"], state["kinds_"]
    categories = {name for name, kind in kinds.items() if kind == "category"}
    numeric = set(kinds) - categories
    expected = {
        "kinds_": set(columns), "gaps_": set(columns), "means_": numeric, "scales_": numeric,
        "levels_": categories, "pooled_": categories,
    }  # fmt: skip
    for field, names in expected.items():
        if set(state[field]) != names:
            raise InvalidFieldError(field, f"must be about the columns {sorted(names)}")
    if list(kinds) != list(columns):
        raise InvalidFieldError("kinds_", "must have the columns in their order")
    width = sum(1 + state["gaps_"][name] for name in numeric)
    for name in categories:
        if set(state["levels_"][name]) & set(state["pooled_"][name]):
            raise InvalidFieldError("pooled_", "must not repeat levels")
        extra = bool(state["pooled_"][name]) + state["gaps_"][name]
        width += len(state["levels_"][name]) + extra
    if width != sizes["k"]:
        raise InvalidFieldError("names_out_", f"must be {width} names")


@register(
    fields={
        "min_tasks": number(low=0, whole=True), "max_levels": number(low=0, whole=True),
        "of_rows": FLAG, "columns_": sequence(TEXT, distinct=True),
        "kinds_": mapping(one_of("number", "boolean", "category")), "means_": mapping(number()),
        "scales_": mapping(number(above=0)), "gaps_": mapping(FLAG),
        "levels_": mapping(sequence(TEXT, distinct=True)),
        "pooled_": mapping(sequence(TEXT, distinct=True)), "names_out_": sequence(TEXT, "k"),
    },
    rule=_columns_agree,
)  # fmt: skip
class TableEncoder:
    """Encode numbers, booleans, categories and text of a side table, gaps included.

    Numbers are centred and scaled to unit variance over the fitted tasks; a constant column
    becomes zero. Booleans are 0 and 1. A gap in either is filled with the mean; if fit saw gaps, an
    indicator column marks them. Text and categories are one-hot in sorted order. If a column has
    more than `max_levels` levels, the rare ones (in fewer than `min_tasks` tasks, or 0.2 % of the
    tasks if that is more) share one column. Gaps that fit saw are a level of their own. Levels that
    fit did not see are all zero, with one warning.

    Parameters
    ----------
    min_tasks : int
        In a column of many levels, a level with this many tasks has a column of its own.
    max_levels : int
        Number of levels up to which no levels are pooled.
    of_rows : bool
        Whether the table holds the rows of tasks, not one row for each task. Numbers then stay as
        they are, because learners scale features themselves, and messages name rows, not tasks.

    Attributes
    ----------
    columns_ : tuple of str
    kinds_ : dict of name -> "number", "boolean" or "category"
    means_, scales_ : dict of name -> float, for numbers and booleans
    gaps_ : dict of name -> bool, whether fit saw gaps
    levels_, pooled_ : dict of name -> tuple of str, levels with a column and pooled ones
    names_out_ : tuple of str

    Examples
    --------
    >>> table = TaskTable({"size": [1.0, 3.0], "city": ["Rome", "Bonn"]}, ids=["a", "b"])
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.names_out_
    ('size', 'city=Bonn', 'city=Rome')
    >>> encoder.transform(table).tolist()
    [[-1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """

    def __init__(self, min_tasks: int = 2, max_levels: int = 20, *, of_rows: bool = False):
        self.min_tasks = min_tasks
        self.max_levels = max_levels
        self.of_rows = of_rows

    def fit(self, table: TaskTable) -> Self:
        """Learn means, scales and levels from the rows of a table."""
        return self.fit_profiles({n: self.profile(c, n, table.ids) for n, c in table.data.items()})

    def profile(
        self, column: np.ndarray, name: str, ids: Any = (), times: Any = None
    ) -> ColumnProfile:
        """Return what is learned from a typed column, whose values count `times` (n,)."""
        kind = kind_of(column)
        if kind == "category":
            return ColumnProfile.of_levels(column, times)
        return ColumnProfile.of_numbers(self._numbers(column, name, ids), kind, times)

    def fit_profiles(self, profiles: dict[str, ColumnProfile]) -> Self:
        """Learn means, scales and levels from the profiles of all columns."""
        self.columns_ = tuple(profiles)
        self.kinds_ = {name: profile.kind for name, profile in profiles.items()}
        self.gaps_ = {name: profile.gaps > 0 for name, profile in profiles.items()}
        self.means_: dict[str, float] = {}
        self.scales_: dict[str, float] = {}
        self.levels_: dict[str, tuple[str, ...]] = {}
        self.pooled_: dict[str, tuple[str, ...]] = {}
        names: list[str] = []
        for name, profile in profiles.items():
            if profile.kind == "category":
                names += self._fit_levels(name, profile)
                continue
            self.means_[name], self.scales_[name] = profile.mean, profile.scale
            names += [name, f"{name}={MISSING}"] if self.gaps_[name] else [name]
        self.names_out_ = tuple(names)
        return self

    def _fit_levels(self, name: str, profile: ColumnProfile) -> list[str]:
        counts, many = profile.counts, len(profile.counts) > self.max_levels
        fewest = max(self.min_tasks, 0.002 * profile.size) if many else 0
        self.levels_[name] = tuple(sorted(v for v, n in counts.items() if n >= fewest))
        self.pooled_[name] = tuple(sorted(v for v, n in counts.items() if n < fewest))
        extra = [OTHER] * bool(self.pooled_[name]) + [MISSING] * self.gaps_[name]
        return [f"{name}={level}" for level in [*self.levels_[name], *extra]]

    def sources_out(self) -> list[str]:
        """Return the raw column that each of the k encoded columns comes from."""
        sources: list[str] = []
        for name, kind in self.kinds_.items():
            numeric = kind != "category"
            width = 1 + self.gaps_[name] if numeric else len(set(self._places(name).values()))
            sources += [name] * width
        return sources

    def columns_out(self) -> list[EncodedColumn]:
        """Return how each of the k encoded columns is computed."""
        out: list[EncodedColumn] = []
        for name, kind in self.kinds_.items():
            if kind == "category":
                place = self._places(name)
                levels = [[v for v, j in place.items() if j == at] for at in set(place.values())]
                out += [EncodedColumn(name, tuple(values)) for values in levels]
                continue
            scaled = kind == "number" and not self.of_rows
            unit = (self.means_[name], self.scales_[name]) if scaled else (0.0, 1.0)
            out.append(EncodedColumn(name, None, self.means_[name], *unit, kind == "boolean"))
            if self.gaps_[name]:
                out.append(EncodedColumn(name, (None,)))
        return out

    def units_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and scale (k,): an encoded number is (value - mean) / scale.

        Columns that are not scaled have mean 0 and scale 1.
        """
        columns = self.columns_out()
        return np.array([c.mean for c in columns]), np.array([c.scale for c in columns])

    def transform(self, table: TaskTable) -> np.ndarray:
        """Return the encoded table, (T, k) float64."""
        table = table.align(self.columns_)
        unseen = self.unseen_levels(table)
        if unseen:
            shown = "; ".join(f"{name!r}: {_listed(levels)}" for name, levels in unseen.items())
            what = "Columns" if self.of_rows else "Side columns"
            message = f"{what} {UNSEEN}, encoded as all zero: {shown}."
            warn(message, UserWarning)
        blocks = [np.empty((table.n_tasks, 0))]
        for name, column in table.data.items():
            encode = self._one_hot if self.kinds_[name] == "category" else self._scaled
            blocks.append(encode(name, column, table.ids))
        return np.concatenate(blocks, axis=1)

    def _scaled(self, name: str, column: np.ndarray, ids: np.ndarray) -> np.ndarray:
        values = self._numbers(column, name, ids)
        gap = np.isnan(values)
        filled = np.where(gap, self.means_[name], values)
        if self.kinds_[name] == "number" and not self.of_rows:
            filled = (filled - self.means_[name]) / self.scales_[name]
        return np.column_stack([filled, gap] if self.gaps_[name] else [filled]).astype(float)

    def _one_hot(self, name: str, column: np.ndarray, ids: np.ndarray) -> np.ndarray:
        place = self._places(name)
        width = len(set(place.values()))
        codes, levels = coded(column)
        # unknown levels go to an extra last column, which is dropped
        at = np.array([place.get(level, width) for level in levels], np.int64)
        out = np.zeros((column.size, width + 1))
        out[np.arange(column.size), at[codes]] = 1.0
        return out[:, :width]

    def _places(self, name: str) -> dict[str | None, int]:
        """Return level -> column within the block of a categorical column."""
        levels, pooled = self.levels_[name], self.pooled_[name]
        place: dict[str | None, int] = {level: j for j, level in enumerate(levels)}
        place |= dict.fromkeys(pooled, len(levels))
        if self.gaps_[name]:
            place[None] = len(levels) + bool(pooled)
        return place

    def unseen_levels(self, table: TaskTable) -> dict[str, dict[str, int]]:
        """Return for each categorical column the levels that fit did not see, with their counts."""
        out = {}
        for name in self.levels_:
            known = {*self.levels_[name], *self.pooled_[name]}
            counts = ColumnProfile.of_levels(table.data[name]).counts
            out[name] = {level: n for level, n in counts.items() if level not in known}
        return {name: new for name, new in out.items() if new}

    def _numbers(self, column: np.ndarray, name: str, ids: np.ndarray) -> np.ndarray:
        """Return a column that was numeric in fit as floats with NaN for gaps."""
        what = "Column" if self.of_rows else "Side column"
        if column.dtype == object:
            values: list[Any] = column.tolist()
            at = next((i for i, v in enumerate(values) if isinstance(v, str)), None)
            if at is not None:
                changed = f"held numbers in fit and holds text ({values[at]!r}, ...) now"
                where = f", first in row {at + 1:,}" if self.of_rows else ""
                if not self.of_rows and ids[at] is not None:
                    where = f", first of task {show_id(ids[at])}"
                raise DataError(f"{what} {name!r} {changed}{where}: turn it into numbers.")
            return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
        column = column.astype(np.float64)
        if np.isinf(column).any():
            at = int(np.argmax(np.isinf(column)))
            owner = f"Row {at + 1}" if self.of_rows else name_task(ids[at])
            raise DataError(f"{owner} has infinity in {what.lower()} {name!r}.")
        return column


def _listed(levels: dict[str, int]) -> str:
    """List the first five levels with their counts."""
    shown = ", ".join(f"{level!r} ({count})" for level, count in list(levels.items())[:5])
    return f"{shown}, ..." if len(levels) > 5 else shown
