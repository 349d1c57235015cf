"""Weekday, month and days of a date in SQL, as `condmeta.tables.dates` computes them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.dialects import number
from condmeta.fitted.sql import SqlSource
from condmeta.tables.dates import MONTHS, WEEKDAYS, DateReader
from condmeta.tables.raw_columns import Readers


class SqlDates(NamedTuple):
    """How a database computes parts of a date or a time of a day, {0}.

    weekday : a number; numbers : those of Monday to Sunday
    month : 1 to 12; seconds : whole seconds since 1970
    """

    weekday: str
    month: str
    seconds: str
    numbers: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7)


_CLOCK = "3600 * HOUR({0}) + 60 * MINUTE({0}) + FLOOR(SECOND({0}))"
DATES = {
    "duckdb": SqlDates(
        "ISODOW(CAST({0} AS TIMESTAMP))", "MONTH(CAST({0} AS TIMESTAMP))",
        "FLOOR(EPOCH(CAST({0} AS TIMESTAMP)))",
    ),
    "postgres": SqlDates(
        "EXTRACT(ISODOW FROM CAST({0} AS TIMESTAMP))", "EXTRACT(MONTH FROM CAST({0} AS TIMESTAMP))",
        "CAST(FLOOR(EXTRACT(EPOCH FROM CAST({0} AS TIMESTAMP))) AS DOUBLE PRECISION)",
    ),
    "sqlite": SqlDates(
        "CAST(STRFTIME('%w', {0}) AS INTEGER)", "CAST(STRFTIME('%m', {0}) AS INTEGER)",
        "CAST(STRFTIME('%s', {0}) AS INTEGER)", (1, 2, 3, 4, 5, 6, 0),
    ),
    "snowflake": SqlDates(
        "DAYOFWEEKISO({0})", "MONTH({0})", "DATE_PART(EPOCH_SECOND, CAST({0} AS TIMESTAMP_NTZ))"
    ),
    "bigquery": SqlDates(
        "EXTRACT(DAYOFWEEK FROM {0})", "EXTRACT(MONTH FROM {0})",
        "UNIX_SECONDS(CAST({0} AS TIMESTAMP))", (2, 3, 4, 5, 6, 7, 1),
    ),
    "spark": SqlDates(
        "WEEKDAY({0})", "MONTH({0})",
        f"(86400 * DATEDIFF(CAST({{0}} AS DATE), DATE '1970-01-01') + {_CLOCK})",
        (0, 1, 2, 3, 4, 5, 6),
    ),
}  # fmt: skip


def date_sources(readers: Readers, dialect: str) -> dict[str, SqlSource]:
    """Return how the features of columns of dates are computed; raise for other columns."""
    found: dict[str, SqlSource] = {}
    for name, reader in readers.items():
        if not isinstance(reader, DateReader):
            raise DataError(
                f"SQL cannot read numbers that are written as text (column {name!r}). Score the "
                "rows with predict, or fit with a column of numbers."
            )
        if reader.country is not None:
            raise DataError(
                f"SQL has no calendar of holidays (column {name!r}). Score the rows with predict, "
                "or fit without holidays."
            )
        if reader.order != "ymd":
            raise DataError(
                f"SQL reads dates such as 2024-01-31, and column {name!r} is written "
                f"{'.'.join(reader.order)}. Score the rows with predict, or fit with dates."
            )
        sql = DATES[dialect]
        codes = {
            "weekday": dict(zip(WEEKDAYS, sql.numbers, strict=True)),
            "month": dict(zip(MONTHS, range(1, 13), strict=True)),
        }
        start = np.datetime64(reader.start, "s").astype(np.int64)
        days = f"(({sql.seconds} - {number(start)}) / 86400e0)"
        forms = {"weekday": sql.weekday, "month": sql.month, "days": days}
        for part in reader.parts:
            found[f"{name} ({part})"] = SqlSource(name, forms[part], codes.get(part))
    return found
