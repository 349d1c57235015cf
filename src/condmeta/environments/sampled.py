"""Tasks drawn from an environment: a `TaskSet` that remembers the weights it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks import TaskSet, TaskTable


class SampledTaskSet(TaskSet):
    """Hold sampled tasks together with the truth: the weights of each, and its cluster.

    Subsets, slices and splits keep both aligned with their tasks. A task that is added later, by
    the extra rows of another side table, has NaN weights and cluster -1.

    Parameters
    ----------
    X, y, offsets, ids, side, **names
        As for `TaskSet`.
    weights : array (T, d)
        The weights w of each task.
    clusters : array (T,) of int, optional
        The cluster that each task was drawn from.

    Examples
    --------
    >>> from condmeta.environments import Circle
    >>> tasks = Circle(d=3, n=4).sample(10, random_state=0)
    >>> train, test = tasks.split_tasks((6, 4), random_state=0)
    >>> train.weights.shape, test.split_points(2)[1].weights.shape
    ((6, 3), (4, 3))
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        offsets: Any,
        ids: Sequence[Any],
        side: TaskTable | None = None,
        *,
        weights: Any,
        clusters: Any = None,
        **names: Any,
    ):
        super().__init__(X, y, offsets, ids, side, **names)
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != (len(self), self.n_features):
            raise DataError(
                f"weights must have the shape {(len(self), self.n_features)}, one row a task. "
                f"Got {weights.shape}."
            )
        if clusters is not None:
            clusters = np.asarray(clusters, dtype=np.int64)
            if clusters.shape != (len(self),):
                raise DataError(f"clusters must have {len(self)} entries, one a task.")
        self._set_truth(weights, clusters)

    def _set_truth(self, weights: np.ndarray, clusters: np.ndarray | None) -> None:
        self.weights = weights.view()
        self.weights.flags.writeable = False
        self.clusters = None if clusters is None else clusters.view()
        if self.clusters is not None:
            self.clusters.flags.writeable = False

    def _pick(self, rows: Any, offsets: np.ndarray, ids: np.ndarray, side: Any) -> SampledTaskSet:
        out = super()._pick(rows, offsets, ids, side)
        if ids is self.ids:
            out._set_truth(self.weights, self.clusters)
            return out
        index = dict(zip(self.ids, range(len(self)), strict=True))
        at = np.array([index.get(i, -1) for i in ids], dtype=np.int64)
        weights = np.where((at < 0)[:, None], np.nan, self.weights[at])
        clusters = None if self.clusters is None else np.where(at < 0, -1, self.clusters[at])
        out._set_truth(weights, clusters)
        return out

    def __repr__(self) -> str:
        return f"Sampled{super().__repr__()}"
