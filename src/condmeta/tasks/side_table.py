"""Read side information in the forms users have it, into a `TaskTable`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.frames import (
    backend_of,
    column_names,
    drop_columns,
    eager,
    get_series,
    is_frame,
    is_series,
    require_columns,
    select_columns,
    to_array,
)
from condmeta.tasks.ids import as_id_array, name_task, show_id
from condmeta.tasks.numbers import is_na
from condmeta.tasks.side_column import type_column
from condmeta.tasks.task_table import TaskTable, object_matrix

__all__ = ["TaskTable", "as_names", "read_side_row", "read_side_table", "side_from_rows"]


def as_names(name: Any) -> list[Any]:
    """Return one name, or a list or tuple of them, as a list."""
    if name is None:
        return []
    return list(name) if isinstance(name, list | tuple) else [name]


def read_side_table(side_info: Any, *, task_name: Any = None, side_key: Any = None) -> TaskTable:
    """Read side information given as a table, a dict or a TaskTable.

    The key of a table is `side_key` if given; else a named pandas index; else the column named
    like the task column (`task_name`, or several names); else a pandas index that is not the
    default count of rows. A dict is read as id -> row, a row being a dict, a sequence or one value.
    """
    if isinstance(side_info, TaskTable):
        return side_info
    if isinstance(side_info, Mapping):
        return _read_dict(side_info)
    if not is_frame(side_info):
        raise DataError(
            "side_info must say which task each row belongs to; got a "
            f"{type(side_info).__name__}. Wrap an array in TaskTable(values, ids), or pass a "
            "table with a key column, or a dict of id -> row."
        )
    frame = eager(side_info)
    key = as_names(side_key)
    if key:
        require_columns(frame, key, "side_key")
        return _keyed_by(frame, key)
    index = frame.index if backend_of(frame) == "pandas" else None
    if index is not None and any(name is not None for name in index.names):
        return TaskTable(frame, index)
    names, task = column_names(frame), as_names(task_name)
    if task and all(name in names for name in task):
        return _keyed_by(frame, task)
    if index is not None and type(index).__name__ != "RangeIndex":
        return TaskTable(frame, index)
    wanted = f"no column {', '.join(map(repr, task))}" if task else "no task ids"
    remedy = "set its index to the task ids, or name the key column" if index is not None else ""
    raise DataError(
        f"The side table has {wanted}: {remedy or 'name its key column'} with side_key=."
    )


def _keyed_by(frame: Any, key: list[Any]) -> TaskTable:
    ids = select_columns(frame, key) if set(key) <= set(column_names(frame)) else None
    if ids is None:
        frame = frame.reset_index()  # side_key= names a level of a pandas index
        ids = select_columns(frame, key)
    return TaskTable(drop_columns(frame, key), ids)


def _read_dict(rows: Mapping[Any, Any]) -> TaskTable:
    """Read id -> row; every row has the columns of the first."""
    if not rows:
        raise DataError("side_info is an empty dict: it must hold one row a task.")
    ids = as_id_array(list(rows))
    first = next(iter(rows.values()))
    if not isinstance(first, Mapping):
        values = [_unwrap(row) for row in rows.values()]
        return TaskTable(values, ids)
    columns = list(first)
    for task_id, row in rows.items():
        if not isinstance(row, Mapping) or set(row) != set(columns):
            have = sorted(map(str, row)) if isinstance(row, Mapping) else [type(row).__name__]
            raise DataError(
                f"{name_task(task_id)} has the side columns {', '.join(have)}, "
                f"expected {', '.join(map(str, columns))} (use None for a gap)."
            )
    return TaskTable({name: [row[name] for row in rows.values()] for name in columns}, ids)


def _unwrap(row: Any) -> Any:
    """Return a row as a list or a single value."""
    return row.tolist() if hasattr(row, "tolist") else row


def read_side_row(row: Any, columns: Sequence[str] | None = None) -> TaskTable:
    """Read the side information of one new task; its id is None.

    `row` is a dict of column -> value, a pandas Series, a table of one row, a 1-D array or list,
    a number or a text. `columns` names the values of the last three.
    """
    no_id = as_id_array([None])
    if isinstance(row, TaskTable) or is_frame(row):
        if isinstance(row, TaskTable):
            data, n_rows = row.data, row.n_tasks
        else:
            frame = eager(row)
            data = {str(n): to_array(get_series(frame, n)) for n in column_names(frame)}
            n_rows = int(frame.shape[0]) if hasattr(frame, "shape") else frame.num_rows
        if n_rows != 1:
            raise DataError(f"side_info has {n_rows} rows for one task: pass one row, or task=.")
        data = _wanted(data, columns)
        return TaskTable._make(no_id, {n: type_column(c, n) for n, c in data.items()})
    if backend_of(row) == "pandas" and hasattr(row, "index"):
        row = {str(name): value for name, value in zip(row.index, row.tolist(), strict=True)}
    if not isinstance(row, Mapping):
        values = np.atleast_2d(row) if isinstance(row, np.ndarray) else object_matrix([row])
        if values.shape[0] != 1:
            raise DataError(f"side_info has shape {values.shape} for one task: pass one row.")
        values = values[0]
        names = columns if columns is not None else [f"s{j}" for j in range(values.size)]
        if len(names) != values.size:
            raise DataError(
                f"The side row has {values.size} values, expected {len(names)}: "
                f"{', '.join(map(repr, names))}."
            )
        row = dict(zip(names, values.tolist(), strict=True))
    row = _wanted({str(name): value for name, value in row.items()}, columns)
    return TaskTable._make(no_id, {n: type_column([value], n) for n, value in row.items()})


def _wanted(row: dict[str, Any], columns: Sequence[str] | None) -> dict[str, Any]:
    """Leave out what is no side column: a row cut from a keyed table may still carry its key."""
    if columns is None:
        return row
    return {name: value for name, value in row.items() if name in columns} or row


def side_from_rows(columns: Mapping[str, Any], codes: np.ndarray, ids: np.ndarray) -> TaskTable:
    """Make a side table from row-aligned columns that are constant within each task.

    `codes` (N,) are the positions of the rows' tasks among `ids`, each with at least one row.
    """
    first = np.empty(len(ids), np.int64)
    first[codes[::-1]] = np.arange(codes.size - 1, -1, -1)  # the last write wins: the first row
    data = {}
    for name, values in columns.items():
        column = to_array(values) if is_series(values) else np.asarray(values)
        per_task = column[first]
        expected = per_task[codes]
        differs = column != expected
        if column.dtype.kind in "fM":  # a gap equals a gap
            differs &= ~(np.isnan(column) & np.isnan(expected))
        for row in np.flatnonzero(differs):
            if not (is_na(column[row]) and is_na(expected[row])):
                raise DataError(
                    f"Side column {name!r} varies within task {show_id(ids[codes[row]])} "
                    f"({expected[row]} and {column[row]}): a side column has one value a task; "
                    "use it as a feature instead."
                )
        data[str(name)] = type_column(per_task, str(name))
    return TaskTable._make(as_id_array(list(ids)), data)
