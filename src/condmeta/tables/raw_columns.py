"""Columns that are not features yet: dates, and numbers that are written as text.

`fit` finds a reader for each of them, and later tables are read by the same readers.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from condmeta.errors import DataError, ReadingNote
from condmeta.tables.dates import DateReader, find_dates
from condmeta.tables.roles import ColumnOptions
from condmeta.tables.written_numbers import NumberReader, find_numbers
from condmeta.tasks.each_column import each_column
from condmeta.tasks.frames import column_names, get_raw, replace_columns
from condmeta.tasks.numbers import is_na
from condmeta.typing import Frame
from condmeta.warn import warn

Readers: TypeAlias = Mapping[str, NumberReader | DateReader]


def find_readers(
    frame: Frame, names: Iterable[str], options: ColumnOptions, country: str | None = None, *,
    of_rows: bool = True, of_tasks: bool = False,
) -> Readers:  # fmt: skip
    """Return a reader for each of the named columns that needs one; a note says how it is read.

    `of_rows` says that the table has all rows, so that errors can name them, and not each value
    once. `of_tasks` says that the columns are side information.
    """
    raw = {name: get_raw(frame, name) for name in names if name not in options.text}
    found = each_column(
        raw, lambda name: _find(raw[name], name, options, country, of_rows, of_tasks)
    )
    readers = {name: reader for name, reader in found.items() if reader is not None}
    for name, reader in readers.items():
        shown = next((str(v) for v in raw[name].tolist() if not is_na(v)), "")
        warn(f"{reader.note(name, shown)}.", ReadingNote)
    refuse_clash(column_names(frame), readers)
    return readers


def refuse_clash(have: Iterable[str], readers: Readers) -> None:
    """Refuse a table that has a column of the name of one that dates become."""
    taken = {new for old, reader in readers.items() for new in new_names(reader, old)} - {*readers}
    clash = next((name for name in have if name in taken), None)
    if clash is not None:
        raise DataError(
            f"The table already has a column {clash!r}, and dates would make one of that name: "
            "rename yours."
        )


def _find(
    values: np.ndarray, name: str, options: ColumnOptions, country: str | None, of_rows: bool,
    of_tasks: bool,
) -> Any:  # fmt: skip
    if name != options.target:
        reader = find_dates(values, name, options.dates, country, of_tasks=of_tasks)
        if reader is not None:
            return reader
    if values.dtype != object:
        return None
    try:
        texts = [v for v in dict.fromkeys(values.tolist()) if not is_na(v)]  # in the order of rows
    except TypeError:  # lists and the like: no text
        return None
    if all(isinstance(v, str) for v in texts):
        row_of = values.tolist().index if of_rows else None
        return find_numbers(texts, name, options.decimal, row_of)
    return None


def apply_readers(frame: Frame, readers: Readers, names: Iterable[str] | None = None) -> Any:
    """Return a table in which raw columns, or the named ones, are replaced by what they become."""
    have = set(column_names(frame)) if names is None else set(names)
    raw = [name for name in readers if name in have]
    found = each_column(raw, lambda name: readers[name].read(get_raw(frame, name), name))
    return replace_columns(frame, found) if found else frame


def new_names(reader: NumberReader | DateReader | None, name: str) -> list[str]:
    """Return the columns that one column becomes."""
    return reader.names(name) if isinstance(reader, DateReader) else [name]


def expand_names(names: Sequence[str], readers: Readers) -> list[str]:
    """Return the names of columns after their readers were applied."""
    return [new for name in names for new in new_names(readers.get(name), name)]
