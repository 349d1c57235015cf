"""Detect how a CSV file is written: delimiter, decimal sign, encoding, columns of codes."""

import csv
import re
from typing import NamedTuple

from condmeta.errors import DataError

DELIMITERS = (",", ";", "\t", "|")
_COMMA_DECIMAL = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+([eE][+-]?\d+)?")
_POINT_DECIMAL = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
_CODE = re.compile(r"0\d+")  # a number that would lose zeros


class CsvOptions(NamedTuple):
    """The options for a CSV file; what is None is detected from its first bytes.

    `like` are the options of the table that a side table goes with: where nothing else fits, the
    side table is written like it. `prefix` begins the names of the options on the command line.
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    like: "CsvOptions | None" = None
    prefix: str = "--"


class CsvDialect(NamedTuple):
    """The format of a CSV file; `codes` are columns with values such as 007."""

    delimiter: str
    decimal: str
    names: list[str]
    codes: list[str]
    encoding: str = "utf-8"

    @property
    def unnamed(self) -> list[int]:
        """Columns without a name, from 1; one after the last delimiter does not count."""
        names = self.names[:-1] if self.names[-1:] == [""] else self.names
        return [j for j, name in enumerate(names, 1) if not name]


def find_dialect(head: bytes, whole: bool, name: str, options: CsvOptions) -> CsvDialect:
    """Detect the format of a file from its first bytes; `whole` if they are all of the file."""
    text, encoding = _decode(head, whole, name, options)
    if "\0" in text:
        raise DataError(
            f"{name} holds the character NUL, so it is no CSV file: save the table as CSV (UTF-8), "
            f"or give its encoding with {options.prefix}encoding, such as utf-16-le."
        )
    likely = (options.like and options.like.delimiter) or ","
    for given in (options.delimiter or ",", likely):
        if len(given) != 1 or not given.isascii() or given in '"\r\n':
            raise DataError(
                f"The delimiter must be one ASCII character, not a quote. Got {given!r} instead."
            )
    delimiter = options.delimiter or _find_delimiter(text, whole, likely)
    rows = _rows(text, delimiter, whole)
    if not rows:
        raise DataError(
            f"{name} has a first line of more than {csv.field_size_limit():,} characters: is it a "
            "table with a row of column names?"
        )
    names = [cell.strip() for cell in rows[0]]
    refuse_repeated([cell for cell in names if cell], name)
    if len(names) == 1 and re.search(r"[ ;|:\t]", names[0]):
        raise DataError(
            f"{name} has the single column {names[0]!r}: give its delimiter with "
            f"{options.prefix}delimiter."
        )
    cells = list(zip(*(row for row in rows[1:] if len(row) == len(names)), strict=True))
    columns = zip(names, cells, strict=False)  # a header alone has no cells
    codes = [n for n, column in columns if any(map(_CODE.fullmatch, column))]
    decimal = options.decimal or _find_decimal(cells, delimiter)
    if decimal not in (".", ","):
        raise DataError(f"The decimal sign must be a point or a comma. Got {decimal!r} instead.")
    if decimal == delimiter:
        raise DataError(
            f"{name} cannot have the comma as delimiter and as decimal sign: give another "
            f"{options.prefix}delimiter, such as ';'."
        )
    return CsvDialect(delimiter, decimal, names, codes, encoding)


def _decode(head: bytes, whole: bool, name: str, options: CsvOptions) -> tuple[str, str]:
    """Return the first bytes as text, and their encoding: UTF-8, if none is given and it fits."""
    given = options.encoding
    if given is None and head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        given = "utf-16"
    other = options.like and options.like.encoding
    try:
        return _decoded(head, whole, given or "utf-8"), given or "utf-8"
    except LookupError:
        raise DataError(
            f"There is no encoding {given!r}: use utf-8, latin-1, cp1252, ..."
        ) from None
    except UnicodeDecodeError as error:
        if given is None and other:
            return _decode(head, whole, name, options._replace(encoding=other))
        line = head.count(b"\n", 0, error.start) + 1
        raise not_encoded(name, given or "utf-8", options.prefix, line) from None


def _decoded(head: bytes, whole: bool, encoding: str) -> str:
    """Return the first bytes as text; a character cut at the end is left out."""
    try:
        return head.decode(encoding).lstrip("\ufeff")
    except UnicodeDecodeError as error:
        if whole or error.start <= len(head) - 4:
            raise
        return head[: error.start].decode(encoding).lstrip("\ufeff")


def not_encoded(name: str, encoding: str, prefix: str, line: int | None = None) -> DataError:
    """Return an error for a file that has another encoding."""
    where = "" if line is None else f" (line {line})"
    other = "latin-1" if encoding.lower() in ("utf-8", "utf8") else "utf-8"
    return DataError(
        f"{name} is not written in {encoding.upper()}{where}: give its encoding, such as "
        f"{prefix}encoding {other}, or save it again as UTF-8."
    )


def _rows(text: str, delimiter: str, whole: bool) -> list[list[str]]:
    """Return the records of a text, without the last one if that may be cut off."""
    lines = text.splitlines(keepends=True)
    try:
        rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:  # a cell of more than 131,072 characters
        try:
            rows = list(csv.reader(lines[:1], delimiter=delimiter))
        except csv.Error:
            return []
    return rows if whole or len(rows) < 2 else rows[:-1]


def _find_delimiter(text: str, whole: bool, likely: str) -> str:
    """Return the delimiter that gives all rows the same number of columns, and the most."""
    best, most = likely, 0
    sample = text[: 1 << 16]
    for delimiter in dict.fromkeys((likely, *DELIMITERS)):
        widths = [len(row) for row in _rows(sample, delimiter, whole and sample == text)]
        if not widths:
            continue
        alike = 2 * (len(set(widths)) == 1) * (widths[0] > 1)
        if (score := widths[0] + alike * 1000) > most:
            best, most = delimiter, score
    return best


def _find_decimal(cells: list[tuple[str, ...]], delimiter: str) -> str:
    """Return "," if numbers are written with commas and none with points."""
    if delimiter == ",":
        return "."
    values = [cell.strip() for column in cells for cell in column[:1000]]
    commas = any(map(_COMMA_DECIMAL.fullmatch, values))
    return "," if commas and not any(map(_POINT_DECIMAL.fullmatch, values)) else "."


def refuse_repeated(names: list[str], file: str) -> None:
    """Refuse a column name that occurs twice."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(
            f"Column {twice!r} occurs {names.count(twice)} times in {file}: rename its copies."
        )
