"""Refuse columns that look wrong: numbers with a stray word, text to sort by, dates to predict."""

import re
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tables.dates import read_text_dates
from condmeta.tables.files import arrow
from condmeta.tables.written_numbers import WRITTEN
from condmeta.tasks.numbers import DATE


def check_columns(
    table: Any, names: Iterable[str], text: Collection[str] = (), target: str | None = None
) -> None:
    """Refuse text columns of a PyArrow table that are numbers for the most part; dates as target.

    As categories they would carry no information, and nobody would notice. Columns in `text` are
    meant as text and are not checked.

    Examples
    --------
    >>> import pyarrow as pa
    >>> check_columns(pa.table({"price": ["1.5", "2", "n.a."]}), ["price"])
    Traceback (most recent call last):
    condmeta.errors.DataError: Column 'price' holds numbers, and text in 1 of 3 rows, first 'n.a.' \
in row 3: correct it, leave the cell empty if the value is missing, or use --text price.
    """
    for name in names:
        column = table.column(name)
        if name in text:
            continue
        if name == target and arrow.types.is_temporal(column.type):
            raise _dates(name, column.drop_null().slice(0, 1))
        if arrow.is_text(column.type):
            _check(column, name, name == target)


def sort_rows(table: Any, name: str, role: str = "sort by") -> Any:
    """Sort the rows of a PyArrow table by a column; refuse text but dates, and missing values.

    Rows of one time keep their order.

    Examples
    --------
    >>> import pyarrow as pa
    >>> sort_rows(pa.table({"day": ["1.4.2024", "30.3.2024"]}), "day")["day"].to_pylist()
    ['30.3.2024', '1.4.2024']
    >>> sort_rows(pa.table({"week": ["W9", "W10"]}), "week")
    Traceback (most recent call last):
    condmeta.errors.DataError: Column 'week' (sort by) is text ('W9', ...), which would be sorted \
by its letters: write dates as 2024-04-30, or make a number of it.
    """
    column = table.column(name)
    types, kind = arrow.types, column.type
    if column.null_count:
        raise DataError(
            f"Column {name!r} ({role}) is empty in {column.null_count:,} of {len(column):,} rows: "
            "fill it, or drop these rows."
        )
    if types.is_temporal(kind) or types.is_integer(kind) or types.is_floating(kind):
        return table.sort_by(name)
    first = str(column[0].as_py())
    if not re.match(DATE, first):
        raise DataError(
            f"Column {name!r} ({role}) is text ({first!r}, ...), which would be sorted by its "
            "letters: write dates as 2024-04-30, or make a number of it."
        )
    dates = read_text_dates(np.array(column.to_pylist(), object), name)
    return table.take(np.argsort(dates, kind="stable"))


def _check(column: Any, name: str, is_target: bool) -> None:
    compute, rows = arrow.compute, len(column) - column.null_count
    if rows == 0:
        return
    numbers = compute.match_substring_regex(column, WRITTEN)
    count = compute.sum(numbers).as_py()
    if 2 * count > rows and count < rows:
        at = compute.index(numbers, False).as_py()
        odd = column[at].as_py()
        comma = " (or use --decimal ,)" if "," in odd else ""
        raise DataError(
            f"Column {name!r} holds numbers, and text in {rows - count:,} of {rows:,} rows, first "
            f"{odd!r} in row {at + 1}: correct it{comma}, leave the cell empty if the value is "
            f"missing, or use --text {name}."
        )
    first = column.drop_null().slice(0, 1000)
    if is_target and compute.all(compute.match_substring_regex(first, DATE)).as_py():
        raise _dates(name, first)


def _dates(name: str, first: Any) -> DataError:
    shown = f" ({first[0].as_py()}, ...)" if len(first) else ""
    return DataError(
        f"Column {name!r} (target) holds dates{shown}: make a number of it, such as the days since "
        "a start."
    )
