"""Whose weight vector answers for a task: its own model, or tau of its side information."""

from __future__ import annotations

import numpy as np

from condmeta.errors import DataError
from condmeta.estimators import conditioning
from condmeta.estimators.task_model import user_vector
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.side_table import read_side_row


class Lookup:
    """What a fitted learner knows, and the weight vectors it gives to tasks."""

    @property
    def M_(self) -> np.ndarray:  # noqa: N802
        """M (width, k) in the learner's units."""
        return self._fitted("_weights")[:-1].T

    @property
    def b_(self) -> np.ndarray:
        """b (width,) in the learner's units."""
        return self._fitted("_weights")[-1]

    @property
    def theta_mean_(self) -> np.ndarray:
        """Tau at the mean training Phi, in the user's units (intercept last)."""
        mean = self._fitted("_phi_mean")
        return user_vector(self._head.preparation, self._theta(mean))

    @property
    def gap_(self) -> np.ndarray:
        """Duality gaps of the kept tasks (T,); inner='batch' only."""
        store = self._fitted("_store")
        if store is None or store.gap is None:
            raise AttributeError("gap_ needs keep_tasks=True and inner='batch'.")
        return store.gap

    def _fitted(self, name):
        if name not in self.__dict__:
            raise AttributeError(f"This {type(self).__name__} instance is not fitted yet.")
        return self.__dict__[name]

    def __sklearn_is_fitted__(self) -> bool:
        return "_weights" in self.__dict__

    def _weights_of_one(self, side_info) -> np.ndarray:
        """Return the weight vector that serves when no ids are given."""
        store = self._store
        if side_info is not None:
            return self._theta_of_row(side_info)
        if store is not None and len(store.ids) == 1:
            return store.coef[0]
        count = self.n_tasks_ if store is None else len(store.ids)
        raise DataError(
            f"The model knows {count} tasks: say which one each row belongs to by task=, or by "
            "task_column= in the constructor. For a new task give its row as side_info."
        )

    def _weights_of(self, ids, side_info, task_name) -> np.ndarray:
        """Return the weight vectors (T, width) of tasks: their models, or tau."""
        table, points = side_info, None
        if side_info is not None and not isinstance(side_info, TaskTable):
            table, points = self._read_side(side_info, self._map, task_name)
        weights = np.empty((len(ids), self._weights.shape[1]))
        found = np.full(len(ids), -1)
        if self._store is not None:
            found = self._store.positions(ids.tolist())
            weights[found >= 0] = self._store.coef[found[found >= 0]]
        fresh = found < 0
        if table is not None and (~fresh).any():
            no_points = np.zeros(len(ids), bool)
            no_points[~fresh] = self._store.sizes[found[~fresh]] == 0
            fresh |= no_points & table.has(ids)
        if fresh.any():
            weights[fresh] = self._theta_of(ids[fresh], table, points)
        return weights

    def _theta_of(self, ids, table, points) -> np.ndarray:
        if table is not None and self._map.columns_ is not None:
            table = table.align(self._map.columns_)
        given = None
        if self._map.reads_points:
            empty = (
                np.empty((0, self.n_features_in_)),
                np.empty(0),
                np.zeros(len(ids) + 1, np.int64),
            )
            prep = self._head.preparation
            given = empty if points is None else conditioning.align_points(points, ids, prep)
        return self._theta(self._features(ids, table, given))

    def _theta_of_row(self, side_info) -> np.ndarray:
        if isinstance(side_info, TaskSet):
            return self._theta_of(side_info.ids[:1], None, side_info)[0]
        table = None if side_info is None else read_side_row(side_info, self._map.columns_)
        return self._theta_of(nameless(), table, None)[0]

    def _reads_ids(self) -> bool:
        return getattr(self, "task_column", None) is not None


def nameless() -> np.ndarray:
    """Return the id of a new task that has none, as the one id of an array."""
    return np.array([None], dtype=object)
