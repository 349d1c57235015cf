"""Learn how to read rows that are not in memory, by questions about all of them.

Of text, dates and times the different values are read, with their counts; of numbers the gaps are
counted, and the mean that fills them is added up without rounding. `RowSource` lists the questions:
DuckDB answers them for files, workers of a cluster for their partitions.
"""

from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from condmeta.errors import DataError
from condmeta.feature_maps.column_profile import ColumnProfile
from condmeta.feature_maps.table_encoder import TableEncoder
from condmeta.tables.feature_ranges import ranges_of
from condmeta.tables.files import arrow
from condmeta.tables.raw_columns import (
    Readers,
    apply_readers,
    expand_names,
    find_readers,
    refuse_clash,
)
from condmeta.tables.roles import ColumnOptions, Roles, assign_roles
from condmeta.tables.schema import Schema
from condmeta.tables.schema_learning import fit_encoder, learn_side, target_of
from condmeta.tables.values import Target
from condmeta.tasks import TaskTable
from condmeta.tasks.each_column import each_column
from condmeta.tasks.frames import get_series
from condmeta.tasks.side_column import type_column

MOST_VALUES = 1_000_000  # different texts or dates of a column


class Numbers(NamedTuple):
    """A column of numbers: its gaps, the least and the largest number or None, and the mean.

    The mean is that of `exact_mean`; it may be left out where there is no gap.
    """

    gaps: int
    least: float | None
    most: float | None
    mean: float


class RowSource(Protocol):
    """Rows that are not in memory."""

    names: list[str]

    def empty(self) -> Any:
        """Return the columns as a PyArrow table without rows."""
        ...

    def count(self) -> int:
        """Return the number of rows."""
        ...

    def gaps(self, name: str) -> int:
        """Return how many values of a column are missing, NaN included."""
        ...

    def numbers(self, name: str) -> Numbers:
        """Return what is to be known of numbers or booleans."""
        ...

    def values(self, name: str, most: int) -> tuple[Any, np.ndarray]:
        """Return at most some different values of a column as a table, and how often each is there.

        Of more than `most` times of a day the days are returned.
        """
        ...

    def n_different(self, name: str, most: int) -> int:
        """Return the number of different values, or `most` if there are more."""
        ...

    def distinct(self, columns: list[str]) -> Any:
        """Return the different rows of some columns, by the order of these columns."""
        ...


def learn_rows(
    rows: RowSource, side_head: Any, options: ColumnOptions, missing: str, kind: str | None,
    order: Any = None,
) -> tuple[Schema, Any]:  # fmt: skip
    """Return the schema of rows that are not in memory, and the side columns among them or None.

    `side_head` is the side table, without rows if it is large, or None. `kind` and `order`: see
    `learn_schema`; without a kind, numbers of more than two values are no counts.
    """
    empty = rows.empty()
    roles = assign_roles(empty, side_head, options)
    n_rows = rows.count()
    if n_rows == 0:
        raise DataError("There are no rows.")
    named = dict.fromkeys(roles.task, "task") | {
        roles.target: "target", roles.weight: "weight", roles.exposure: "exposure",
        roles.trials: "trials",
    }  # fmt: skip
    for name, role in named.items():
        if name is not None:
            _refuse_empty(rows, name, role, n_rows)
    encoder, profiles, readers = TableEncoder(of_rows=True), {}, {}

    def profile(name: str) -> None:
        if _is_number(empty, name):
            profiles[name] = _profile_of_numbers(rows, empty, name, n_rows)
            return
        values, times = _values(rows, name)
        found = find_readers(values, [name], options, options.holidays, of_rows=False)
        readers.update(found)
        values = apply_readers(values, found)
        for new in expand_names([name], found):
            column = type_column(get_series(values, new), new, "Column")
            profiles[new] = encoder.profile(column, new, times=times)

    each_column(roles.features, profile)
    target, more = _learn_target(rows, empty, roles, options, kind, order)
    readers |= more
    refuse_clash(rows.names, readers)
    fit_encoder(encoder, profiles, missing)
    side_rows = None if not roles.side else rows.distinct([*roles.task, *roles.side])
    schema = Schema(
        roles, missing, encoder, classes=target.classes, kind=target.kind, readers=readers,
        side_text=[], side_readers={}, ranges=ranges_of(profiles),
    )  # fmt: skip
    return schema, side_rows


def learn_sides(
    schema: Schema, side_rows: Any, side_table: Any, options: ColumnOptions
) -> tuple[Schema, TaskTable | None]:
    """Return the schema with how side columns are read, and the side rows of all tasks or None."""
    side, *found = learn_side(side_rows, side_table, schema.roles, options)
    roles, text, readers = found
    return replace(schema, roles=roles, side_text=text, side_readers=readers), side


def _is_number(empty: Any, name: str) -> bool:
    kind, types = empty.schema.field(name).type, arrow.types
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return is_number or types.is_boolean(kind)


def _refuse_empty(rows: RowSource, name: str, role: str, n_rows: int) -> None:
    gaps = rows.gaps(name)
    if gaps:
        raise DataError(
            f"Column {name!r} ({role}) is empty in {gaps:,} of {n_rows:,} rows: fill it, or drop "
            "these rows."
        )


def _profile_of_numbers(rows: RowSource, empty: Any, name: str, n_rows: int) -> ColumnProfile:
    found = rows.numbers(name)
    mean = found.least or 0.0  # of a constant column; without gaps it is not used
    if found.gaps and found.least != found.most:
        mean = found.mean
    is_flag = arrow.types.is_boolean(empty.schema.field(name).type)
    kind = "boolean" if is_flag else "number"
    return ColumnProfile(kind, n_rows, found.gaps, mean).with_ends(found.least, found.most)


def _values(rows: RowSource, name: str) -> tuple[Any, np.ndarray]:
    """Return the different values of a column as a table, and how often each is there."""
    found, times = rows.values(name, MOST_VALUES)
    if len(times) > MOST_VALUES:
        raise DataError(
            f"Column {name!r} holds more than {MOST_VALUES:,} different values. As categories "
            "they cannot help to predict other rows. Leave it out, or turn it into numbers."
        )
    return found, times


def _learn_target(
    rows: RowSource, empty: Any, roles: Roles, options: ColumnOptions, kind: str | None, order: Any
) -> tuple[Target, Readers]:
    """Return what the target holds, and how it is read if it is written as text."""
    name = roles.target
    if _is_number(empty, name):
        if kind is None and roles.trials is None and roles.exposure is None:
            kind = "class" if rows.n_different(name, 3) == 2 else "number"
        if kind not in ("class", "ordered") or roles.trials is not None:
            return target_of(empty, roles, kind), {}
    values, _ = _values(rows, name)
    readers = find_readers(values, [name], options, of_rows=False)
    values = apply_readers(values, readers)
    if kind is None and readers:
        kind = "number"
    return target_of(values, roles, kind, order), readers
