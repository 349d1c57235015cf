"""The side table: one row of side information for each task, found by its task id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.persistence import register
from condmeta.persistence.fields import Field, ids, mapping, maybe, one_of
from condmeta.tasks.each_column import each_column
from condmeta.tasks.frames import backend_of, column_names, eager, get_series, is_frame, make_frame
from condmeta.tasks.ids import factorize
from condmeta.tasks.messages import explain_absent, name_task, show_ids
from condmeta.tasks.numbers import refuse_masked
from condmeta.tasks.side_column import join_columns, type_column
from condmeta.text import pluralize
from condmeta.typing import Frame, Ids, SideInfo, TaskId


class TaskTable:
    """Hold one row of side information for each task, keyed by task id.

    A `TaskTable` describes tasks; a `TaskSet` holds their rows (X, y); a `TaskModel` is the fitted
    model of one task. A table has no length and no shape: cross-validation does not slice it.

    Parameters
    ----------
    values : array (T, p), table, or dict of name -> column (T,)
        Numbers, booleans, text or categories, with or without gaps.
    ids : array-like (T,)
        Task ids, each once; several columns make tuple ids.
    columns : list of str, optional
        Names of the columns; by default ``s0, s1, ...`` for an array.

    Attributes
    ----------
    ids : (T,) object array
    columns : tuple of str
    data : dict of name -> (T,) array
        float64 (gaps are NaN), bool, or object for text and categories (gaps are None).
    backend : {"pandas", "polars", "pyarrow"} or None
        The library of the table that the values came from.

    Examples
    --------
    >>> table = TaskTable([[1.0], [2.0]], ids=["a", "b"], columns=["size"])
    >>> table.take(["b"]).data["size"]
    array([2.])
    """

    def __init__(self, values: SideInfo, ids: Ids, columns: Sequence[str] | None = None):
        refuse_masked(values, "The side table")
        codes, distinct = factorize(ids, what="side table")
        row_ids = distinct[codes]
        if distinct.size < codes.size:
            twice = distinct[np.bincount(codes, minlength=distinct.size) > 1]
            raise DataError(
                f"Task ids occur more than once in the side table: {show_ids(twice)}. Keep one "
                "row per task."
            )
        raw, backend = _split_columns(values, columns)
        for name, column in raw.items():
            if len(column) != row_ids.size:
                sizes = f"{len(column)} rows for {row_ids.size} task ids"
                raise DataError(f"Side column {name!r} has {sizes}.")
        self._set(row_ids, each_column(raw, lambda name: type_column(raw[name], name)), backend)

    def _set(self, ids: np.ndarray, data: dict[str, np.ndarray], backend: str | None) -> None:
        self.ids = ids
        self.data = data
        self.columns = tuple(data)
        self.backend = backend
        self._index: dict | None = None

    @classmethod
    def trusted(cls, ids: np.ndarray, data: dict, backend: str | None = None) -> TaskTable:
        """Return a table of distinct ids (T,) and typed columns; nothing is checked or copied."""
        table = cls.__new__(cls)
        table._set(ids, data, backend)
        return table

    @property
    def n_tasks(self) -> int:
        """Number of tasks (rows)."""
        return self.ids.size

    def positions(self, ids: Iterable[Any]) -> np.ndarray:
        """Return the row of each id, or -1."""
        wanted = list(ids)
        if self._index is None and wanted == self.ids.tolist():
            return np.arange(self.n_tasks)  # an index of many tasks takes more than their rows
        if self._index is None:
            self._index = dict(zip(self.ids, range(self.n_tasks), strict=True))
        return np.fromiter(map(self._index.get, wanted, repeat(-1)), np.int64, len(wanted))

    def has(self, ids: Iterable[Any]) -> np.ndarray:
        """Return for each id whether the table has a row for it, (n,) bool."""
        return self.positions(ids) >= 0

    def rows(self, at: np.ndarray) -> TaskTable:
        """Return the rows at some positions."""
        data = {name: column[at] for name, column in self.data.items()}
        return self.trusted(self.ids[at], data, self.backend)

    def take(self, ids: Iterable[Any]) -> TaskTable:
        """Return the rows of some tasks in that order; an unknown id is a DataError."""
        wanted = list(ids)
        at = self.positions(wanted)
        if (at < 0).any():
            absent = [wanted[i] for i in np.flatnonzero(at < 0)]
            raise DataError(explain_absent(self.ids, absent, "the side table"))
        return self.rows(at)

    def row(self, task_id: TaskId) -> dict[str, Any]:
        """Return the row of one task as a dict of plain values."""
        return {name: column.tolist()[0] for name, column in self.take([task_id]).data.items()}

    def align(self, columns: Sequence[str]) -> TaskTable:
        """Return the table with its columns in the given order; other names are a DataError."""
        if self.columns == tuple(columns):
            return self
        lacking = [name for name in columns if name not in self.data]
        extra = [name for name in self.columns if name not in columns]
        if lacking and extra == [f"s{j}" for j in range(len(self.columns))]:
            raise DataError(
                f"The side information has {pluralize(len(extra), 'value')} without names in each "
                f"row; fit saw {pluralize(len(columns), 'column')}: "
                f"{', '.join(map(repr, columns))}. Give the values by name, as a dict or a table."
            )
        if lacking or extra:
            parts = ["lacks " + ", ".join(map(repr, lacking))] if lacking else []
            parts += ["has the unknown " + ", ".join(map(repr, extra))] if extra else []
            raise DataError(
                f"The side information {' and '.join(parts)}; "
                f"the columns seen in fit are {', '.join(map(repr, columns))}."
            )
        return self.trusted(self.ids, {name: self.data[name] for name in columns}, self.backend)

    def concat(self, other: TaskTable) -> TaskTable:
        """Return a table with the rows of both; a task id in both is a DataError."""
        other = other.align(self.columns)
        twice = other.ids[self.has(other.ids)]
        if twice.size:
            already = f"{twice.size} task ids are already in the side table"
            raise DataError(f"{already}: {show_ids(twice)}.")
        data = {n: join_columns(self.data[n], other.data[n], n) for n in self.columns}
        return self.trusted(np.concatenate([self.ids, other.ids]), data, self.backend)

    @classmethod
    def stacked(cls, tables: Iterable[TaskTable], n_tasks: int) -> TaskTable:
        """Return the rows of parts of one table, n_tasks in all.

        Parts are copied one by one, so that a generator of parts never holds two of them.
        """
        ids, data, begin, backend = np.empty(n_tasks, object), {}, 0, None
        for table in tables:
            part, backend = slice(begin, begin + table.n_tasks), table.backend
            ids[part] = table.ids
            for name, column in table.data.items():
                if name not in data:
                    data[name] = np.empty(n_tasks, column.dtype)
                elif data[name].dtype != column.dtype:
                    data[name] = data[name].astype(np.result_type(data[name], column))
                data[name][part] = column
            begin = part.stop
        return cls.trusted(ids, data, backend)

    def gaps(self) -> np.ndarray:
        """Return for each task and column whether the value is missing, (T, p) bool."""
        out = np.zeros((self.n_tasks, len(self.columns)), bool)
        for j, column in enumerate(self.data.values()):
            if column.dtype != bool:
                out[:, j] = np.isnan(column) if column.dtype.kind == "f" else column == None  # noqa: E711
        return out

    @property
    def is_numeric(self) -> bool:
        """Whether every column holds numbers or booleans."""
        return all(column.dtype != object for column in self.data.values())

    def numeric(self, *, allow_gaps: bool = False) -> np.ndarray:
        """Return the table as (T, p) float64; text and, unless allowed, gaps are a DataError."""
        out = np.empty((self.n_tasks, len(self.columns)))
        for j, (name, column) in enumerate(self.data.items()):
            if column.dtype == object:
                filled = [v for v in column.tolist() if v is not None]
                if not all(isinstance(v, bool) for v in filled):
                    raise DataError(
                        f"Side column {name!r} holds text ({filled[0]!r}, ...); this feature map "
                        'needs numbers: feature_map="auto" encodes it.'
                    )
                column = np.array([np.nan if v is None else v for v in column.tolist()], float)
            out[:, j] = column
        bad = ~np.isfinite(out) if not allow_gaps else np.isinf(out)
        if bad.any():
            t, j = np.argwhere(bad)[0]
            what, remedy = "NaN (no value)", ': feature_map="auto" handles gaps'
            if np.isinf(out[t, j]):
                what, remedy = "infinity", ""
            where = f"{what} in side column {self.columns[j]!r}"
            raise DataError(f"{name_task(self.ids[t])} has {where}{remedy}.")
        return out

    def native(self, kind: str | None = None) -> Frame:
        """Return the columns as a table of the library that they came from, or of `kind`.

        Without a library: an array, float64 if all columns are numeric and object otherwise.
        """
        kind = self.backend if kind is None else kind
        if kind in ("pandas", "polars", "pyarrow"):
            return make_frame(self.data, kind)
        if self.is_numeric and kind != "object":
            return self.numeric(allow_gaps=True)
        out = np.empty((self.n_tasks, len(self.columns)), dtype=object)
        for j, column in enumerate(self.data.values()):
            out[:, j] = column
        return out

    def __repr__(self) -> str:
        names = ", ".join(self.columns[:6]) + (", ..." if len(self.columns) > 6 else "")
        return f"TaskTable({self.n_tasks} tasks, columns: {names or 'none'})"


def _split_columns(values: Any, columns: Sequence[str] | None) -> tuple[dict[str, Any], str | None]:
    """Return values as named columns, and the name of the library they came from."""
    backend = None
    if is_frame(values):
        backend, frame = backend_of(values), eager(values)
        raw = {str(n): get_series(frame, n) for n in column_names(frame)}
    elif isinstance(values, Mapping):
        raw = {str(name): column for name, column in values.items()}
    else:
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            kind = type(values).__name__
            raise DataError(f"Side information is a {kind}: pass a table, an array or a dict.")
        array = values if isinstance(values, np.ndarray) else object_matrix(values)
        if array.ndim == 1:
            array = array[:, None]
        if array.ndim != 2:
            raise DataError(f"Side information must be 2-D, got shape {array.shape}.")
        raw = {f"s{j}": column for j, column in enumerate(array.T)}
    if columns is None:
        return raw, backend
    if len(columns) != len(raw):
        raise DataError(f"The side table has {len(raw)} columns and {len(columns)} names.")
    return dict(zip(map(str, columns), raw.values(), strict=True)), backend


def object_matrix(rows: Any) -> np.ndarray:
    """Return nested sequences as an object array; values keep their types."""
    listed = list(rows)
    nested = [list(r) if isinstance(r, list | tuple | np.ndarray) else [r] for r in listed]
    widths = {len(row) for row in nested}
    if len(widths) > 1:
        raise DataError(f"Rows of side information differ in length: {sorted(widths)}.")
    out = np.empty((len(nested), widths.pop() if widths else 0), dtype=object)
    for t, row in enumerate(nested):
        out[t, :] = row
    return out


def _is_column(value: Any, sizes: Any) -> bool:
    if not isinstance(value, np.ndarray) or value.ndim != 1 or not sizes.fit("T", len(value)):
        return False
    if value.dtype == object:
        return all(v is None or isinstance(v, str | bool | int | float) for v in value.tolist())
    return value.dtype == bool or (value.dtype == float and not np.isinf(value).any())


COLUMN = Field("an array (T) of float64, bool, or of texts", _is_column)
register(
    TaskTable,
    export=lambda table: {"ids": table.ids, "data": table.data, "backend": table.backend},
    restore=lambda cls, parts: cls.trusted(parts["ids"], parts["data"], parts["backend"]),
    fields={
        "ids": ids("T"),
        "data": mapping(COLUMN),
        "backend": maybe(one_of("pandas", "polars", "pyarrow")),
    },
)
