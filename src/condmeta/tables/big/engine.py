"""DuckDB as the engine that looks at all rows, and orders them by task: it adds nothing up.

Sums made in SQL lose their digits where tasks lie far apart, and depend on the order of rows. So
the engine orders, and condmeta computes.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.feature_maps.column_profile import exact_mean
from condmeta.tables.big.schema import Numbers

FILE, ROW = "condmeta file", "file_row_number"  # columns that keep the order of the rows
SIZE = r"\s*(\d+(?:\.\d+)?)\s*([KMGT])(i?)B\s*"
GROUP = 100_000  # rows in a group of the ordered file


def quoted(name: str) -> str:
    """Return the name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: Any) -> str:
    """Return a text in SQL."""
    return "'" + str(text).replace("'", "''") + "'"


class FileRows:
    """The rows of Parquet files as one view of DuckDB.

    Parameters
    ----------
    paths : list of str
    text : columns that hold names: they are read as text
    memory : such as "2GB", the most that DuckDB may use
    folder : Path for what does not fit into memory
    """

    def __init__(self, paths: Sequence[str], text: Sequence[str], memory: str, folder: Path):
        try:
            import duckdb
        except ImportError as error:
            raise ImportError(
                'Rows in many files need DuckDB: pip install "condmeta[big]".'
            ) from error
        self.error = duckdb.Error
        self.connection = duckdb.connect()
        for setting, value in (
            ("memory_limit", literal(memory)), ("temp_directory", literal(folder)),
            ("preserve_insertion_order", "false"), ("enable_progress_bar", "false"),
            ("threads", str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity")
                            else os.cpu_count() or 1)),
        ):  # fmt: skip
            self.connection.execute(f"SET {setting} = {value}")
        listed = ", ".join(map(literal, paths))
        hive = any("=" in part for path in paths for part in Path(path).parent.parts)
        how = f"union_by_name=true, filename={literal(FILE)}, file_row_number=true"
        how += f", hive_partitioning={str(hive).lower()}"
        self._run(f"CREATE VIEW files AS SELECT * FROM read_parquet([{listed}], {how})")
        types = {name: kind for name, kind, *_ in self.all("DESCRIBE files")}
        self.names = [name for name in types if name not in (FILE, ROW)]
        order = ", ".join(f"({number}, {literal(path)})" for number, path in enumerate(paths))
        self._run(f"CREATE TABLE places AS SELECT * FROM (VALUES {order}) t(place, path)")
        kept = [self._as_text(n, types[n]) if n in text else quoted(n) for n in self.names]
        self._run(f"CREATE VIEW rows AS SELECT {', '.join(kept)}, {quoted(FILE)}, {ROW} FROM files")
        self.types = {name: kind for name, kind, *_ in self.all("DESCRIBE rows")}

    def _as_text(self, name: str, kind: str) -> str:
        """Return a column as text; 7.0 is 7 if all its numbers are whole."""
        column = quoted(name)
        if kind in ("FLOAT", "DOUBLE"):
            value = f"CASE WHEN isnan({column}) THEN NULL ELSE {column} END"
            whole = self.one(f"SELECT bool_and({value} = floor({value})) FROM files")[0]
            cast = f"CAST({value} AS BIGINT)" if whole else value
            return f"CAST({cast} AS VARCHAR) AS {column}"
        return f"CAST({column} AS VARCHAR) AS {column}"

    def _run(self, sql: str) -> None:
        try:
            self.connection.execute(sql)
        except self.error as error:
            raise DataError(_first_sentence(error)) from None

    def all(self, sql: str) -> list[tuple]:
        """Return the rows of a query."""
        try:
            return self.connection.sql(sql).fetchall()
        except self.error as error:
            raise DataError(_first_sentence(error)) from None

    def one(self, sql: str) -> tuple:
        """Return the only row of a query."""
        return self.all(sql)[0]

    def table(self, sql: str) -> Any:
        """Return the result of a query as a PyArrow table."""
        try:
            return self.connection.sql(sql).to_arrow_table()
        except self.error as error:
            raise DataError(_first_sentence(error)) from None

    # Questions of `RowSource`.

    def empty(self) -> Any:
        """Return the columns as a PyArrow table without rows."""
        return self.table("SELECT * FROM rows LIMIT 0").select(self.names)

    def count(self) -> int:
        """Return the number of rows."""
        return self.one("SELECT count(*) FROM rows")[0]

    def gaps(self, name: str) -> int:
        """Return how many values of a column are missing, NaN included."""
        return self.one(f"SELECT count(*) FROM rows WHERE {self._gap(name)}")[0]

    def numbers(self, name: str) -> Numbers:
        """Return what is to be known of numbers or booleans."""
        gap, value = self._gap(name), f"CAST({quoted(name)} AS DOUBLE)"
        if self.types[name] == "BOOLEAN":
            value = f"CAST(CAST({quoted(name)} AS INTEGER) AS DOUBLE)"
        gaps, least, most, count = self.one(
            f"SELECT count(*) FILTER (WHERE {gap}), min({value}) FILTER (WHERE NOT {gap}), "
            f"max({value}) FILTER (WHERE NOT {gap}), count(*) FROM rows"
        )
        mean = 0.0
        if gaps and least != most:
            mean = exact_mean(
                self._floats(f"SELECT {value} FROM rows WHERE NOT {gap}"), count - gaps
            )
        return Numbers(gaps, least, most, mean)

    def _gap(self, name: str) -> str:
        """Return the condition that a value is missing."""
        column = quoted(name)
        gap = f"{column} IS NULL"
        is_float = self.types[name] in ("FLOAT", "DOUBLE")
        return f"({gap} OR isnan({column}))" if is_float else gap

    def _floats(self, sql: str) -> Iterator[float]:
        """Yield the numbers of a query of one column, part by part."""
        for batch in self.connection.sql(sql).to_arrow_reader(1 << 16):
            yield from batch.column(0).to_numpy(zero_copy_only=False).tolist()

    def values(self, name: str, most: int) -> tuple[Any, np.ndarray]:
        """Return at most some different values of a column, and how often each is there."""
        column = quoted(name)
        if self.types[name].startswith("TIMESTAMP"):
            many = self.one(f"SELECT count(DISTINCT {column}) FROM rows")[0] > most
            column = f"date_trunc('day', {column})" if many else column
        found = self.table(
            f"SELECT {column} AS {quoted(name)}, count(*) AS times FROM rows GROUP BY 1 "
            f"ORDER BY 1 LIMIT {most + 1}"
        )
        return found.select([name]), found.column("times").to_numpy()

    def n_different(self, name: str, most: int) -> int:
        """Return the number of different values, or `most` if there are more."""
        some = f"SELECT DISTINCT {quoted(name)} FROM rows LIMIT {most}"
        return self.one(f"SELECT count(*) FROM ({some})")[0]

    def distinct(self, columns: Sequence[str]) -> Any:
        """Return the different rows of some columns, by the order of these columns."""
        chosen = ", ".join(map(quoted, columns))
        return self.table(f"SELECT DISTINCT {chosen} FROM rows ORDER BY {chosen}")

    def order(self, columns: Sequence[str], task: Sequence[str], target: Path) -> None:
        """Write some columns of all rows to a Parquet file, ordered by task.

        The rows of a task keep the order that they have in the files.
        """
        chosen = ", ".join(f"rows.{quoted(name)}" for name in columns)
        keys = ", ".join(f"rows.{quoted(name)}" for name in task)
        part = target.with_suffix(".part")
        self._run(
            f"COPY (SELECT {chosen} FROM rows JOIN places ON path = rows.{quoted(FILE)} "
            f"ORDER BY {keys}, place, {ROW}) "
            f"TO {literal(part)} (FORMAT parquet, ROW_GROUP_SIZE {GROUP})"
        )
        os.replace(part, target)


def to_bytes(memory: str) -> int:
    """Return a size such as "2GB" in bytes, or raise.

    Examples
    --------
    >>> to_bytes("1.5GB"), to_bytes("1 KiB")
    (1500000000, 1024)
    """
    found = isinstance(memory, str) and re.fullmatch(SIZE, memory)
    if not found:
        raise DataError(f"The memory must be a size such as '2GB' or '500MB'. Got {memory!r}.")
    number, unit, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** (1 + "KMGT".index(unit)))


def _first_sentence(error: Exception) -> str:
    said = " ".join(str(error).split("\n")[0].split())
    if "Out of Memory" in said:
        return f"The memory is too small to order the rows: allow more. DuckDB says: {said}"
    return f"DuckDB could not read the rows: {said}"
