"""Read the columns of a table by their role: features, side information, numbers without gaps."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tables.raw_columns import Readers, apply_readers, expand_names
from condmeta.tables.roles import Roles, open_side_table, read_side
from condmeta.tables.values import require_values
from condmeta.tasks import TaskTable
from condmeta.tasks.each_column import each_column
from condmeta.tasks.frames import (
    column_names,
    eager,
    get_column,
    get_series,
    is_frame,
    require_columns,
    select_columns,
)
from condmeta.tasks.ids import factorize
from condmeta.tasks.numbers import to_floats
from condmeta.tasks.side_column import type_column
from condmeta.tasks.side_table import side_from_rows


def read_features(frame: Any, names: list[str], readers: Readers) -> TaskTable:
    """Return the raw features of a table, typed, one entry a row."""
    require_columns(frame, names, "features")
    frame = apply_readers(select_columns(frame, names), readers)
    read = expand_names(names, readers)
    data = each_column(read, lambda name: type_column(get_series(frame, name), name, "Column"))
    n_rows = len(next(iter(data.values()))) if data else 0
    return TaskTable.trusted(np.arange(n_rows), data)


def refuse_gaps(gaps: dict[str, int], n_rows: int, remedy: str) -> None:
    """Refuse missing features; the error counts them by column."""
    found = [f"{name!r} {count:,}" for name, count in gaps.items() if count]
    if found:
        shown = ", ".join(found[:8]) + (", ..." if len(found) > 8 else "")
        raise DataError(
            f"Features have missing values among {n_rows:,} rows: {shown}. Fill them, drop "
            f"the rows, or {remedy} to use the mean and mark the gaps."
        )


def read_side_columns(
    side_info: Any, roles: Roles, columns: list[str], readers: Readers
) -> TaskTable:
    """Return the named columns of a side table."""
    if isinstance(side_info, Mapping):
        key = roles.side_key or roles.task
        if not any(isinstance(row, Mapping) for row in side_info.values()) and not set(
            columns
        ).isdisjoint(side_info):
            raise DataError(
                "side_info is one row, and does not say which task it is about: pass a dict of id "
                f"-> row, or a table with the column {key[0]!r}."
            )
        side_info = open_side_table(side_info, key, readers)
    if is_frame(side_info):
        have = set(column_names(side_info))
        lacking = [name for name in columns if name not in have]
        side_info = side_info if lacking else apply_readers(eager(side_info), readers, columns)
        columns = columns if lacking else expand_names(columns, readers)
    return read_side(side_info, roles._replace(side_table=columns))


def side_of_rows(frame: Any, roles: Roles, readers: Readers) -> TaskTable:
    """Return the side columns of a table of rows, one entry a task."""
    opened = apply_readers(select_columns(frame, roles.side), readers)
    columns = {name: get_column(opened, name) for name in expand_names(roles.side, readers)}
    return side_from_rows(columns, *factorize(roles.ids(frame)))


def read_numbers(frame: Any, name: str, role: str) -> np.ndarray:
    """Return a column of numbers without gaps."""
    require_columns(frame, [name], role)
    require_values(frame, [name], role)
    return to_floats(get_column(frame, name), f"Column {name!r}", role=role)
