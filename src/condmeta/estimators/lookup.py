"""Whose weight vector answers for a task: its own model, or tau of its side information."""

from __future__ import annotations

import numpy as np

from condmeta.errors import DataError
from condmeta.estimators import conditioning
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.ids import factorize, positions
from condmeta.tasks.read import join_side, task_name_of
from condmeta.tasks.side_table import read_side_row


class Lookup:
    """What a fitted learner knows, and the weight vectors it gives to tasks."""

    @property
    def gap_(self) -> np.ndarray:
        """Duality gaps of the kept tasks (T,); inner='batch' only."""
        store = self._fitted("_store")
        if store is None or store.gap is None:
            raise AttributeError("gap_ needs keep_tasks=True and inner='batch'.")
        return store.gap

    def _fitted(self, name):
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"This {type(self).__name__} instance is not fitted yet.")
        self._ready()
        return self.__dict__[name]

    def __sklearn_is_fitted__(self) -> bool:
        return "n_tasks_" in self.__dict__

    def _weights_of_one(self, side_info) -> np.ndarray:
        """Return the weight vector that serves when no ids are given."""
        store = self._store
        if side_info is not None:
            return self._theta_of_row(side_info)
        if store is not None and len(store.ids) == 1:
            return store.coef[0]
        raise self._which_task()

    def _which_task(self) -> DataError:
        count = self.n_tasks_ if self._store is None else len(self._store.ids)
        return DataError(
            f"The model knows {count} tasks: say which one each row belongs to by task=, or by "
            "task_column= in the constructor. For a new task give its row as side_info."
        )

    def _weights_of(self, ids, side_info, task_name) -> np.ndarray:
        """Return the weight vectors (T, width) of tasks: their models, or tau."""
        table, points = side_info, None
        if side_info is not None and not isinstance(side_info, TaskTable):
            table, points = self._read_side(side_info, self._map, task_name)
        weights = np.empty((len(ids), self._head.preparation.width))
        found = np.full(len(ids), -1)
        if self._store is not None:
            found = self._store.positions(ids.tolist())
            weights[found >= 0] = self._store.coef[found[found >= 0]]
        fresh = found < 0
        if self._store is not None:
            self._store.refuse_twins(ids[fresh].tolist())
        if side_info is not None and not fresh.all():
            given = table.has(ids) if points is None else positions(points.ids, ids) >= 0
            without_points = np.zeros(len(ids), bool)
            without_points[~fresh] = self._store.sizes[found[~fresh]] == 0
            fresh |= without_points & given
        if fresh.any():
            weights[fresh] = self._theta_of(ids[fresh], table, points)
        return weights

    def _theta_of(self, ids, table, points) -> np.ndarray:
        return self._theta(self._sides_of(ids, table, points))

    def _sides_of(self, ids, table, points):
        """Return Phi of tasks from their side rows and conditioning points alone."""
        if table is not None and self._map.columns_ is not None:
            table = table.align(self._map.columns_)
        given = None
        if self._map.reads_points:
            given = conditioning.no_points(len(ids), len(self._head.preparation.x_mean))
            if points is not None:
                given = conditioning.align_points(points, ids, self._head)
        return self._features(ids, table, given)

    def _theta_of_row(self, side_info) -> np.ndarray:
        return self._theta_of(*self._read_one(side_info))[0]

    def _read_one(self, side_info):
        """Return the id of a new task given alone, its side row, and its conditioning points."""
        if isinstance(side_info, TaskSet):
            if len(side_info) != 1:
                raise DataError(
                    f"side_info holds points of {len(side_info)} tasks for one task: pass those of "
                    "one, or say which task each row belongs to by task=."
                )
            table, points = self._read_side(side_info, self._map, None)
            return side_info.ids, table, points
        # The id None stands for a nameless task, and for its row.
        table = None if side_info is None else read_side_row(side_info, self._side_columns())
        return np.array([None], dtype=object), table, None

    def _sides_for(self, side_info):
        """Return Phi of new tasks, and whether `side_info` was the row of one."""
        *read, is_row = self._read_sides(side_info)
        return self._sides_of(*read), is_row

    def _read_sides(self, side_info):
        """Return ids, side rows and conditioning points, and whether `side_info` was one row."""
        if side_info is None or not _is_table(side_info, self._map.columns_):
            return *self._read_one(side_info), True
        table, points = self._read_side(side_info, self._map, None)
        return table.ids if points is None else points.ids, table, points, False

    def _base_sides(self, ids, table) -> np.ndarray | None:
        """Return what the base reads of tasks (T, k): from their side rows, or as it is known."""
        base = self._head.base
        if base is None:
            return None
        sides = base.sides(ids, table)
        if self._store is not None:
            found = self._store.positions(ids.tolist())
            known = (found >= 0) & ~(np.zeros(len(ids), bool) if table is None else table.has(ids))
            sides[known] = self._store.sides[found[known]]
        return sides

    def _base_sides_given(self, ids, side_info, task_name) -> np.ndarray | None:
        """Return the same from side information as a call gives it."""
        if self._head.base is None:
            return None
        table = side_info
        if side_info is not None and not isinstance(side_info, TaskTable):
            table, _ = self._read_side(side_info, self._map, task_name)
        return self._base_sides(ids, table)

    def _base_sides_of_one(self, side_info) -> np.ndarray | None:
        """Return the same for the task that serves when no ids are given."""
        if self._head.base is None:
            return None
        if side_info is None and self._store is not None:
            return self._store.sides[0]
        ids, table, _ = self._read_one(side_info)
        return self._base_sides(ids, table)[0]

    def _side_columns(self):
        """Return the columns of the side table that `fit` was given."""
        base = self._head.base
        if self._map.columns_ is None and base is not None and base.encoder is not None:
            return base.encoder.columns_
        return self._map.columns_

    def _is_nameless(self, X, task) -> bool:
        """Tell whether a call says nothing about the ids of its rows."""
        return task is None and self.task_column is None and not isinstance(X, TaskSet)

    def _prepare_empty(self, task, side_info):
        """Prepare tasks without points: the ids given, and further ones of the side table."""
        table, points = self._read_side(side_info, self._map, task_name_of(task))
        _, ids = factorize(task)
        if table is not None:
            ids, table = join_side(ids, table, "mean")
        X, y, offsets = conditioning.no_points(len(ids), len(self._head.preparation.x_mean))
        return self._prepare_rows(ids, X, y, offsets, table, points), table


def _is_table(side_info, columns) -> bool:
    """Tell a table of several tasks from the row of one: a dict that has the columns is a row."""
    if isinstance(side_info, (TaskSet, TaskTable)):
        return True
    if isinstance(side_info, dict):
        return columns is not None and not set(columns) <= set(map(str, side_info))
    return hasattr(side_info, "columns") or hasattr(side_info, "column_names")
