"""Many tasks in flat arrays: the rows of a task are together, in the order of the input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.notebook import html_block, html_table, paragraph
from condmeta.tasks import read
from condmeta.tasks.arrays import is_sparse
from condmeta.tasks.checks import check_finite, task_of_row
from condmeta.tasks.frames import make_frame
from condmeta.tasks.ids import as_id_array, factorize, id_columns
from condmeta.tasks.messages import show_id, show_ids
from condmeta.tasks.splits import point_mask, task_parts, task_rows
from condmeta.tasks.task_table import TaskTable
from condmeta.tasks.times import read_times
from condmeta.tasks.weights import read_weight
from condmeta.text import pluralize
from condmeta.typing import (
    Frame,
    Ids,
    Matrix,
    MissingSide,
    Names,
    Numbers,
    Order,
    RandomState,
    SideInfo,
    Table,
    TaskId,
    Values,
)

SHOWN = 5  # tasks and side columns in the table of a notebook
MOST_NAMES = 12  # names of columns below it


class Task(NamedTuple):
    """Hold one task: X (n, d), y (n,), its id, its side row (a dict), weights and times (n,)."""

    X: Any
    y: Any
    id: Any = None
    side: Any = None
    weight: Any = None
    time: Any = None


class TaskSet:
    """Hold the rows (X, y) of many tasks in flat, read-only arrays.

    A `TaskSet` holds rows; a `TaskTable` one row of side information for each task; a `TaskModel`
    is the fitted model of one task. Tasks are in the order of their first row, never sorted by id;
    the rows of a task keep their order.

    Parameters
    ----------
    X, y : arrays (N, d) and (N,)
        The rows of all tasks, task after task. y has numbers, or text: names of classes, for
        classifiers. It may be None.
    offsets : array (T+1,)
        Task t has the rows ``offsets[t]:offsets[t + 1]``, possibly none.
    ids : sequence (T,)
        Task ids, all different: str, int, float, bool, date, datetime, or tuples of them.
    side : TaskTable, optional
    row_order : array (N,), optional
        Position of each row in the input table.
    feature_names, target_name, task_name : optional
        Names of the columns; a tuple of names for several task columns.
    backend : {"pandas", "polars", "pyarrow"}, optional
        The library of the table that `to_frame` returns.
    weight : array (N,), optional
        How often each row counts, 0 or more: 2 is the row twice.
    time : array (N,), optional
        The time of each row: numbers in any unit, or dates, which count in days. For learners that
        forget (`ConditionalRidge`); others do not read it.

    Examples
    --------
    >>> tasks = TaskSet.from_arrays([[1.0], [2.0], [3.0]], [1, 2, 3], task=["b", "a", "b"])
    >>> tasks.ids.tolist(), tasks.y.tolist(), tasks.sizes.tolist()
    (['b', 'a'], [1.0, 3.0, 2.0], [2, 1])
    """

    def __init__(
        self, X: Matrix, y: Values, offsets: Numbers, ids: Sequence[Any],
        side: TaskTable | None = None, *,
        row_order: Numbers | None = None, feature_names: Sequence[str] | None = None,
        target_name: str | None = None, task_name: Names = None, backend: str | None = None,
        weight: Values = None, time: Values = None,
    ):  # fmt: skip
        X, y = read.matrix_and_target(X, y, feature_names, target_name)
        offsets = np.asarray(offsets, dtype=np.int64)
        names = None if feature_names is None else tuple(map(str, feature_names))
        codes, unique = factorize(as_id_array(list(ids)))
        if unique.size < codes.size:
            twice = unique[np.bincount(codes) > 1]
            raise DataError(f"Task ids occur more than once: {show_ids(twice)}.")
        ends = offsets[[0, -1]].tolist() if offsets.shape == (unique.size + 1,) else None
        if ends != [0, X.shape[0]] or (np.diff(offsets) < 0).any():
            raise DataError(
                f"offsets must have {unique.size + 1} values, one more than there are task ids, "
                f"that rise from 0 to the number of rows ({X.shape[0]})."
            )
        if side is not None and not isinstance(side, TaskTable):
            raise DataError(f"side must be a TaskTable, got a {type(side).__name__}.")
        if row_order is not None and np.shape(row_order) != (X.shape[0],):
            raise DataError(f"row_order must have {X.shape[0]} entries, one per row.")
        read.require_rows(X)
        check_finite(X, y, (unique, offsets), feature_names=names, target_name=target_name)
        if weight is not None:
            weight = read_weight(weight, X.shape[0], task_of_row((unique, offsets)), row_order)
        if time is not None:
            time = read_times(time, X.shape[0], task_of_row=task_of_row((unique, offsets)))
        labels = names, target_name, task_name, backend
        self._set(X, y, offsets, unique, side, weight, row_order, *labels, time)

    def _set(
        self, X: Any, y: Any, offsets: Any, ids: Any, side: Any = None, weight: Any = None,
        row_order: Any = None,
        feature_names: Any = None, target_name: Any = None, task_name: Any = None,
        backend: Any = None, time: Any = None,
    ) -> None:  # fmt: skip
        self.X = _frozen(X)
        self.y = None if y is None else _frozen(y)
        self.weight = None if weight is None else _frozen(weight)
        self.time = None if time is None else _frozen(time)
        self.offsets = _frozen(offsets)
        self.ids = _frozen(ids)
        # Rows in the order of the input are not numbered: the numbers would take much memory.
        self._row_order = None if row_order is None else _frozen(np.asarray(row_order, np.int64))
        self.side = side
        self.feature_names = feature_names
        self.target_name = target_name
        self.task_name = task_name
        self.backend = backend
        self._index: dict | None = None

    @classmethod
    def trusted(
        cls,
        X: Matrix,
        y: Values,
        offsets: np.ndarray,
        ids: np.ndarray,
        side: TaskTable | None = None,
        weight: Values = None,
        **named: Any,
    ) -> TaskSet:
        """Return tasks made of arrays that fit together; nothing is checked or copied.

        Parameters as for the class: X, y and weight float64, offsets int64, ids an object array of
        distinct ids. The attributes are read-only views of the arrays.
        """
        tasks = cls.__new__(cls)
        tasks._set(X, y, offsets, ids, side, weight, **named)
        return tasks

    @classmethod
    def from_frame(
        cls, df: Table, task: Names, target: str | None = None,
        features: Sequence[str] | None = None, side: Names | SideInfo = None,
        side_key: Names = None, missing_side: MissingSide = "error", weight: str | None = None,
        time: str | None = None,
    ) -> TaskSet:  # fmt: skip
        """Make tasks from a table of any DataFrame library, rows in any order.

        Parameters
        ----------
        task : str or list of str
            The task column, or a level of a pandas index; several columns make tuple ids.
        target : str, optional
            The column to predict: numbers, or text that names classes.
        features : list of str, optional
            The columns of X; by default all that no other parameter names.
        side : list of str, table, dict or TaskTable, optional
            Names of columns that are constant within a task, or side information keyed by task id.
        side_key : str or list of str, optional
            The key of a separate side table.
        missing_side : {"error", "mean"}
            "error" refuses tasks without side information; "mean" leaves them out of `side`.
        weight : str, optional
            The column that says how often each row counts.
        time : str, optional
            The column with the time of each row.
        """
        columns = task, target, features, side, side_key
        return cls(**read.from_frame(df, *columns, missing_side, weight, time))

    @classmethod
    def from_arrays(
        cls, X: Matrix, y: Values, task: Ids, side_info: SideInfo = None, side_key: Names = None,
        feature_names: Sequence[str] | None = None, missing_side: MissingSide = "error",
        weight: Values = None, time: Values = None,
    ) -> TaskSet:  # fmt: skip
        """Make tasks from X (N, d), y (N,) or None, and row-aligned task ids.

        ``task=None`` makes one task with id 0. `side_info` is a table keyed by task id, a dict of
        id -> row or a TaskTable; its extra rows become tasks without points. `weight` (N,) counts
        how often each row is there, `time` (N,) is when.
        """
        options = side_info, side_key, feature_names, missing_side, weight, time
        return cls(**read.from_arrays(X, y, task, *options))

    @classmethod
    def from_tasks(cls, tasks: Iterable[Any], missing_side: MissingSide = "error") -> TaskSet:
        """Make tasks from `Task` tuples, (X, y) pairs or (X, y, side row) triples.

        Ids default to 0, 1, 2, ...; tasks keep their order and may have no rows.
        """
        return cls(**read.from_tasks(tasks, missing_side))

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return self.X.shape[1]

    @property
    def sizes(self) -> np.ndarray:
        """Number of points of each task, (T,)."""
        return np.diff(self.offsets)

    @property
    def row_order(self) -> np.ndarray:
        """Position of each row in the input table, (N,)."""
        return _frozen(np.arange(self.X.shape[0])) if self._row_order is None else self._row_order

    def __len__(self) -> int:
        return self.ids.size

    def __iter__(self) -> Iterator[Task]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int | np.integer):
            i = range(len(self))[key]  # negative positions count from the end
            rows = slice(self.offsets[i], self.offsets[i + 1])
            task_id = self.ids[i]
            known = self.side is not None and self.side.has([task_id])[0]
            side = self.side.row(task_id) if known else None
            y, *more = (None if a is None else a[rows] for a in (self.y, self.weight, self.time))
            return Task(self.X[rows], y, task_id, side, *more)
        if isinstance(key, slice):
            return self.subset(np.arange(len(self))[key])
        key = np.asarray(key)
        if key.dtype == bool:
            if key.shape != (len(self),):
                raise IndexError(f"A mask of shape {key.shape} does not fit {len(self)} tasks.")
            key = np.flatnonzero(key)
        return self.subset(key)

    def position(self, task_id: TaskId) -> int:
        """Return the position of a task; an unknown id is a KeyError."""
        if self._index is None:
            self._index = dict(zip(self.ids, range(len(self)), strict=True))
        if task_id not in self._index:
            raise KeyError(f"There is no task {show_id(task_id)}.")
        return self._index[task_id]

    def subset(self, positions: Sequence[int] | np.ndarray) -> TaskSet:
        """Return the tasks at distinct positions, in that order."""
        at = np.asarray(positions)
        if at.ndim != 1 or (at.size and at.dtype.kind not in "iu"):
            raise IndexError(f"Tasks are picked by a 1-D array of integers, got {positions!r}.")
        at = np.arange(len(self))[at.astype(np.int64)]
        if np.unique(at).size < at.size:
            raise IndexError("A task can be picked only once: its id would occur twice.")
        rows, offsets = task_rows(self.offsets, at)
        ids, side = self.ids[at], self.side
        if side is not None:
            in_order = side.n_tasks == len(self) and side.ids[at].tolist() == ids.tolist()
            side = side.rows(at) if in_order else side.take(ids[side.has(ids)])
        return self._select(rows, offsets, ids, side)

    def _select(self, rows: Any, offsets: np.ndarray, ids: np.ndarray, side: Any) -> TaskSet:
        """Return some of the rows as tasks with other offsets, ids and side table, unchecked.

        Every method that returns tasks calls it; a subclass with further arrays extends it.
        """
        y, weight, time = (None if a is None else a[rows] for a in (self.y, self.weight, self.time))
        every = isinstance(rows, slice) and rows == slice(None)
        row_order = self._row_order if every else self.row_order[rows]
        return type(self).trusted(
            self.X[rows], y, offsets, ids, side, weight, row_order=row_order,
            feature_names=self.feature_names, target_name=self.target_name,
            task_name=self.task_name, backend=self.backend, time=time,
        )  # fmt: skip

    def with_target(self, y: np.ndarray) -> TaskSet:
        """Return the same rows with another target (N,), in the order of `X`."""
        return self.with_rows(self.X, y)

    def with_rows(self, X: np.ndarray, y: np.ndarray) -> TaskSet:
        """Return the same tasks with other inputs (N, p) and targets (N,), in the order of `X`.

        The feature names are kept if the number of features is the same.
        """
        out = self._select(slice(None), self.offsets, self.ids, self.side)
        out.X, out.y = _frozen(X), _frozen(y)
        out.feature_names = self.feature_names if X.shape[1] == self.n_features else None
        return out

    def with_weight(self, weight: np.ndarray) -> TaskSet:
        """Return the same rows with other weights (N,) or (N, 2), in the order of `X`."""
        out = self._select(slice(None), self.offsets, self.ids, self.side)
        out.weight = _frozen(weight)
        return out

    def with_side(self, table: TaskTable) -> TaskSet:
        """Return the same tasks with another side table; its extra rows become tasks too."""
        ids, table = read.join_side(self.ids, table, "mean")
        extra = np.full(len(ids) - len(self), self.offsets[-1])
        return self._select(slice(None), np.concatenate([self.offsets, extra]), ids, table)

    def restore_order(self, values: Numbers) -> np.ndarray:
        """Return values (N, ...), one for each row of X, in the order of the input rows."""
        values, order = np.asarray(values), self.row_order
        if values.shape[:1] != order.shape:
            raise DataError(f"There are {len(values)} values for {order.size} rows.")
        if values.size and order.max() < order.size:
            out = np.empty_like(values)
            out[order] = values
            return out
        return values[np.argsort(order)]  # a subset of the input rows

    def split_tasks(
        self, sizes: float | Sequence[float], random_state: RandomState = None
    ) -> tuple[TaskSet, ...]:
        """Split at random into sets of tasks, each in its old order.

        `sizes` are counts or fractions; one number means that many tasks, and the rest. If they sum
        to less than all tasks, the other tasks are in no set.
        """
        return tuple(map(self.subset, task_parts(len(self), sizes, random_state)))

    def split_points(
        self, train: float, order: Order = "random", random_state: RandomState = None
    ) -> tuple[TaskSet, TaskSet]:
        """Split the points of every task into support and query; both hold all tasks.

        `train` is a count (at most that many support points a task) or a fraction in (0, 1).
        """
        support = point_mask(self.offsets, train, order, random_state)
        return self.where(support), self.where(~support)

    def where(self, mask: np.ndarray) -> TaskSet:
        """Return all tasks with only the rows that a mask (N,) selects, in the order of `X`."""
        offsets = np.concatenate([[0], np.cumsum(mask)])[self.offsets]
        return self._select(mask, offsets, self.ids, self.side)

    def to_frame(self, side: bool = False) -> Frame:
        """Return task, X, y (and side information) as a table, rows in the order of the input.

        The table is of the input's library. Weights are the column "sample_weight", times "time".
        """
        ids = self.ids[self.restore_order(np.repeat(np.arange(len(self)), self.sizes))]
        columns: dict[Any, np.ndarray] = id_columns(ids, self.task_name)
        names = self.feature_names or [f"x{j}" for j in range(self.n_features)]
        X = self.X.toarray() if is_sparse(self.X) else self.X
        columns |= dict(zip(names, self.restore_order(X).T, strict=True))
        if self.y is not None:
            columns[self.target_name or "y"] = self.restore_order(self.y)
        if self.weight is not None:
            columns["sample_weight"] = self.restore_order(self.weight)
        if self.time is not None:
            columns["time"] = self.restore_order(self.time)
        if side and self.side is not None:
            columns |= self.side.take(ids).data
        return make_frame(columns, self.backend)

    def __repr__(self) -> str:
        sizes, (n_rows, d) = self.sizes, self.X.shape
        ends = dict.fromkeys([sizes.min(), sizes.max()]) if sizes.size else ()
        spread = f", {' to '.join(map(str, ends))} a task" if ends else ""
        side = "" if self.side is None else f", side: {pluralize(len(self.side.columns), 'column')}"
        features = pluralize(d, "feature")
        return f"TaskSet({len(self)} tasks, {n_rows} rows{spread}, {features}{side})"

    def _repr_html_(self) -> str:
        names = self.feature_names or [f"x{j}" for j in range(self.n_features)]
        side = () if self.side is None else self.side.columns
        header = ["task", "rows", *map(str, side[:SHOWN])]
        shown = self.ids[:SHOWN]
        table = None if self.side is None else self.side.take(shown[self.side.has(shown)])
        known = {} if table is None else {one: t for t, one in enumerate(table.ids.tolist())}
        rows = [
            [show_id(one), int(n)]
            + [table.data[name][known[one]] if one in known else "" for name in side[:SHOWN]]
            for one, n in zip(shown.tolist(), self.sizes, strict=False)
        ]
        listed = [f"features: {_listed(names)}"]
        listed += [f"side columns: {_listed(side)}"] if side else []
        return html_block(
            paragraph(repr(self), True), html_table(header, rows), paragraph("; ".join(listed))
        )


def require_numbers(tasks: TaskSet, caller: str) -> None:
    """Raise if tasks have no targets, or names of classes where `caller` needs numbers."""
    if tasks.y is None:
        raise DataError(f"{caller} needs the targets of the tasks: the TaskSet has none.")
    if tasks.y.dtype == object:
        raise DataError(
            f"{caller} is for numbers, and the targets are classes such as {tasks.y[0]!r}."
        )


def _listed(names: Sequence[Any]) -> str:
    more = f", ... ({len(names)})" if len(names) > MOST_NAMES else ""
    return ", ".join(map(str, names[:MOST_NAMES])) + more


def _frozen(array: np.ndarray) -> np.ndarray:
    """Return a read-only view; the user's own array stays writeable."""
    if is_sparse(array):
        return array
    view = array.view()
    view.flags.writeable = False
    return view
