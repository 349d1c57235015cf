"""Read CSV: types are inferred from the values; codes and ids are kept as written."""

import re
from collections.abc import Collection, Iterator
from typing import Any

from condmeta.errors import DataError
from condmeta.tables.files import arrow
from condmeta.tables.files.dialect import CsvDialect, CsvOptions, find_dialect, not_encoded
from condmeta.tables.files.source import Source
from condmeta.warn import warn

MISSING = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A", "<NA>"]
_BLOCK = 1 << 24  # bytes; a record must fit into it
_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)
_VALUE = re.compile(r"In CSV column #(\d+): .*?invalid value '(.*?)'", re.DOTALL)


def read_csv(source: Source, text: Collection[str], options: CsvOptions) -> Any:
    """Return all of a CSV file as a PyArrow table."""
    dialect = _dialect_of(source, options)
    try:
        rows = source.utf8(dialect.encoding)
        table = arrow.csv.read_csv(rows, **_options(dialect._replace(encoding="utf-8"), text))
    except (arrow.pa.ArrowInvalid, UnicodeDecodeError, OSError) as error:
        raise _explain(error, source, dialect, options) from None
    if any(field.type == arrow.pa.binary() for field in table.schema):
        raise not_encoded(source.name, dialect.encoding, options.prefix)
    return table


def stream_csv(source: Source, text: Collection[str], options: CsvOptions) -> Iterator[Any]:
    """Yield a CSV file as tables of some megabytes; the first rows decide the types."""
    dialect = _dialect_of(source, options)
    parts = _options(dialect, text)
    try:
        parts["convert_options"].column_types = _guess_types(source, parts)
        for batch in arrow.csv.open_csv(source.stream(), **parts):
            if batch.num_rows:
                yield arrow.pa.Table.from_batches([batch])
    except (arrow.pa.ArrowInvalid, UnicodeDecodeError, OSError) as error:
        raise _explain(error, source, dialect, options) from None


def _guess_types(source: Source, parts: dict[str, Any]) -> dict[str, Any]:
    """Infer the types of the columns from the first rows.

    Later rows may have decimals among whole numbers, and numbers in empty columns.
    """
    pa, types, read = arrow.pa, arrow.types, parts["read_options"]
    # half of the bytes: then the first block ends at the end of a row
    size = len(source.head) + 1 if source.whole else len(source.head) // 2
    first = parts | {"read_options": _read_options(read.column_names, read.encoding, size)}
    with arrow.csv.open_csv(pa.BufferReader(source.head), **first) as reader:
        found = {field.name: field.type for field in reader.schema}
    return {
        name: pa.float64() if types.is_integer(kind) or types.is_null(kind) else kind
        for name, kind in found.items()
    }


def _read_options(names: list[str], encoding: str, block_size: int) -> Any:
    return arrow.csv.ReadOptions(
        block_size=block_size, encoding=encoding, column_names=names,
        skip_rows_after_names=1,  # the header
    )  # fmt: skip


def _dialect_of(source: Source, options: CsvOptions) -> CsvDialect:
    dialect = find_dialect(source.head, source.whole, source.name, options)
    if dialect.unnamed:
        warn(
            f"Left out of {source.name}: column {', '.join(map(str, dialect.unnamed))}, which has "
            "no name.", UserWarning,
        )  # fmt: skip
    return dialect


def _options(dialect: CsvDialect, text: Collection[str]) -> dict[str, Any]:
    csv, named = arrow.csv, [name for name in dialect.names if name]
    # a column without a name gets a unique one, by which it is left out
    names = [name or f"\0{j}" for j, name in enumerate(dialect.names)]
    return {
        "read_options": _read_options(names, dialect.encoding, _BLOCK),
        "parse_options": csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
        "convert_options": csv.ConvertOptions(
            column_types={n: arrow.pa.string() for n in named if n in {*text, *dialect.codes}},
            include_columns=named, null_values=MISSING, strings_can_be_null=True,
            decimal_point=dialect.decimal,
        ),
    }  # fmt: skip


def _explain(
    error: Exception, source: Source, dialect: CsvDialect, options: CsvOptions
) -> DataError:
    """Return an error that explains why pyarrow failed, with the remedy."""
    message = str(error)
    if isinstance(error, OSError):
        return DataError(f"{source.name} is damaged ({message}): copy it again from its source.")
    if isinstance(error, UnicodeDecodeError) or "UTF8" in message:
        return not_encoded(source.name, dialect.encoding, options.prefix)
    if found := _RAGGED.search(message):
        row, expected, got, line = found.groups()
        where = "A row" if row is None else f"Line {row}"
        return DataError(
            f"{where} of {source.name} has {got} values, the header has {expected} names "
            f"({line.strip()[:60]!r}): correct it, or give the delimiter with "
            f"{options.prefix}delimiter."
        )
    if found := _VALUE.search(message):
        name = [name for name in dialect.names if name][int(found[1])]
        return DataError(
            f"Column {name!r} of {source.name} holds numbers or dates, but later {found[2]!r}: "
            f"correct that value, or use --text {name} if the column holds names."
        )
    if "straddling" in message:
        return DataError(
            f"A row of {source.name} is longer than {_BLOCK >> 20} MB: a quote that is never "
            "closed may be the reason."
        )
    return DataError(f"{source.name} cannot be read as CSV: {message}.")
