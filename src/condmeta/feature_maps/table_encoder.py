"""Encode raw columns as numbers: for `feature_map="auto"`, and for the features of a table."""

import warnings
from typing import Any, Self

import numpy as np

from condmeta.errors import DataError
from condmeta.persistence import register
from condmeta.tasks.codes import object_codes
from condmeta.tasks.messages import name_task
from condmeta.tasks.numbers import level_name, standard_deviation
from condmeta.tasks.task_table import TaskTable

OTHER = "(other)"
MISSING = "(missing)"


@register
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
        self.columns_ = table.columns
        self.kinds_: dict[str, str] = {}
        self.means_: dict[str, float] = {}
        self.scales_: dict[str, float] = {}
        self.gaps_: dict[str, bool] = {}
        self.levels_: dict[str, tuple[str, ...]] = {}
        self.pooled_: dict[str, tuple[str, ...]] = {}
        names: list[str] = []
        for name, column in table.data.items():
            self.kinds_[name] = kind = _kind(column)
            if kind == "category":
                names += self._fit_levels(name, column)
            else:
                names += self._fit_numbers(name, self._numbers(column, name, table.ids), kind)
        self.names_out_ = tuple(names)
        return self

    def _fit_numbers(self, name: str, values: np.ndarray, kind: str) -> list[str]:
        seen = values[~np.isnan(values)]
        constant = seen.size == 0 or seen.min() == seen.max()
        mean = 0.0 if seen.size == 0 else float(seen[0] if constant else seen.mean())
        scale = 1.0 if constant or kind == "boolean" else standard_deviation(seen)
        self.means_[name] = mean
        self.scales_[name] = scale if scale > 0 else 1.0
        self.gaps_[name] = bool(seen.size < values.size)
        return [name, f"{name}={MISSING}"] if self.gaps_[name] else [name]

    def _fit_levels(self, name: str, column: np.ndarray) -> list[str]:
        counts = _counts(column)
        fewest = max(self.min_tasks, 0.002 * column.size) if len(counts) > self.max_levels else 0
        self.levels_[name] = tuple(sorted(v for v, n in counts.items() if n >= fewest))
        self.pooled_[name] = tuple(sorted(v for v, n in counts.items() if n < fewest))
        self.gaps_[name] = sum(counts.values()) < column.size
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

    def units_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and scale (k,): an encoded number is (value - mean) / scale.

        Columns that are not scaled have mean 0 and scale 1.
        """
        mean, scale = np.zeros(len(self.names_out_)), np.ones(len(self.names_out_))
        for j, name in enumerate(self.names_out_):
            if self.kinds_.get(name) == "number" and not self.of_rows:
                mean[j], scale[j] = self.means_[name], self.scales_[name]
        return mean, scale

    def transform(self, table: TaskTable) -> np.ndarray:
        """Return the encoded table, (T, k) float64."""
        table = table.align(self.columns_)
        unseen = self.unseen_levels(table)
        if unseen:
            shown = "; ".join(f"{name!r}: {_listed(levels)}" for name, levels in unseen.items())
            what = "Columns" if self.of_rows else "Side columns"
            message = f"{what} hold levels not seen in training, encoded as all zero: {shown}."
            warnings.warn(message, UserWarning, stacklevel=2)
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
        codes, levels = _coded(column)
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
            known, counts = {*self.levels_[name], *self.pooled_[name]}, _counts(table.data[name])
            out[name] = {level: n for level, n in counts.items() if level not in known}
        return {name: new for name, new in out.items() if new}

    def _numbers(self, column: np.ndarray, name: str, ids: np.ndarray) -> np.ndarray:
        """Return a column that was numeric in fit as floats with NaN for gaps."""
        what = "Column" if self.of_rows else "Side column"
        if column.dtype == object:
            values: list[Any] = column.tolist()
            text = next((v for v in values if isinstance(v, str)), None)
            if text is not None:
                changed = f"held numbers in fit and holds text ({text!r}, ...) now"
                raise DataError(f"{what} {name!r} {changed}.")
            return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
        column = column.astype(np.float64)
        if np.isinf(column).any():
            at = int(np.argmax(np.isinf(column)))
            owner = f"Row {at + 1}" if self.of_rows else name_task(ids[at])
            raise DataError(f"{owner} has infinity in {what.lower()} {name!r}.")
        return column


def _kind(column: np.ndarray) -> str:
    if column.dtype == bool:
        return "boolean"
    if column.dtype != object:
        return "number"
    return "boolean" if all(v is None or isinstance(v, bool) for v in column) else "category"


def _coded(column: np.ndarray) -> tuple[np.ndarray, list[str | None]]:
    """Return codes (n,) of a categorical column and its levels as text, None for gaps.

    Numbers become text, so two levels may have the same text.
    """
    codes, values = object_codes(column.tolist())
    # NaN differs from itself: each gap of a numeric column is a value of its own
    return codes, [None if v is None or v != v else level_name(v) for v in values]


def _counts(column: np.ndarray) -> dict[str, int]:
    """Return the count of each level of a categorical column, without gaps."""
    codes, levels = _coded(column)
    counts: dict[str, int] = {}
    for level, count in zip(levels, np.bincount(codes, minlength=len(levels)), strict=True):
        if level is not None:
            counts[level] = counts.get(level, 0) + int(count)
    return counts


def _listed(levels: dict[str, int]) -> str:
    """List the first five levels with their counts."""
    shown = ", ".join(f"{level!r} ({count})" for level, count in list(levels.items())[:5])
    return f"{shown}, ..." if len(levels) > 5 else shown
