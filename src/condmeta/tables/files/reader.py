"""Read a table from a file or a pipe, whole or in parts."""

import os
from collections.abc import Collection, Iterator
from typing import Any

from condmeta.errors import DataError
from condmeta.tables.files import arrow
from condmeta.tables.files.csv_reader import read_csv, stream_csv
from condmeta.tables.files.dialect import CsvOptions, find_dialect, refuse_repeated
from condmeta.tables.files.source import Source

_PART = 1 << 18  # rows of a part of a Parquet or Feather file


def read_table(
    path: str | os.PathLike, *, text: Collection[str] = (), written: Collection[str] = (),
    csv: CsvOptions | None = None, keep_types: bool = False,
) -> Any:  # fmt: skip
    """Return a CSV, Parquet or Feather file as a PyArrow table; "-" is standard input.

    The format is detected from the first bytes, and gzip is unpacked. In CSV, the type of a column
    (numbers, booleans, ISO dates, text) is inferred from all its values. A column with a code such
    as 007 in the first quarter of a megabyte is text, because a number would lose the zeros.

    Parameters
    ----------
    path : path or "-"
    text : collection of str
        Columns that hold names, such as ids. They are read as text in all formats: 7 in a Parquet
        file equals 7 in a CSV file, but not 007. Names that the table does not have are ignored.
    written : collection of str
        Columns of CSV that are not converted: numbers with units or separators, as in 1,904 %.
    csv : CsvOptions, optional
        Delimiter, decimal sign and encoding of CSV.
    keep_types : bool
        Whether to keep the types of those columns in Parquet and Feather files; call `as_text`
        later.

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
        table = read_csv(source, {*text, *written}, csv or CsvOptions())
    else:
        table = _read_typed(source)
    if table.num_rows == 0:
        raise DataError(f"{source.name} has column names but no rows.")
    refuse_repeated(table.column_names, source.name)  # Parquet allows repeated names
    return table if keep_types else as_text(table, text)


def read_batches(
    path: str | os.PathLike, *, text: Collection[str] = (), written: Collection[str] = (),
    csv: CsvOptions | None = None, keep_types: bool = False,
) -> Iterator[Any]:  # fmt: skip
    """Yield the rows of a file as PyArrow tables, for files that do not fit into memory.

    Parameters as for `read_table`. The first rows of CSV decide the types of its columns.
    """
    source, empty = Source(path), True
    if source.format == "csv":
        parts = stream_csv(source, {*text, *written}, csv or CsvOptions())
    else:
        parts = _typed_parts(source)
    for part in parts:
        empty = False
        refuse_repeated(part.column_names, source.name)
        yield part if keep_types else as_text(part, text)
    if empty:
        raise DataError(f"{source.name} has column names but no rows.")


def names_in_file(path: str | os.PathLike) -> list[str]:
    """Return the column names of a file, which is not read further; none if it is no table."""
    try:
        source = Source(path)
        if source.format == "csv":
            return find_dialect(source.head, source.whole, source.name, CsvOptions()).names
        if source.format == "parquet":
            return arrow.parquet.read_schema(source.seekable()).names
        return arrow.ipc.open_file(source.seekable()).schema.names
    except (DataError, OSError, arrow.pa.ArrowException):
        return []


def _read_typed(source: Source) -> Any:
    try:
        if source.format == "parquet":
            table = arrow.parquet.ParquetFile(source.seekable()).read()
        else:
            table = arrow.feather.read_table(source.seekable())
        table.validate(full=True)  # damage within the values
        return table
    except (arrow.pa.ArrowException, OSError) as error:
        raise _damaged(source, error) from None


def _typed_parts(source: Source) -> Iterator[Any]:
    try:
        if source.format == "parquet":
            batches = arrow.parquet.ParquetFile(source.seekable()).iter_batches(_PART)
        else:
            file = arrow.ipc.open_file(source.seekable())
            batches = (file.get_batch(i) for i in range(file.num_record_batches))
        for batch in batches:
            if batch.num_rows:
                batch.validate(full=True)
                yield arrow.pa.Table.from_batches([batch])
    except (arrow.pa.ArrowException, OSError) as error:
        raise _damaged(source, error) from None


def _damaged(source: Source, error: Exception) -> DataError:
    why = str(error).split("\n")[0][:120]
    return DataError(
        f"{source.name} is a damaged {source.format} file ({why}): copy it again from its source."
    )


def as_text(table: Any, text: Collection[str]) -> Any:
    """Return a table with numbers and dates of the named columns written as text."""
    pa, types, compute = arrow.pa, arrow.types, arrow.compute
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
