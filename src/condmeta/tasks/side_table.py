"""Read side information in any form that users have into a `TaskTable`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks import frames
from condmeta.tasks.each_column import each_column
from condmeta.tasks.ids import as_id_array
from condmeta.tasks.messages import name_task, show_id
from condmeta.tasks.numbers import is_na
from condmeta.tasks.side_column import type_column
from condmeta.tasks.task_table import TaskTable, object_matrix
from condmeta.text import pluralize


def as_names(name: Any) -> list[Any]:
    """Return one name, or a list or tuple of them, as a list."""
    if name is None:
        return []
    return list(name) if isinstance(name, list | tuple) else [name]


def read_side_table(side_info: Any, *, task_name: Any = None, side_key: Any = None) -> TaskTable:
    """Read side information given as a table, a dict or a TaskTable.

    The key of a table is `side_key` if given; else a named pandas index; else the column named
    like the task column (`task_name`, or several names); else a pandas index that is not the
    default RangeIndex. A dict is read as id -> row; a row is a dict, a sequence or one value.
    """
    if isinstance(side_info, TaskTable):
        return side_info
    if isinstance(side_info, Mapping):
        return _read_dict(side_info)
    if not frames.is_frame(side_info):
        raise DataError(
            "side_info must say which task each row belongs to; got a "
            f"{type(side_info).__name__}. Wrap an array in TaskTable(values, ids), or pass a "
            "table with a key column, or a dict of id -> row."
        )
    frame = frames.eager(side_info)
    key = as_names(side_key)
    if key:
        frames.require_columns(frame, key, "side_key")
        return _keyed_by(frame, key)
    index = frame.index if frames.backend_of(frame) == "pandas" else None
    if index is not None and any(name is not None for name in index.names):
        return TaskTable(frame, index)
    names, task = frames.column_names(frame), as_names(task_name)
    if task and all(name in names for name in task):
        return _keyed_by(frame, task)
    if index is not None and type(index).__name__ != "RangeIndex":
        return TaskTable(frame, index)
    wanted = f"no column {', '.join(map(repr, task))}" if task else "no task ids"
    remedy = "name its key column"
    if index is not None:
        remedy = "set its index to the task ids, or name the key column"
    raise DataError(f"The side table has {wanted}: {remedy} with side_key=.")


def _keyed_by(frame: Any, key: list[Any]) -> TaskTable:
    if not set(key) <= set(frames.column_names(frame)):
        frame = frame.reset_index()  # side_key= names a level of a pandas index
    return TaskTable(frames.drop_columns(frame, key), frames.select_columns(frame, key))


def _read_dict(rows: Mapping[Any, Any]) -> TaskTable:
    """Read id -> row; every row must have the columns of the first."""
    if not rows:
        raise DataError("side_info is an empty dict: it must hold one row per task.")
    ids = as_id_array(list(rows))
    first = next(iter(rows.values()))
    if not isinstance(first, Mapping):
        values = [row.tolist() if hasattr(row, "tolist") else row for row in rows.values()]
        return TaskTable(values, ids)
    columns = require_same_columns(rows)
    return TaskTable({name: [row[name] for row in rows.values()] for name in columns}, ids)


def require_same_columns(rows: Mapping[Any, Any]) -> list[Any]:
    """Return the columns of the first row of a dict of id -> row; raise if others have others."""
    columns = list(next(iter(rows.values())))
    for task_id, row in rows.items():
        if not isinstance(row, Mapping) or set(row) != set(columns):
            have = sorted(map(str, row)) if isinstance(row, Mapping) else [type(row).__name__]
            raise DataError(
                f"{name_task(task_id)} has the side columns {', '.join(have)}, "
                f"expected {', '.join(map(str, columns))} (use None for a gap)."
            )
    return columns


def read_side_row(row: Any, columns: Sequence[str] | None = None) -> TaskTable:
    """Read the side information of one new task; its id is None.

    `row` is a dict of column -> value, a pandas Series, a table of one row, a 1-D array or list,
    a number or a text. `columns` names the values of the last three.
    """
    if isinstance(row, TaskTable):
        data, n_rows = row.data, row.n_tasks
    elif frames.is_frame(row):
        frame = frames.eager(row)
        data = {str(n): frames.get_column(frame, n) for n in frames.column_names(frame)}
        n_rows = frame.shape[0]
    else:
        data, n_rows = _read_values(row, columns), 1
    if n_rows != 1:
        raise DataError(f"side_info has {n_rows} rows for one task: pass one row, or task=.")
    if columns is not None:  # a row of a keyed table may still contain its key
        data = {name: column for name, column in data.items() if name in columns} or data
    typed = each_column(data, lambda name: type_column(data[name], name))
    return TaskTable.trusted(as_id_array([None]), typed)


def _read_values(row: Any, columns: Sequence[str] | None) -> dict[str, list]:
    """Return a row that is no table as columns of one value."""
    if frames.backend_of(row) == "pandas" and hasattr(row, "index"):
        row = dict(zip(row.index, row.tolist(), strict=True))
    if not isinstance(row, Mapping):
        values = np.atleast_2d(row) if isinstance(row, np.ndarray) else object_matrix([row])
        if values.shape[0] != 1:
            raise DataError(f"side_info has shape {values.shape} for one task: pass one row.")
        names = columns if columns is not None else [f"s{j}" for j in range(values.size)]
        if len(names) != values.size:
            shown = f"{len(names)}: {', '.join(map(repr, names))}"
            raise DataError(
                f"The side row has {pluralize(values.size, 'value')}, expected {shown}."
            )
        row = dict(zip(names, values[0].tolist(), strict=True))
    return {str(name): [value] for name, value in row.items()}


def side_from_rows(columns: Mapping[str, Any], codes: np.ndarray, ids: np.ndarray) -> TaskTable:
    """Make a side table from row-aligned columns that are constant within each task.

    `codes` (N,) are the positions of the rows' tasks among `ids`; each task has at least one row.
    """
    first = _first_rows(codes, len(ids))

    def read(name: str) -> np.ndarray:
        column = _as_array(columns[name])
        for row in _differing(column, codes, first):
            raise DataError(
                f"Side column {name!r} varies within task {show_id(ids[codes[row]])} "
                f"({column[first[codes[row]]]} and {column[row]})",
                ": a side column must have one value per task. Use it as a feature instead.",
            )
        return type_column(column[first], str(name))

    data = {str(name): column for name, column in each_column(columns, read).items()}
    return TaskTable.trusted(as_id_array(list(ids)), data)


def varies_within_tasks(columns: Mapping[str, Any], codes: np.ndarray, n_tasks: int) -> bool:
    """Return whether a row-aligned column has several values in a task; see `side_from_rows`."""
    first = _first_rows(codes, n_tasks)
    parts = (_differing(_as_array(values), codes, first) for values in columns.values())
    return any(next(rows, None) is not None for rows in parts)


def _first_rows(codes: np.ndarray, n_tasks: int) -> np.ndarray:
    """Return the first row of each task, (T,)."""
    first = np.empty(n_tasks, np.int64)
    first[codes[::-1]] = np.arange(codes.size - 1, -1, -1)  # the last write is the first row
    return first


def _as_array(values: Any) -> np.ndarray:
    return frames.to_array(values) if frames.is_series(values) else np.asarray(values)


def _differing(column: np.ndarray, codes: np.ndarray, first: np.ndarray) -> Iterator[int]:
    """Yield the rows that differ from the first row of their task; a gap equals a gap."""
    expected = column[first][codes]
    differs = column != expected
    if column.dtype.kind in "fM":
        differs &= ~(np.isnan(column) & np.isnan(expected))
    for row in np.flatnonzero(differs):
        if not (is_na(column[row]) and is_na(expected[row])):
            yield int(row)
