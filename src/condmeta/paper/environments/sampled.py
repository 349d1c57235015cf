"""Tasks drawn from an environment: a `TaskSet` with the true weights of each task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks import TaskSet, TaskTable


class SampledTaskSet(TaskSet):
    """Hold sampled tasks together with the true weights and the cluster of each task.

    Subsets, slices and splits keep them aligned with their tasks. A task that is added later,
    because another side table has more rows, gets NaN weights and cluster -1.

    Parameters
    ----------
    X, y, offsets, ids, side, **names
        As for `TaskSet`.
    weights : array (T, d)
        The weights w of each task.
    clusters : array (T,) of int, optional
        The cluster that each task was drawn from.
    centers : array (T, d), optional
        The centre of the inputs of each task.
    noise : array (T,), optional
        The standard deviation of the label noise of each task.

    Examples
    --------
    >>> from condmeta.environments import Circle
    >>> tasks = Circle(d=3, n=4).sample(10, random_state=0)
    >>> train, test = tasks.split_tasks((6, 4), random_state=0)
    >>> train.weights.shape, test.split_points(2)[1].weights.shape
    ((6, 3), (4, 3))
    """

    weights: np.ndarray
    clusters: np.ndarray | None
    centers: np.ndarray | None
    noise: np.ndarray | None

    def __init__(
        self, X: np.ndarray, y: np.ndarray, offsets: np.ndarray, ids: Sequence[Any],
        side: TaskTable | None = None, *, weights: np.ndarray, clusters: np.ndarray | None = None,
        centers: np.ndarray | None = None, noise: np.ndarray | None = None, **names: Any,
    ):  # fmt: skip
        super().__init__(X, y, offsets, ids, side, **names)
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != (len(self), self.n_features):
            raise DataError(
                f"weights must have the shape {(len(self), self.n_features)}, one row per task. "
                f"Got {weights.shape}."
            )
        truth = {"weights": weights}
        for name, values, kind in (
            ("clusters", clusters, np.int64),
            ("centers", centers, np.float64),
            ("noise", noise, np.float64),
        ):
            truth[name] = None if values is None else np.asarray(values, dtype=kind)
            if truth[name] is not None and truth[name].shape[:1] != (len(self),):
                raise DataError(f"{name} must have {len(self)} entries, one for each task.")
        self._set_truth(truth)

    def _set_truth(self, truth: dict[str, np.ndarray | None]) -> None:
        known = {name: None if part is None else read_only(part) for name, part in truth.items()}
        self.weights, self.clusters = known["weights"], known["clusters"]
        self.centers, self.noise = known["centers"], known["noise"]

    def _select(self, rows: Any, offsets: np.ndarray, ids: np.ndarray, side: Any) -> SampledTaskSet:
        out = super()._select(rows, offsets, ids, side)
        truth = {name: getattr(self, name) for name in ("weights", "clusters", "centers", "noise")}
        if ids is not self.ids:
            index = dict(zip(self.ids, range(len(self)), strict=True))
            at = np.array([index.get(i, -1) for i in ids], dtype=np.int64)
            truth = {name: _taken(part, at) for name, part in truth.items()}
        out._set_truth(truth)
        return out

    def __repr__(self) -> str:
        return f"Sampled{super().__repr__()}"


def _taken(part: np.ndarray | None, at: np.ndarray) -> np.ndarray | None:
    """Return the rows at some positions; where these are -1, NaN, or -1 for integers."""
    if part is None:
        return None
    unknown = -1 if part.dtype.kind == "i" else np.nan
    return np.where((at < 0).reshape(-1, *[1] * (part.ndim - 1)), unknown, part[at])


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view
