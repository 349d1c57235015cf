"""Read CSV: types found out from the values, codes and ids kept as they are written."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator
from typing import Any

from condmeta.errors import DataError
from condmeta.files import arrow
from condmeta.files.dialect import CsvOptions, Dialect, find_dialect, not_encoded
from condmeta.files.source import Source

MISSING = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A", "<NA>"]
_BLOCK = 1 << 24  # bytes; a record must fit into it
_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)
_VALUE = re.compile(r"In CSV column #(\d+): .*?invalid value '(.*?)'", re.DOTALL)


def read_csv(source: Source, text: Collection[str], options: CsvOptions) -> Any:
    """Return all of a CSV file as a PyArrow table."""
    csv, pa = arrow.load("pyarrow.csv"), arrow.load()
    dialect = _dialect_of(source, options)
    parts = _options(dialect, text, options)
    try:
        table = csv.read_csv(source.stream(), **parts)
    except (pa.ArrowInvalid, UnicodeDecodeError, OSError) as error:
        raise _explain(error, source, dialect, options) from None
    if any(field.type == pa.binary() for field in table.schema):
        raise not_encoded(source.name, options.encoding)
    return table


def stream_csv(source: Source, text: Collection[str], options: CsvOptions) -> Iterator[Any]:
    """Yield a CSV file as tables of some megabytes; the first rows settle the types."""
    csv, pa = arrow.load("pyarrow.csv"), arrow.load()
    dialect = _dialect_of(source, options)
    parts = _options(dialect, text, options)
    try:
        # whole numbers may turn out to have decimals, gaps to hold numbers
        types = {
            f.name: pa.float64() if _may_widen(f.type) else f.type for f in _guess(source, parts)
        }
        parts["convert_options"].column_types = types
        for batch in csv.open_csv(source.stream(), **parts):
            if batch.num_rows:
                yield pa.Table.from_batches([batch])
    except (pa.ArrowInvalid, UnicodeDecodeError, OSError) as error:
        raise _explain(error, source, dialect, options) from None


def _guess(source: Source, parts: dict[str, Any]) -> Any:
    """Return the types of the columns by the first rows."""
    csv, pa = arrow.load("pyarrow.csv"), arrow.load()
    read = parts["read_options"]
    # half of what is there, so that the first block is cut at the end of a row
    size = len(source.head) + 1 if source.whole else len(source.head) // 2
    first = csv.ReadOptions(
        block_size=size, encoding=read.encoding, column_names=read.column_names,
        skip_rows_after_names=1,
    )  # fmt: skip
    with csv.open_csv(pa.BufferReader(source.head), **(parts | {"read_options": first})) as reader:
        return reader.schema


def _may_widen(kind: Any) -> bool:
    types = arrow.load("pyarrow.types")
    return types.is_integer(kind) or types.is_null(kind)


def _dialect_of(source: Source, options: CsvOptions) -> Dialect:
    dialect = find_dialect(source.head, source.whole, source.name, options)
    if dialect.unnamed:
        warnings.warn(
            f"Left out of {source.name}: column {', '.join(map(str, dialect.unnamed))}, which has "
            "no name.",
            UserWarning,
            stacklevel=2,
        )
    return dialect


def _options(dialect: Dialect, text: Collection[str], options: CsvOptions) -> dict[str, Any]:
    csv, pa = arrow.load("pyarrow.csv"), arrow.load()
    as_text = {*text, *dialect.codes}
    named = [name for name in dialect.names if name]
    # a column without a name gets one that no other has, so that it can be left out
    names = [name or f"\0{j}" for j, name in enumerate(dialect.names)]
    return {
        "read_options": csv.ReadOptions(
            block_size=_BLOCK, encoding=options.encoding, column_names=names,
            skip_rows_after_names=1,  # the header
        ),
        "parse_options": csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
        "convert_options": csv.ConvertOptions(
            column_types={name: pa.string() for name in named if name in as_text},
            include_columns=named, null_values=MISSING, strings_can_be_null=True,
            decimal_point=dialect.decimal,
        ),
    }  # fmt: skip


def _explain(error: Exception, source: Source, dialect: Dialect, options: CsvOptions) -> DataError:
    """Say in our words why pyarrow gave up, and what to do."""
    message = str(error)
    if isinstance(error, OSError):
        return DataError(f"{source.name} is damaged ({message}): copy it again from its source.")
    if isinstance(error, UnicodeDecodeError) or "UTF8" in message:
        return not_encoded(source.name, options.encoding)
    if found := _RAGGED.search(message):
        row, expected, got, line = found.groups()
        where = "A row" if row is None else f"Line {row}"
        return DataError(
            f"{where} of {source.name} has {got} values, the header has {expected} names "
            f"({line.strip()[:60]!r}): mend it, or name what stands between the columns with "
            "--delimiter."
        )
    if found := _VALUE.search(message):
        name = [name for name in dialect.names if name][int(found[1])]
        return DataError(
            f"Column {name!r} of {source.name} begins with numbers or dates and goes on with "
            f"{found[2]!r}: mend that value, or say --text {name} if these are names."
        )
    if "straddling" in message:
        return DataError(
            f"A row of {source.name} is longer than {_BLOCK >> 20} MB: a quote that is never "
            "closed may be the reason."
        )
    return DataError(f"{source.name} cannot be read as CSV: {message}.")
