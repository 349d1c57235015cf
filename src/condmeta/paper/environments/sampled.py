"""Tasks drawn from an environment: a `TaskSet` with the true weights of each task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks import TaskSet, TaskTable


class SampledTaskSet(TaskSet):
    """Hold sampled tasks together with the true weights and the cluster of each task.

    Subsets, slices and splits keep both aligned with their tasks. A task that is added later,
    because another side table has more rows, gets NaN weights and cluster -1.

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
    >>> from condmeta.paper.environments import Circle
    >>> tasks = Circle(d=3, n=4).sample(10, random_state=0)
    >>> train, test = tasks.split_tasks((6, 4), random_state=0)
    >>> train.weights.shape, test.split_points(2)[1].weights.shape
    ((6, 3), (4, 3))
    """

    def __init__(
        self, X: Any, y: Any, offsets: Any, ids: Sequence[Any], side: TaskTable | None = None, *,
        weights: Any, clusters: Any = None, **names: Any,
    ):  # fmt: skip
        super().__init__(X, y, offsets, ids, side, **names)
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != (len(self), self.n_features):
            raise DataError(
                f"weights must have the shape {(len(self), self.n_features)}, one row per task. "
                f"Got {weights.shape}."
            )
        if clusters is not None:
            clusters = np.asarray(clusters, dtype=np.int64)
            if clusters.shape != (len(self),):
                raise DataError(f"clusters must have {len(self)} entries, one for each task.")
        self._set_truth(weights, clusters)

    def _set_truth(self, weights: np.ndarray, clusters: np.ndarray | None) -> None:
        self.weights = read_only(weights)
        self.clusters = None if clusters is None else read_only(clusters)

    def _select(self, rows: Any, offsets: np.ndarray, ids: np.ndarray, side: Any) -> SampledTaskSet:
        out = super()._select(rows, offsets, ids, side)
        weights, clusters = self.weights, self.clusters
        if ids is not self.ids:
            index = dict(zip(self.ids, range(len(self)), strict=True))
            at = np.array([index.get(i, -1) for i in ids], dtype=np.int64)
            weights = np.where((at < 0)[:, None], np.nan, weights[at])
            clusters = None if clusters is None else np.where(at < 0, -1, clusters[at])
        out._set_truth(weights, clusters)
        return out

    def __repr__(self) -> str:
        return f"Sampled{super().__repr__()}"


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view
