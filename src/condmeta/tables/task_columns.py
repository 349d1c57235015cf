"""Task columns that a table lacks: the region of a store, if the side table names it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import narwhals as nw

from condmeta.errors import DataError, ReadingNote
from condmeta.tasks.frames import column_names, get_column, index_names, is_frame
from condmeta.tasks.messages import show_id
from condmeta.warn import warn


def with_task_columns(frame: Any, side_info: Any, task: list[str]) -> Any:
    """Return a table with the task columns that only its side table has, found by the others.

    A `ReadingNote` says so. Where the side table does not have them either, the table is returned
    as it is, and the columns are reported as missing.
    """
    lacking, given = _lacking(frame, task)
    if not lacking or not given or side_info is None or not is_frame(side_info):
        return frame
    if not set(task) <= set(column_names(side_info)):
        return frame
    columns = [get_column(side_info, name).tolist() for name in task]
    found = _filled(frame, task, zip(*columns, strict=True), "in the side table")
    names = " and ".join(map(repr, lacking))
    warn(
        f"The table has no column {names}: it is read from the side table, by "
        f"{' and '.join(given)}.",
        ReadingNote,
    )  # fmt: skip
    return found


def with_known_columns(frame: Any, side_info: Any, task: list[str], known: Iterable) -> Any:
    """Return a table with the task columns it lacks, from its side table or the known tasks."""
    lacking, given = _lacking(frame, task)
    if not lacking or not given:
        return frame
    rows = [task_id for task_id in known if isinstance(task_id, tuple)]
    if side_info is not None and is_frame(side_info) and set(task) <= set(column_names(side_info)):
        columns = [get_column(side_info, name).tolist() for name in task]
        rows = [*rows, *zip(*columns, strict=True)]
    return _filled(frame, task, rows, "among the known tasks") if rows else frame


def _lacking(frame: Any, task: list[str]) -> tuple[list[str], list[str]]:
    have = {*column_names(frame), *index_names(frame)}
    lacking = [name for name in task if name not in have]
    return lacking, [name for name in task if name in have]


def _filled(frame: Any, task: list[str], rows: Iterable, where: str) -> Any:
    """Return a table with the task columns it lacks; `rows` are ids of tasks, as tuples."""
    lacking, given = _lacking(frame, task)
    at = {name: position for position, name in enumerate(task)}
    found: dict[tuple, tuple] = {}
    for row in rows:
        key = tuple(row[at[name]] for name in given)
        value = tuple(row[at[name]] for name in lacking)
        if found.setdefault(key, value) != value:
            one, two = (show_id(v[0] if len(v) == 1 else v) for v in (found[key], value))
            raise DataError(
                f"The table has no column {lacking[0]!r}, and {' and '.join(given)} "
                f"{show_id(key[0] if len(key) == 1 else key)} is in {one} and in {two} {where}: "
                f"add {lacking[0]!r} to the table."
            )
    keys = list(zip(*(get_column(frame, name).tolist() for name in given), strict=True))
    absent = next((key for key in keys if key not in found), None)
    if absent is not None:
        raise DataError(
            f"The table has no column {lacking[0]!r}, and there is no {' and '.join(given)} "
            f"{show_id(absent[0] if len(absent) == 1 else absent)} {where}: add {lacking[0]!r} to "
            "the table, or the task to the side table."
        )
    table = nw.from_native(frame, eager_only=True)
    more = []
    for j, name in enumerate(lacking):
        column = nw.new_series(name, [found[key][j] for key in keys], backend=table.implementation)
        if table.implementation.is_pandas_like():  # the rows may have an index of their own
            native = column.to_native()
            native.index = nw.to_native(table).index
            column = nw.from_native(native, series_only=True)
        more.append(column)
    return table.with_columns(*more).to_native()
