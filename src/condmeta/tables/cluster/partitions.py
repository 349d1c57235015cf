"""Partitions of rows in files, and what their workers tell about them (see `RowSource`)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.meta.stored_tasks import Runner
from condmeta.tables.big.schema import Numbers
from condmeta.tables.files import arrow
from condmeta.tasks.numbers import level_name

ROWS = 1_000_000  # of a partition that is cut out of a Parquet file


class Partition(NamedTuple):
    """Rows in a file: a PyArrow file, or some row groups of a Parquet file."""

    path: str
    groups: tuple[int, ...] | None = None

    def read(self, columns: Sequence[str] | None = None, text: Sequence[str] = ()) -> Any:
        """Return a table; columns of `text` hold names."""
        if self.groups is None:
            with arrow.pa.OSFile(self.path) as file:
                table = arrow.pa.ipc.open_file(file).read_all()
            table = table if columns is None else table.select(columns)
        else:
            file = arrow.parquet.ParquetFile(self.path)
            table = file.read_row_groups(self.groups, columns)
        for name in text:
            if name in table.column_names:
                at = table.column_names.index(name)
                table = table.set_column(at, name, as_text(table.column(name)))
        return table

    def read_as(self, schema: Any, columns: list[str], text: Sequence[str] = ()) -> Any:
        """Return some columns as a table of the types of a schema; a column that lacks is empty."""
        table = plain(self.read(None, text))
        for name in columns:  # as in files that do not all have the same columns
            if name not in table.column_names:
                gaps = arrow.pa.nulls(len(table), schema.field(name).type)
                table = table.append_column(name, gaps)
        wanted = arrow.pa.schema([schema.field(name) for name in columns])
        return table.select(columns).cast(wanted)

    def about(self, text: Sequence[str] = ()) -> tuple[Any, int]:
        """Return the schema and the number of rows; the rows are not read."""
        if self.groups is None:
            with arrow.pa.memory_map(self.path) as file:
                reader = arrow.pa.ipc.open_file(file)
                numbers = range(reader.num_record_batches)
                schema, rows = reader.schema, sum(reader.get_batch(i).num_rows for i in numbers)
        else:
            file = arrow.parquet.ParquetFile(self.path)
            rows = sum(file.metadata.row_group(number).num_rows for number in self.groups)
            schema = plain(file.schema_arrow.empty_table()).schema
        for name in set(text) & set(schema.names):
            at = schema.get_field_index(name)
            schema = schema.set(at, arrow.pa.field(name, arrow.pa.string()))
        return schema, rows


def as_text(column: Any) -> Any:
    """Return a column as text: 7.0 is 7."""
    texts = [None if v is None or v != v else level_name(v) for v in column.to_pylist()]
    return arrow.pa.array(texts, arrow.pa.string())


def parquet_partitions(paths: Sequence[str]) -> list[Partition]:
    """Return the row groups of Parquet files, about a million rows in each partition."""
    found = []
    for path in map(str, paths):
        if any("=" in part for part in Path(path).parent.parts):
            raise DataError(
                f"Folders such as '{Path(path).parent.name}' name a column: read the files by "
                "dask.dataframe.read_parquet, and fit the Dask DataFrame."
            )
        about, groups, rows = arrow.parquet.read_metadata(path), [], 0
        for number in range(about.num_row_groups):
            groups.append(number)
            rows += about.row_group(number).num_rows
            if rows >= ROWS or number == about.num_row_groups - 1:
                found.append(Partition(path, tuple(groups)))
                groups, rows = [], 0
    return found


def write_partition(frame: Any, path: str) -> Partition:
    """Write a pandas frame to a PyArrow file; categories become their values."""
    table = arrow.pa.Table.from_pandas(frame, preserve_index=False)
    write_batches(path, [plain(table)])
    return Partition(path)


def plain(table: Any) -> Any:
    """Return a table with the values of categories, and without the metadata of pandas."""
    for at, field in enumerate(table.schema):
        if arrow.types.is_dictionary(field.type):
            values = table.column(at).cast(field.type.value_type)
            table = table.set_column(at, field.name, values)
    return table.replace_schema_metadata(None)


def write_batches(path: str, tables: Sequence[Any]) -> None:
    """Write tables to a PyArrow file, each as one batch; it is complete or not there."""
    part = Path(f"{path}.part")
    with (
        arrow.pa.OSFile(str(part), "wb") as file,
        arrow.pa.ipc.new_file(file, tables[0].schema) as writer,
    ):
        for table in tables:
            batches = table.combine_chunks().to_batches()
            empty = arrow.pa.RecordBatch.from_pylist([], schema=table.schema)
            writer.write_batch(batches[0] if batches else empty)
    part.replace(path)


class PartitionRows:
    """The rows of all partitions (see `RowSource`); workers answer for each of their own."""

    def __init__(self, parts: list[Partition], runner: Runner, text: Sequence[str] = ()):
        self.parts, self.runner, self.text = parts, runner, list(text)
        schemas, sizes = zip(*self._ask(Partition.about), strict=True)
        self.schema = arrow.pa.unify_schemas(schemas, promote_options="permissive")
        self.names, self.n_rows = self.schema.names, sum(sizes)
        self._about: dict[str, Any] = {}

    def _ask(self, function: Any, *params: Any) -> list[Any]:
        return self.runner.map(function, [(part, self.text, *params) for part in self.parts])

    def empty(self) -> Any:
        """Return the columns as a PyArrow table without rows."""
        return self.schema.empty_table()

    def count(self) -> int:
        """Return the number of rows."""
        return self.n_rows

    def gaps(self, name: str) -> int:
        """Return how many values of a column are missing, NaN included."""
        return sum(self._ask(_gaps, name))

    def numbers(self, name: str) -> Numbers:
        """Return what is to be known of numbers or booleans; all columns are looked at once."""
        if not self._about:
            kinds = arrow.types
            wanted = [
                field.name for field in self.schema
                if kinds.is_integer(field.type) or kinds.is_floating(field.type)
                or kinds.is_decimal(field.type) or kinds.is_boolean(field.type)
            ]  # fmt: skip
            every = self._ask(_numbers, wanted)
            self._about = {n: joined([found[n] for found in every]) for n in wanted}
        return self._about[name]

    def values(self, name: str, most: int) -> tuple[Any, np.ndarray]:
        """Return at most some different values of a column, and how often each is there."""
        found = received(self._ask(_values, name))
        found = found.group_by(name).aggregate([("times", "sum")]).sort_by(name)[: most + 1]
        return found.select([name]), found.column("times_sum").to_numpy()

    def n_different(self, name: str, most: int) -> int:
        """Return the number of different values, or `most` if there are more."""
        return min(len(set().union(*self._ask(_some_values, name, most))), most)

    def distinct(self, columns: list[str]) -> Any:
        """Return the different rows of some columns, by the order of these columns."""
        found = received(self._ask(_distinct, columns))
        found = found.group_by(columns).aggregate([])
        return found.sort_by([(name, "ascending") for name in columns]).select(columns)


def _gaps(part: Partition, text: Any, name: str) -> int:
    column = part.read([name], text).column(name)
    is_float = arrow.types.is_floating(column.type)
    return int(np.isnan(_floats(column)).sum()) if is_float else column.null_count


def _floats(column: Any) -> np.ndarray:
    """Return numbers or booleans as floats (n,), NaN for gaps."""
    return column.cast(arrow.pa.float64()).to_numpy(zero_copy_only=False)


def _values(part: Partition, text: Any, name: str) -> Any:
    table = plain(part.read([name], text))
    counted = table.append_column("times", arrow.pa.array(np.ones(len(table), np.int64)))
    found = counted.group_by(name).aggregate([("times", "sum")])
    return sent(found.rename_columns({"times_sum": "times"}))


def _some_values(part: Partition, text: Any, name: str, most: int) -> set:
    return set(part.read([name], text).column(name).unique().to_pylist()[:most])


def _distinct(part: Partition, text: Any, columns: list[str]) -> Any:
    return sent(plain(part.read(columns, text)).group_by(columns).aggregate([]).select(columns))


def sent(table: Any) -> bytes:
    """Return a table as bytes: the arrays that Dask sends are not aligned as PyArrow wants them."""
    sink = arrow.pa.BufferOutputStream()
    with arrow.pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def received(tables: Sequence[bytes]) -> Any:
    """Return the rows of all tables."""
    parts = [arrow.pa.ipc.open_stream(table).read_all() for table in tables]
    return arrow.pa.concat_tables(parts, promote_options="permissive")


class Exact(NamedTuple):
    """What is to be known of the numbers of one partition; their sum is exact."""

    gaps: int
    count: int
    least: float | None
    most: float | None
    total: Fraction | float


def _numbers(part: Partition, text: Any, names: list[str]) -> dict[str, Exact]:
    table = part.read(names, text)
    return {name: exact(_floats(table.column(name))) for name in names}


def exact(values: np.ndarray) -> Exact:
    """Return what is to be known of numbers (n,), NaN for gaps.

    Examples
    --------
    >>> found = exact(np.array([1e300, 1.0, -1e300, np.nan]))
    >>> found.total, found.gaps
    (Fraction(1, 1), 1)
    """
    seen = values[~np.isnan(values)]
    gaps, n = len(values) - len(seen), len(seen)
    if not n:
        return Exact(gaps, 0, None, None, Fraction(0))
    ends = float(seen.min()), float(seen.max())
    if not np.isfinite(ends).all():
        return Exact(gaps, n, *ends, float(seen.sum()))
    digits, power = np.frexp(seen)  # digits * 2^53 are whole numbers
    high = np.floor(digits * 2.0**27)
    low = (digits * 2.0**27 - high) * 2.0**26
    least = int(power.min())
    sums = [np.bincount(power - least, weights=part) for part in (high, low)]  # below 2^53: exact
    total = sum(
        (int(a) * 2**26 + int(b)) * Fraction(2) ** (least + j - 53)
        for j, (a, b) in enumerate(zip(*sums, strict=True))
    )
    return Exact(gaps, n, *ends, Fraction(total))


def joined(parts: Sequence[Exact]) -> Numbers:
    """Return what is to be known of the numbers of all partitions."""
    seen = [part for part in parts if part.count]
    gaps = sum(part.gaps for part in parts)
    if not seen:
        return Numbers(gaps, None, None, 0.0)
    total, count = sum(part.total for part in seen), sum(part.count for part in seen)
    try:
        mean = float(total) / count
    except OverflowError:
        mean = float("inf")
    least, most = min(part.least for part in seen), max(part.most for part in seen)
    return Numbers(gaps, least, most, mean)
