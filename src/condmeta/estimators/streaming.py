"""Learners that take one task after another, and may go on with further ones."""

from __future__ import annotations

import numpy as np

from condmeta.errors import DataError
from condmeta.estimators.base import Prepared
from condmeta.estimators.row_weights import refuse
from condmeta.estimators.serving import atomic
from condmeta.feature_maps import ComposedMap
from condmeta.tasks.ids import show_id


class Incremental:
    """Learning by `_advance(state, data)`: tasks in turn, from a state or, with None, from none.

    It leaves `state` as it is, and sets `_state` and the map.
    """

    def _learn(self, data: Prepared) -> None:
        self._advance(None, data)
        if not self.keep_tasks:
            self._seen = set(data.ids.tolist())


class Streamed(Incremental):
    """A learner that goes on learning from further tasks."""

    @atomic
    def partial_fit(self, X, y=None, *, task=None, side_info=None, classes=None, **unknown):
        """Go on learning the map with further tasks, each seen once and whole.

        The first call freezes scales and encodings. Only the map is learned: models of tasks that
        an earlier `fit` kept stay as they are, and the new tasks get none (see `update`).
        `task=None` is one more nameless task. Equal to one `fit` on all tasks, bit for bit in the
        map and `theta_for`, where the first call leaves nothing to freeze: scale "none" or "rows",
        maps without fitted state, and steps that do not come from the data.

        Parameters
        ----------
        X, y, task, side_info : as in `fit`
        classes : (2,) array, optional
            For classifiers, both classes, if the first call may not hold them.

        Returns
        -------
        self
        """
        refuse(f"{type(self).__name__}.partial_fit", unknown)
        first = not self.__sklearn_is_fitted__()
        if first:
            self._start()
            self._classes_given(classes)
        tasks, points = self._read(X, y, task, side_info, reset=first)
        named = [] if self._is_nameless(X, task) else tasks.ids[tasks.sizes > 0].tolist()
        seen = self._seen if "_seen" in self.__dict__ else self._seen_in_fit()
        again = [known for known in named if known in seen]
        if again:
            raise DataError(
                f"Task {show_id(again[0])} was seen before ({len(again)} such tasks in this call). "
                "partial_fit takes each task once and whole; to add points to a known task use "
                "update."
            )
        if first:
            self._freeze(tasks, points)
            self._store, self.n_tasks_ = None, 0
        tasks = tasks.subset(np.flatnonzero(tasks.sizes > 0))
        self._advance(None if first else self._past(), self._prepare(tasks, points))
        self.n_tasks_ += len(tasks)
        if not first and isinstance(self._map, ComposedMap):
            self._map = self._map.having_seen(tasks.side)
        # Last, and in place: a copy for each call would make a stream quadratic.
        seen.update(named)
        self._seen = seen
        return self

    def _past(self):
        """Return the state that earlier calls left."""
        return self._state

    def _seen_in_fit(self) -> set:
        store = self.__dict__.get("_store")
        return set() if store is None else set(store.ids[store.sizes > 0].tolist())

    def _classes_given(self, classes) -> None:
        """Regressors have no classes."""
        if classes is not None:
            raise DataError(f"{type(self).__name__} has no classes: leave 'classes' out.")
