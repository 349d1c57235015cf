"""Many tasks in flat arrays: the rows of each task stand together, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks import read
from condmeta.tasks.checks import check_finite, task_of_row
from condmeta.tasks.frames import make_frame
from condmeta.tasks.ids import as_id_array, factorize, show_id, show_ids
from condmeta.tasks.side_table import TaskTable
from condmeta.tasks.splits import point_mask, task_parts, task_rows
from condmeta.tasks.task import Task
from condmeta.tasks.weights import read_weight
from condmeta.tasks.write import columns_of

__all__ = ["Task", "TaskSet", "check_finite"]


class TaskSet:
    """Hold many tasks in flat, read-only arrays.

    Tasks stand in the order of their first row, never sorted by id; rows keep their order.

    Parameters
    ----------
    X, y : arrays (N, d) and (N,)
        The rows of all tasks, those of a task together; y may be None.
    offsets : array (T+1,)
        Task t holds the rows ``offsets[t]:offsets[t + 1]``; it may hold none.
    ids : sequence (T,)
        Task ids, all different: str, int, float, bool, date, datetime, or tuples of them.
    side : TaskTable, optional
    row_order : array (N,), optional
        Position of each row in the input table.
    feature_names, target_name, task_name : optional
        Names of the columns; several task columns are a tuple of names.
    backend : {"pandas", "polars", "pyarrow"}, optional
        The kind of table that `to_frame` gives.
    weight : array (N,), optional
        How often each row counts, 0 or more: 2 is the row twice.

    Examples
    --------
    >>> tasks = TaskSet.from_arrays([[1.0], [2.0], [3.0]], [1, 2, 3], task=["b", "a", "b"])
    >>> tasks.ids.tolist(), tasks.y.tolist(), tasks.sizes.tolist()
    (['b', 'a'], [1.0, 3.0, 2.0], [2, 1])
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        offsets: Any,
        ids: Sequence[Any],
        side: TaskTable | None = None,
        *,
        row_order: Any = None,
        feature_names: Sequence[str] | None = None,
        target_name: str | None = None,
        task_name: Any = None,
        backend: str | None = None,
        weight: Any = None,
    ):
        X, y = read.matrix_and_target(X, y, feature_names, target_name)
        offsets = np.asarray(offsets, dtype=np.int64)
        names = None if feature_names is None else tuple(map(str, feature_names))
        codes, unique = factorize(as_id_array(list(ids)))
        if unique.size < codes.size:
            twice = unique[np.bincount(codes) > 1]
            raise DataError(f"{twice.size} task ids occur more than once: {show_ids(twice)}.")
        ends = offsets[[0, -1]].tolist() if offsets.shape == (unique.size + 1,) else None
        if ends != [0, X.shape[0]] or (np.diff(offsets) < 0).any():
            raise DataError(
                f"offsets must rise from 0 to the number of rows ({X.shape[0]}) in "
                f"{unique.size + 1} steps, one more than there are task ids."
            )
        if side is not None and not isinstance(side, TaskTable):
            raise DataError(f"side must be a TaskTable, got a {type(side).__name__}.")
        if row_order is not None and np.shape(row_order) != (X.shape[0],):
            raise DataError(f"row_order must have {X.shape[0]} entries, one a row.")
        read.require_rows(X)
        check_finite(X, y, (unique, offsets), feature_names=names, target_name=target_name)
        if weight is not None:
            weight = read_weight(weight, X.shape[0], task_of_row((unique, offsets)), row_order)
        names = names, target_name, task_name, backend
        self._set(X, y, weight, offsets, unique, side, row_order, *names)

    def _set(
        self, X, y, weight, offsets, ids, side, row_order, names, target_name, task_name, backend
    ):
        row_order = np.arange(X.shape[0]) if row_order is None else row_order
        self.X = _frozen(X)
        self.y = None if y is None else _frozen(y)
        self.weight = None if weight is None else _frozen(weight)
        self.offsets = _frozen(offsets)
        self.ids = _frozen(ids)
        self.row_order = _frozen(np.asarray(row_order, dtype=np.int64))
        self.side = side
        self.feature_names = names
        self.target_name = target_name
        self.task_name = task_name
        self.backend = backend
        self._index: dict | None = None

    @classmethod
    def from_frame(
        cls,
        df: Any,
        task: Any,
        target: str | None = None,
        features: Sequence[str] | None = None,
        side: Any = None,
        side_key: Any = None,
        missing_side: str = "error",
        weight: str | None = None,
    ) -> TaskSet:
        """Make tasks from a table of any DataFrame library, rows in any order.

        Parameters
        ----------
        task : str or list of str
            The task column; several make tuple ids. A level of a pandas index will do.
        target : str, optional
            The column to predict.
        features : list of str, optional
            The columns of X; by default all that are not task, target or side columns.
        side : list of str, table, dict or TaskTable, optional
            Names of columns constant within a task, or side information keyed by task id.
        side_key : str or list of str, optional
            The key of a separate side table.
        missing_side : {"error", "mean"}
            Whether tasks without side information are an error; else `side` just lacks them.
        weight : str, optional
            The column that says how often each row counts.
        """
        how = target, features, side, side_key, missing_side, weight
        return cls(**read.from_frame(df, task, *how))

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        task: Any,
        side_info: Any = None,
        side_key: Any = None,
        feature_names: Sequence[str] | None = None,
        missing_side: str = "error",
        weight: Any = None,
    ) -> TaskSet:
        """Make tasks from X (N, d), y (N,) or None, and row-aligned task ids.

        ``task=None`` is one task with id 0. `side_info` is a table keyed by task id, a dict of
        id -> row or a TaskTable; its extra rows are tasks without points. `weight` (N,) as above.
        """
        options = side_info, side_key, feature_names, missing_side, weight
        return cls(**read.from_arrays(X, y, task, *options))

    @classmethod
    def from_tasks(cls, tasks: Iterable[Any], missing_side: str = "error") -> TaskSet:
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
            y, weight = (None if a is None else a[rows] for a in (self.y, self.weight))
            return Task(self.X[rows], y, task_id, side, weight)
        if isinstance(key, slice):
            return self.subset(np.arange(len(self))[key])
        key = np.asarray(key)
        if key.dtype == bool:
            if key.shape != (len(self),):
                raise IndexError(f"A mask of shape {key.shape} does not fit {len(self)} tasks.")
            key = np.flatnonzero(key)
        return self.subset(key)

    def position(self, task_id: Any) -> int:
        """Return where a task stands; an unknown id is a KeyError."""
        if self._index is None:
            self._index = dict(zip(self.ids, range(len(self)), strict=True))
        if task_id not in self._index:
            raise KeyError(f"There is no task {show_id(task_id)}.")
        return self._index[task_id]

    def subset(self, positions: Any) -> TaskSet:
        """Return the tasks at some different positions, in that order."""
        at = np.asarray(positions)
        if at.ndim != 1 or (at.size and at.dtype.kind not in "iu"):
            raise IndexError(f"Tasks are picked by a 1-D array of integers, got {positions!r}.")
        at = np.arange(len(self))[at.astype(np.int64)]
        if np.unique(at).size < at.size:
            raise IndexError("A task can be picked only once: its id would occur twice.")
        rows, offsets = task_rows(self.offsets, at)
        side = self.side
        if side is not None:
            side = side.take(self.ids[at][side.has(self.ids[at])])
        return self._pick(rows, offsets, self.ids[at], side)

    def _pick(self, rows: Any, offsets: np.ndarray, ids: np.ndarray, side: Any) -> TaskSet:
        """Return a TaskSet of some of the rows, with nothing checked again."""
        out = type(self).__new__(type(self))
        y, weight = (None if a is None else a[rows] for a in (self.y, self.weight))
        names = (self.feature_names, self.target_name, self.task_name, self.backend)
        out._set(self.X[rows], y, weight, offsets, ids, side, self.row_order[rows], *names)
        return out

    def with_target(self, y: np.ndarray) -> TaskSet:
        """Return the same rows with another target (N,), in the order of `X`."""
        return self.with_rows(self.X, y)

    def with_rows(self, X: np.ndarray, y: np.ndarray) -> TaskSet:
        """Return the same tasks with other inputs (N, p) and targets (N,), in the order of `X`.

        The names of the features stay if their number does.
        """
        out = self._pick(slice(None), self.offsets, self.ids, self.side)
        out.X, out.y = _frozen(X), _frozen(y)
        out.feature_names = self.feature_names if X.shape[1] == self.n_features else None
        return out

    def with_side(self, table: TaskTable) -> TaskSet:
        """Return the same tasks with another side table; its extra rows become tasks too."""
        ids, table = read.join_side(self.ids, table, "mean")
        extra = np.full(len(ids) - len(self), self.offsets[-1])
        return self._pick(slice(None), np.concatenate([self.offsets, extra]), ids, table)

    def restore_order(self, values: Any) -> np.ndarray:
        """Bring values (N, ...), one a row of X, into the order of the input rows."""
        values = np.asarray(values)
        if values.shape[:1] != self.row_order.shape:
            raise DataError(f"There are {len(values)} values for {self.row_order.size} rows.")
        if values.size and self.row_order.max() < self.row_order.size:
            out = np.empty_like(values)
            out[self.row_order] = values
            return out
        return values[np.argsort(self.row_order)]  # a subset: some input rows are elsewhere

    def split_tasks(self, sizes: Any, random_state: Any = None) -> tuple[TaskSet, ...]:
        """Split at random into sets of tasks, each in its old order.

        `sizes` are counts or fractions; one number means that many, and the rest. Where they sum
        to less than all, the other tasks are in no set.
        """
        return tuple(map(self.subset, task_parts(len(self), sizes, random_state)))

    def split_points(
        self, train: Any, how: str = "random", random_state: Any = None
    ) -> tuple[TaskSet, TaskSet]:
        """Split the points of every task into support and query; both hold all tasks.

        `train` is a count (at most that many support points a task) or a fraction in (0, 1).
        """
        support = point_mask(self.offsets, train, how, random_state)
        return self.where(support), self.where(~support)

    def where(self, mask: np.ndarray) -> TaskSet:
        """Return the rows of a mask (N,), in the order of `X`, with all tasks."""
        offsets = np.concatenate([[0], np.cumsum(mask)])[self.offsets]
        return self._pick(mask, offsets, self.ids, self.side)

    def to_frame(self, side: bool = False) -> Any:
        """Return task, X, y (and side information) as a table of the input's kind and order.

        Weights are a column "sample_weight".
        """
        return make_frame(columns_of(self, side), self.backend)

    def __repr__(self) -> str:
        sizes, (n_rows, d) = self.sizes, self.X.shape
        spread = f", {sizes.min()} to {sizes.max()} a task" if sizes.size else ""
        side = "" if self.side is None else f", side: {len(self.side.columns)} columns"
        return f"TaskSet({len(self)} tasks, {n_rows} rows{spread}, {d} features{side})"


def _frozen(array: np.ndarray) -> np.ndarray:
    """Return a read-only view, so that the user's own array stays as it was."""
    view = array.view()
    view.flags.writeable = False
    return view
