"""Write a table as CSV, Parquet or Feather, all at once, or to standard output."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO

from condmeta.errors import DataError
from condmeta.files import arrow
from condmeta.persistence.atomic import write_atomically

FORMATS = {
    ".csv": "csv", ".txt": "csv", ".tsv": "tsv",
    ".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arrow": "feather",
}  # fmt: skip


def check_output(path: str | os.PathLike) -> str:
    """Return the format that a path asks for, before work is done that could not be written."""
    path = os.fspath(path)
    if path == "-":
        return "csv"
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in FORMATS:
        raise DataError(
            f"Which format is '{path}' to have? Let it end in .csv, .tsv, .parquet or .feather."
        )
    check_place(path)
    return FORMATS[suffix]


def check_place(path: str) -> None:
    """Refuse a path that no file can be written to."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise DataError(f"There is no folder '{folder}' to write '{path}' to: make it first.")
    if os.path.isdir(path):
        raise DataError(f"'{path}' is a folder: give the name of a file.")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise DataError(f"'{path}' cannot be written: no permission.")


def write_table(table: Any, path: str | os.PathLike) -> None:
    """Write a PyArrow table; the path's ending says how, and "-" is CSV on standard output.

    A crash leaves the old file or the new one.

    Examples
    --------
    >>> import pyarrow as pa
    >>> write_table(pa.table({"store": ["007", "a, b"], "n": [1, None]}), "-")
    store,n
    "007",1
    "a, b",
    """
    write_parts(iter([table]), path)


def write_parts(tables: Iterator[Any], path: str | os.PathLike) -> None:
    """Write PyArrow tables of the same columns one after the other, as `write_table` does."""
    kind = check_output(path)
    writer = {"parquet": _write_parquet, "feather": _write_feather}.get(kind)
    if writer is None:

        def writer(tables, file):
            _write_csv(tables, file, "\t" if kind == "tsv" else ",")

    if os.fspath(path) == "-":
        writer(tables, _standard_output())
    else:
        write_atomically(path, lambda file: writer(tables, file))


def _standard_output() -> Any:
    sys.stdout.flush()
    return getattr(sys.stdout, "buffer", None) or _Texts()


class _Texts(io.RawIOBase):
    """Standard output that takes text only, as in notebooks and doctests."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        sys.stdout.write(bytes(data).decode())
        return len(data)


def _write_parquet(tables: Iterator[Any], file: BinaryIO) -> None:
    first = next(tables)
    with arrow.load("pyarrow.parquet").ParquetWriter(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table.cast(first.schema))


def _write_feather(tables: Iterator[Any], file: BinaryIO) -> None:
    ipc, first = arrow.load("pyarrow.ipc"), next(tables)
    options = ipc.IpcWriteOptions(compression="lz4", unify_dictionaries=True)
    with ipc.new_file(file, first.schema, options=options) as writer:
        for table in chain([first], tables):
            writer.write_table(table.cast(first.schema))


def _write_csv(tables: Iterator[Any], file: BinaryIO, delimiter: str) -> None:
    writer, header = arrow.load("pyarrow.csv"), io.StringIO()
    for number, table in enumerate(tables):
        table = _plain(table)
        if number == 0:
            names = csv.writer(header, delimiter=delimiter, lineterminator="\n")
            names.writerow(table.column_names)
            file.write(header.getvalue().encode())
        style = "needed" if _needs_quotes(table, delimiter) else "none"
        options = writer.WriteOptions(
            include_header=False, delimiter=delimiter, quoting_style=style
        )
        text = io.BytesIO()  # pyarrow would close the file
        writer.write_csv(table, text, options)
        file.write(text.getvalue())
    file.flush()


def _needs_quotes(table: Any, delimiter: str) -> bool:
    types, compute = arrow.load("pyarrow.types"), arrow.load("pyarrow.compute")
    for column in table.columns:
        if types.is_string(column.type) or types.is_large_string(column.type):
            special = compute.match_substring_regex(column, f'[{delimiter}"\\r\\n]')
            if compute.any(special).as_py():
                return True
    return False


def _plain(table: Any) -> Any:
    """Return a table that CSV can hold: categories as text."""
    pa, types = arrow.load(), arrow.load("pyarrow.types")
    for j, field in enumerate(table.schema):
        if types.is_dictionary(field.type):
            table = table.set_column(j, field.name, table.column(j).cast(pa.string()))
        elif types.is_nested(field.type):
            raise DataError(
                f"Column {field.name!r} holds lists, which CSV cannot: write to .parquet instead."
            )
    return table
