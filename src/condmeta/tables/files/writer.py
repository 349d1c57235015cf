"""Write a table as CSV, Parquet or Feather, all at once, or to standard output."""

import csv
import io
import os
import re
import sys
from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO

from condmeta.errors import DataError
from condmeta.persistence.atomic import write_atomically
from condmeta.tables.files import arrow

FORMATS = {
    ".csv": "csv", ".txt": "csv", ".tsv": "tsv",
    ".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arrow": "feather",
}  # fmt: skip
_FORMULA = r"^[=+\-@\t\r]"


def check_output(path: str | os.PathLike) -> str:
    """Return the format of an output file; refuse a path that cannot be written."""
    path = os.fspath(path)
    if path == "-":
        return "csv"
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in FORMATS:
        raise DataError(
            f"The ending of '{path}' is not a known format: use .csv, .tsv, .parquet or .feather."
        )
    check_place(path)
    return FORMATS[suffix]


def check_place(path: str) -> None:
    """Refuse a path that cannot be written."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise DataError(f"There is no folder '{folder}' to write '{path}' to: make it first.")
    if os.path.isdir(path):
        raise DataError(f"'{path}' is a folder: give the name of a file.")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise DataError(f"'{path}' cannot be written: no permission.")


def write_table(table: Any, path: str | os.PathLike, *, safe: bool = False) -> None:
    """Write a PyArrow table in the format of the path's ending; "-" is CSV on standard output.

    After a crash there is either the old file or the new one, never a part of it. With `safe`, text
    in CSV that a spreadsheet would run as a formula (it begins with = + - @, a tab or a carriage
    return) gets an apostrophe before it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> write_table(pa.table({"store": ["007", "a, b"], "n": [1, None]}), "-")
    store,n
    "007",1
    "a, b",
    """
    write_parts(iter([table]), path, safe=safe)


def write_parts(tables: Iterator[Any], path: str | os.PathLike, *, safe: bool = False) -> None:
    """Write PyArrow tables of the same columns one after the other, as `write_table` does."""
    kind = check_output(path)
    write = _write_csv if kind in ("csv", "tsv") else _write_typed
    tables = map(_without_formulas, tables) if safe and write is _write_csv else tables
    if os.fspath(path) == "-":
        write(tables, _standard_output(), kind)
    else:
        write_atomically(path, lambda file: write(tables, file, kind))


def _without_formulas(table: Any) -> Any:
    """Return a table in which no text, and no column name, begins as a formula."""
    compute = arrow.compute
    table = _plain(table)
    for j, field in enumerate(table.schema):
        if arrow.is_text(field.type):
            column = table.column(j)
            risky = compute.match_substring_regex(column, _FORMULA)
            quoted = compute.binary_join_element_wise("'", column, "")
            table = table.set_column(j, field.name, compute.if_else(risky, quoted, column))
    names = [f"'{name}" if re.match(_FORMULA, name) else name for name in table.column_names]
    return table.rename_columns(names)


def _standard_output() -> Any:
    sys.stdout.flush()
    return getattr(sys.stdout, "buffer", None) or _Texts()


class _Texts(io.RawIOBase):
    """Standard output that accepts only text, as in notebooks and doctests."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        sys.stdout.write(bytes(data).decode())
        return len(data)


def _write_typed(tables: Iterator[Any], file: BinaryIO, kind: str) -> None:
    """Write Parquet or Feather."""
    first = next(tables)
    if kind == "parquet":
        target = arrow.parquet.ParquetWriter(file, first.schema)
    else:
        options = arrow.ipc.IpcWriteOptions(compression="lz4", unify_dictionaries=True)
        target = arrow.ipc.new_file(file, first.schema, options=options)
    with target as writer:
        for table in chain([first], tables):
            writer.write_table(table.cast(first.schema))


def _write_csv(tables: Iterator[Any], file: BinaryIO, kind: str) -> None:
    header, delimiter = io.StringIO(), "\t" if kind == "tsv" else ","
    for number, table in enumerate(tables):
        table = _plain(table)
        if number == 0:
            names = csv.writer(header, delimiter=delimiter, lineterminator="\n")
            names.writerow(table.column_names)
            file.write(header.getvalue().encode())
        style = "needed" if _needs_quotes(table, delimiter) else "none"
        options = arrow.csv.WriteOptions(
            include_header=False, delimiter=delimiter, quoting_style=style
        )
        text = io.BytesIO()  # pyarrow would close the file
        arrow.csv.write_csv(table, text, options)
        file.write(text.getvalue())
    file.flush()


def _needs_quotes(table: Any, delimiter: str) -> bool:
    compute, special = arrow.compute, f'[{delimiter}"\\r\\n]'
    texts = (column for column in table.columns if arrow.is_text(column.type))
    return any(compute.any(compute.match_substring_regex(c, special)).as_py() for c in texts)


def _plain(table: Any) -> Any:
    """Return a table that CSV can hold, with categories as text."""
    for j, field in enumerate(table.schema):
        if arrow.types.is_dictionary(field.type):
            table = table.set_column(j, field.name, table.column(j).cast(arrow.pa.string()))
        elif arrow.types.is_nested(field.type):
            raise DataError(
                f"Column {field.name!r} holds lists, which CSV cannot: write to .parquet instead."
            )
    return table
