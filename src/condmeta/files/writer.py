"""Write a table as CSV, Parquet or Feather, all at once, or to standard output."""

from __future__ import annotations

import csv
import io
import os
import sys
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
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise DataError(f"There is no folder '{folder}' to write '{path}' to: make it first.")
    if os.path.isdir(path):
        raise DataError(f"'{path}' is a folder: give the name of a file.")
    return FORMATS[suffix]


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
    kind = check_output(path)
    if os.fspath(path) == "-":
        text = io.BytesIO()
        _write(table, text, kind)
        buffer = getattr(sys.stdout, "buffer", None)
        if buffer is None:
            sys.stdout.write(text.getvalue().decode())
        else:
            sys.stdout.flush()
            buffer.write(text.getvalue())
            buffer.flush()
        return
    write_atomically(path, lambda file: _write(table, file, kind))


def _write(table: Any, file: BinaryIO, kind: str) -> None:
    if kind == "parquet":
        arrow.load("pyarrow.parquet").write_table(table, file)
    elif kind == "feather":
        arrow.load("pyarrow.feather").write_feather(table, file, compression="lz4")
    else:
        _write_csv(table, file, "\t" if kind == "tsv" else ",")


def _write_csv(table: Any, file: BinaryIO, delimiter: str) -> None:
    header = io.StringIO()
    csv.writer(header, delimiter=delimiter, lineterminator="\n").writerow(table.column_names)
    file.write(header.getvalue().encode())
    writer = arrow.load("pyarrow.csv")
    style = "needed" if _needs_quotes(table, delimiter) else "none"
    options = writer.WriteOptions(include_header=False, delimiter=delimiter, quoting_style=style)
    writer.write_csv(_plain(table), file, options)


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
