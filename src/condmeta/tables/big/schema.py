"""Learn how to read rows that are in files, by queries over all of them.

Of text, dates and times the different values are read, with their counts; of numbers the gaps are
counted, and the mean that fills them is added up without rounding.
"""

from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.feature_maps.column_profile import ColumnProfile, exact_mean
from condmeta.feature_maps.table_encoder import TableEncoder
from condmeta.tables.big.engine import Rows, quoted
from condmeta.tables.files import arrow
from condmeta.tables.raw_columns import apply_readers, expand_names, find_readers, refuse_clash
from condmeta.tables.roles import ColumnOptions, Roles, assign_roles, open_side_table
from condmeta.tables.schema import Schema, fit_encoder, learn_side
from condmeta.tables.values import find_target
from condmeta.tasks import TaskTable
from condmeta.tasks.frames import get_series
from condmeta.tasks.side_column import type_column

MOST_VALUES = 1_000_000  # different texts or dates of a column


def learn_schema_of(
    rows: Rows, side_info: Any, options: ColumnOptions, missing: str, guess: bool
) -> tuple[Schema, TaskTable | None]:
    """Return the schema of rows in files, and the side information of all tasks or None.

    The target is a number; with `guess` a target of two values is refused, as it may be classes.
    """
    empty = rows.table("SELECT * FROM rows LIMIT 0").select(rows.names)
    side_table = None if side_info is None else open_side_table(side_info)
    roles = assign_roles(empty, side_table, options)
    n_rows = rows.one("SELECT count(*) FROM rows")[0]
    if n_rows == 0:
        raise DataError("There are no rows.")
    for name in (*roles.task, roles.target):
        _refuse_empty(rows, name, "target" if name == roles.target else "task", n_rows)
    encoder, profiles, readers = TableEncoder(of_rows=True), {}, {}
    for name in roles.features:
        if _is_number(empty, name):
            profiles[name] = _profile_of_numbers(rows, empty, name, n_rows)
            continue
        values, times = _values(rows, name)
        found = find_readers(values, [name], options, options.holidays)
        readers |= found
        values = apply_readers(values, found)
        for new in expand_names([name], found):
            column = type_column(get_series(values, new), new, "Column")
            profiles[new] = encoder.profile(column, new, times=times)
    readers |= _check_target(rows, empty, roles, options, guess)
    refuse_clash(rows.names, readers)
    fit_encoder(encoder, profiles, missing)
    side_rows = None if not roles.side else _side_rows(rows, roles)
    side, roles, side_text, side_readers = learn_side(side_rows, side_table, roles, options)
    return Schema(roles, missing, encoder, None, side_text, readers, side_readers), side


def _is_number(empty: Any, name: str) -> bool:
    kind, types = empty.schema.field(name).type, arrow.types
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return is_number or types.is_boolean(kind)


def _gap(rows: Rows, name: str) -> str:
    """Return the condition that a value is missing."""
    column, kind = quoted(name), rows.types[name]
    gap = f"{column} IS NULL"
    return f"({gap} OR isnan({column}))" if kind in ("FLOAT", "DOUBLE") else gap


def _refuse_empty(rows: Rows, name: str, role: str, n_rows: int) -> None:
    gaps = rows.one(f"SELECT count(*) FROM rows WHERE {_gap(rows, name)}")[0]
    if gaps:
        raise DataError(
            f"Column {name!r} ({role}) is empty in {gaps:,} of {n_rows:,} rows: fill it, or drop "
            "these rows."
        )


def _profile_of_numbers(rows: Rows, empty: Any, name: str, n_rows: int) -> ColumnProfile:
    is_flag = arrow.types.is_boolean(empty.schema.field(name).type)
    value, gap = f"CAST({quoted(name)} AS DOUBLE)", _gap(rows, name)
    if is_flag:
        value = f"CAST(CAST({quoted(name)} AS INTEGER) AS DOUBLE)"
    gaps, least, most = rows.one(
        f"SELECT count(*) FILTER (WHERE {gap}), min({value}) FILTER (WHERE NOT {gap}), "
        f"max({value}) FILTER (WHERE NOT {gap}) FROM rows"
    )
    mean = least or 0.0  # of a constant column; without gaps it is not used
    if gaps and least != most:
        seen = f"SELECT {value} AS v FROM rows WHERE NOT {gap}"
        mean = exact_mean(rows.numbers(seen), n_rows - gaps)
    return ColumnProfile("boolean" if is_flag else "number", n_rows, gaps, mean)


def _values(rows: Rows, name: str) -> tuple[Any, np.ndarray]:
    """Return the different values of a column as a table, and how often each is there."""
    column = quoted(name)
    if rows.types[name].startswith("TIMESTAMP"):
        many = rows.one(f"SELECT count(DISTINCT {column}) FROM rows")[0] > MOST_VALUES
        column = f"date_trunc('day', {column})" if many else column
    found = rows.table(
        f"SELECT {column} AS {quoted(name)}, count(*) AS times FROM rows GROUP BY 1 "
        f"ORDER BY 1 LIMIT {MOST_VALUES + 1}"
    )
    if len(found) > MOST_VALUES:
        raise DataError(
            f"Column {name!r} holds more than {MOST_VALUES:,} different values, which say nothing "
            "about other rows. Leave it out, or turn it into numbers."
        )
    return found.select([name]), found.column("times").to_numpy()


def _check_target(rows: Rows, empty: Any, roles: Roles, options: ColumnOptions, guess: bool):
    """Return the reader of the target, if it is written as text; refuse classes."""
    name = roles.target
    if not _is_number(empty, name):
        values, _ = _values(rows, name)
        readers = find_readers(values, [name], options)
        find_target(apply_readers(values, readers), name, "number")
        return readers
    different = rows.one(
        f"SELECT count(*) FROM (SELECT DISTINCT {quoted(name)} FROM rows LIMIT 3)"
    )[0]
    if guess and different == 2:
        raise DataError(
            f"Column {name!r} (target) has two values: a model of classes needs all rows at once. "
            "Fit the table whole, or give ConditionalRidge() to predict the number."
        )
    return {}


def _side_rows(rows: Rows, roles: Roles) -> Any:
    """Return the different side rows of the table, one a task if they are constant within it."""
    chosen = ", ".join(map(quoted, [*roles.task, *roles.side]))
    keys = ", ".join(map(quoted, roles.task))
    return rows.table(f"SELECT DISTINCT {chosen} FROM rows ORDER BY {keys}")
