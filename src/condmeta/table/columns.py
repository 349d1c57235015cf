"""Which column of a table is what: task, target, features, side information."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks import TaskTable
from condmeta.tasks.frames import column_names, gaps_of, get_series, require_columns
from condmeta.tasks.side_column import type_column
from condmeta.tasks.side_table import as_names


class Columns(NamedTuple):
    """The names of the columns of each role; `side` are those of the table itself."""

    task: list[str]
    target: str
    features: list[str]
    side: list[str]


def assign_columns(frame: Any, task: Any, target: Any, features: Any, exclude: Any, side: Any):
    """Say which column is what; without `features` all that have no other role are features."""
    keys, sides = as_names(task), as_names(side)
    require_columns(frame, keys, "task")
    require_columns(frame, [target], "target")
    require_columns(frame, sides, "side")
    require_columns(frame, as_names(exclude), "exclude")
    roles = [*keys, target, *sides]
    if features is None:
        features = [n for n in column_names(frame) if n not in {*roles, *as_names(exclude)}]
        if not features:
            raise DataError(
                "No column is left to be a feature: the table has the task, the target and side "
                "columns only."
            )
    require_columns(frame, as_names(features), "features")
    roles += as_names(features)
    twice = next((name for name in roles if roles.count(name) > 1), None)
    if twice is not None:
        raise DataError(
            f"Column {twice!r} has two roles: it can be task, target, feature or side column, "
            "and only one of them."
        )
    return Columns(keys, target, as_names(features), sides)


def read_rows(frame: Any, names: Sequence[str]) -> TaskTable:
    """Return raw columns of a table, typed, one row of them for each row."""
    require_columns(frame, names, "features")
    data = {name: type_column(get_series(frame, name), name, "Column") for name in names}
    n_rows = len(next(iter(data.values()))) if data else 0
    return TaskTable._make(np.arange(n_rows), data)


def refuse_gaps(rows: TaskTable) -> None:
    """Refuse features with missing values, with the count of each column."""
    counts = rows.gaps().sum(axis=0)
    if counts.any():
        told = [f"{n!r} {c:,}" for n, c in zip(rows.columns, counts.tolist(), strict=True) if c]
        shown = ", ".join(told[:8]) + (", ..." if len(told) > 8 else "")
        raise DataError(
            f"Features have missing values among {rows.n_tasks:,} rows: {shown}. Fill them, drop "
            "the rows, or say missing='impute': the mean, and a mark that it was missing."
        )


def require_values(frame: Any, names: Sequence[str], role: str) -> None:
    """Refuse rows without an id or a target, with their count and the first of them."""
    for name in names:
        gaps = gaps_of(get_series(frame, name))
        if gaps.any():
            raise DataError(
                f"Column {name!r} ({role}) is empty in {gaps.sum():,} of {len(gaps):,} rows, first "
                f"in row {int(gaps.argmax()) + 1:,}: fill it, or drop these rows."
            )
