"""Columns that are not features yet: dates, and numbers that are written as text.

`fit` finds a reader for each of them, and later tables are read by the same readers.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from condmeta.errors import DataError, ReadingNote
from condmeta.tables.dates import PARTS, DateReader, find_dates
from condmeta.tables.roles import ColumnOptions
from condmeta.tables.written_numbers import NumberReader, find_numbers
from condmeta.tasks.frames import column_names, get_raw, replace_columns
from condmeta.tasks.numbers import is_na
from condmeta.typing import Frame

Readers: TypeAlias = Mapping[str, NumberReader | DateReader]


def find_readers(
    frame: Frame, names: Iterable[str], options: ColumnOptions, country: str | None = None
) -> Readers:
    """Return a reader for each of the named columns that needs one; a note says how it is read."""
    readers: dict[str, NumberReader | DateReader] = {}
    for name in names:
        if name in options.text:
            continue
        values = get_raw(frame, name)
        reader = _find(values, name, options, country)
        if reader is not None:
            readers[name] = reader
            shown = next((str(v) for v in values.tolist() if not is_na(v)), "")
            warnings.warn(f"{reader.note(name, shown)}.", ReadingNote, stacklevel=5)
    refuse_clash(column_names(frame), readers)
    return readers


def refuse_clash(have: Iterable[str], readers: Readers) -> None:
    """Refuse a table that has a column of the name of one that dates become."""
    taken = {new for old, reader in readers.items() for new in new_names(reader, old)} - {*readers}
    clash = next((name for name in have if name in taken), None)
    if clash is not None:
        raise DataError(f"Column {clash!r} would be made from dates, and is there: rename it.")


def _find(values: np.ndarray, name: str, options: ColumnOptions, country: str | None) -> Any:
    if name != options.target:
        parts = PARTS if options.dates is None else options.dates
        reader = find_dates(values, name, parts, country)
        if reader is not None:
            return reader
    if values.dtype != object:
        return None
    texts = {v for v in set(values.tolist()) if not is_na(v)}
    if all(isinstance(v, str) for v in texts):
        return find_numbers(texts, name, options.decimal)
    return None


def apply_readers(frame: Frame, readers: Readers, names: Iterable[str] | None = None) -> Any:
    """Return a table in which raw columns, or the named ones, are replaced by what they become."""
    have = set(column_names(frame)) if names is None else set(names)
    found = {n: r.read(get_raw(frame, n), n) for n, r in readers.items() if n in have}
    return replace_columns(frame, found) if found else frame


def new_names(reader: NumberReader | DateReader | None, name: str) -> list[str]:
    """Return the columns that one column becomes."""
    return reader.names(name) if isinstance(reader, DateReader) else [name]


def expand_names(names: Sequence[str], readers: Readers) -> list[str]:
    """Return the names of columns after their readers were applied."""
    return [new for name in names for new in new_names(readers.get(name), name)]
