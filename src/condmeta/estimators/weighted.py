"""Learners that take weights of rows."""

from __future__ import annotations

from condmeta.estimators.serving import atomic


class Weighted:
    """A learner whose `fit` takes weights, which count as repetition."""

    _weighs = True

    @atomic
    def fit(self, X, y=None, *, task=None, side_info=None, sample_weight=None):
        """Learn the map from many tasks, then every task's model from the final map.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The points of all tasks, rows in any order.
        y : (N,) array
        task : (N,) ids, optional
            The task of each row: strings, integers, dates, tuples; the name of a column of X; None
            means one task.
        side_info : table keyed by task id, optional
            One raw row for each task (see `TaskTable`), or a `TaskSet` of conditioning points. Ids
            without rows in X are kept as tasks without points.
        sample_weight : (N,) array, optional
            How often each row counts: 2 is the row twice, 0 is no row.

        Returns
        -------
        self
        """
        return self._fit(X, y, task, side_info, sample_weight)
