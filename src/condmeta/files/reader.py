"""Read a table from a file or a pipe, whole or in parts."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any

from condmeta.errors import DataError
from condmeta.files import arrow
from condmeta.files.csv_reader import read_csv, stream_csv
from condmeta.files.dialect import CsvOptions
from condmeta.files.source import Source

_PART = 1 << 18  # rows of a part of a Parquet or Feather file


def read_table(
    path: str | os.PathLike,
    *,
    text: Collection[str] = (),
    csv: CsvOptions | None = None,
    keep_types: bool = False,
) -> Any:
    """Return a CSV, Parquet or Feather file as a PyArrow table; "-" is standard input.

    The format is told from the first bytes, and gzip is unpacked. CSV: numbers, booleans and ISO
    dates are recognised by all values of a column; a column with a code such as 007 in the first
    quarter of a megabyte is text, as zeros would be lost.

    Parameters
    ----------
    path : path or "-"
    text : collection of str
        Columns of names, such as ids: read as they are written, whatever the format, so that 7 of
        a Parquet file is the 7 of a CSV file, and 007 is not. Those that are absent do not matter.
    csv : CsvOptions, optional
        Delimiter, decimal sign and encoding of CSV.
    keep_types : bool
        Whether Parquet and Feather keep the types of those columns; `as_text` comes later then.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "sales.csv"
    ...     _ = path.write_text("store;price\\n007;1,5\\n12;2,5\\n")
    ...     read_table(path, text=["store"]).to_pydict()
    {'store': ['007', '12'], 'price': [1.5, 2.5]}
    """
    source = Source(path)
    if source.format == "csv":
        table = read_csv(source, text, csv or CsvOptions())
    else:
        table = _read_typed(source)
    if table.num_rows == 0:
        raise DataError(f"{source.name} has column names but no rows.")
    return _named(table if keep_types else as_text(table, text), source.name)


def read_batches(
    path: str | os.PathLike,
    *,
    text: Collection[str] = (),
    csv: CsvOptions | None = None,
    keep_types: bool = False,
) -> Iterator[Any]:
    """Yield the rows of a file as PyArrow tables, for files that do not fit into memory.

    Parameters as for `read_table`. The first rows of CSV settle the types of its columns.
    """
    source, empty = Source(path), True
    if source.format == "csv":
        parts = stream_csv(source, text, csv or CsvOptions())
    else:
        parts = _typed_parts(source)
    for part in parts:
        empty = False
        yield _named(part if keep_types else as_text(part, text), source.name)
    if empty:
        raise DataError(f"{source.name} has column names but no rows.")


def _read_typed(source: Source) -> Any:
    try:
        if source.format == "parquet":
            return arrow.load("pyarrow.parquet").ParquetFile(source.seekable()).read()
        return arrow.load("pyarrow.feather").read_table(source.seekable())
    except (arrow.load().ArrowException, OSError) as error:
        raise _damaged(source, error) from None


def _typed_parts(source: Source) -> Iterator[Any]:
    pa = arrow.load()
    try:
        if source.format == "parquet":
            file = arrow.load("pyarrow.parquet").ParquetFile(source.seekable())
            batches = file.iter_batches(_PART)
        else:
            file = arrow.load("pyarrow.ipc").open_file(source.seekable())
            batches = (file.get_batch(i) for i in range(file.num_record_batches))
        for batch in batches:
            if batch.num_rows:
                yield pa.Table.from_batches([batch])
    except (pa.ArrowException, OSError) as error:
        raise _damaged(source, error) from None


def _damaged(source: Source, error: Exception) -> DataError:
    why = str(error).split("\n")[0][:120]
    return DataError(
        f"{source.name} is a damaged {source.format} file ({why}): copy it again from its source."
    )


def _named(table: Any, name: str) -> Any:
    """Refuse names that occur twice, which Parquet allows."""
    names = table.column_names
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise DataError(
            f"Column {twice!r} occurs {names.count(twice)} times in {name}: rename its copies."
        )
    return table


def as_text(table: Any, text: Collection[str]) -> Any:
    """Return a table with numbers and dates of the named columns written as text."""
    pa, types = arrow.load(), arrow.load("pyarrow.types")
    compute = arrow.load("pyarrow.compute")
    for j, field in enumerate(table.schema):
        if field.name not in text or types.is_string(field.type):
            continue
        column = table.column(j)
        if types.is_floating(field.type):
            column = compute.if_else(compute.is_nan(column), None, column)
            whole = compute.all(compute.equal(column, compute.floor(column))).as_py()
            column = column.cast(pa.int64()) if whole else column  # 7.0 where ids have gaps
        table = table.set_column(j, field.name, column.cast(pa.string()))
    return table
