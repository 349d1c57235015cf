"""Tasks in the learner's units: scaled rows, and the features of each task."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condmeta.fitted.predictor import encode_labels
from condmeta.fitted.scales import Scales
from condmeta.tasks import TaskSet
from condmeta.tasks.ids import positions
from condmeta.tasks.points import Points
from condmeta.tasks.splits import first_halves


class Prepared(NamedTuple):
    """Tasks as a learner reads them: rows X (N, width), y (N,), offsets (T+1,), Phi (T, k).

    Rows count weight (N,) times, or once. For a kernel `Phi` is what it reads of T tasks:
    coordinates (T, p), or sets of points.
    """

    ids: np.ndarray
    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    Phi: Any
    weight: np.ndarray | None = None

    @property
    def points(self) -> Points:
        """The rows of all tasks, with their weights."""
        return Points(self.X, self.y, self.offsets, self.weight)


def prepare(
    tasks: TaskSet, points: TaskSet | None, scales: Scales, conditioning: str | None, features,
    classes=None,
) -> Prepared:  # fmt: skip
    """Return the scaled rows and the features of tasks.

    Parameters
    ----------
    tasks, points : TaskSet, and TaskSet or None
        The tasks, and separate points that condition them.
    conditioning : "shared", "split" or None
        None: no map reads points. Otherwise maps read `points`, if given; else the task's own rows:
        all of them, or with "split" its first half, which then does not train.
    features : callable
        `features(ids, side table, points)` returns Phi.
    """
    scaled, y, offsets, weight = scales.scaled(tasks.X), tasks.y, tasks.offsets, tasks.weight
    y, given = scales.target(y), None
    if conditioning is not None:
        if points is not None:
            given = align_points(points, tasks.ids, scales, classes)
        elif conditioning == "split":
            mask, first, rest = first_halves(offsets)
            given = *scales.for_maps(scaled[mask], y[mask]), first
            scaled, y, offsets = scaled[~mask], y[~mask], rest
            if weight is not None:
                given, weight = (*given, weight[mask]), weight[~mask]
        else:
            given = *scales.for_maps(scaled, y), offsets
            given = given if weight is None else (*given, weight)
    Phi = features(tasks.ids, tasks.side, given)
    return Prepared(tasks.ids, scales.with_ones(scaled), y, offsets, Phi, weight)


def raw_points(tasks: TaskSet, scales: Scales) -> Points:
    """Return the points of tasks in units that do not depend on other tasks."""
    X = scales.scaled(tasks.X) if scales.scale == "rows" else scales.transformed(tasks.X)
    return Points(X, tasks.y, tasks.offsets, tasks.weight)


def scaled_rows(raw: Points, scales: Scales) -> Points:
    """Return points of `raw_points` in the learner's units, with the intercept."""
    X = raw.X if scales.scale == "rows" else scales.rescaled(raw.X)
    return raw._replace(X=scales.with_ones(X), y=scales.target(raw.y))


def align_points(points: TaskSet, ids, scales: Scales, classes=None):
    """Return the conditioning points (X, y, offsets) of the tasks `ids`, scaled; absent ones empty.

    Weights follow as a fourth array, if there are some.
    """
    found = positions(points.ids, ids)
    sizes = np.where(found < 0, 0, points.sizes[found])
    chosen = points.subset(found[found >= 0])
    y = chosen.y
    if y is not None:
        y = scales.target(y if classes is None else encode_labels(y, classes))
    rows = scales.for_maps(scales.scaled(chosen.X), y)
    weight = () if chosen.weight is None else (chosen.weight,)
    return *rows, np.concatenate([[0], np.cumsum(sizes)]), *weight


def no_points(n_tasks: int, n_features: int):
    """Return the points (X, y, offsets) of tasks that have none."""
    return np.empty((0, n_features)), np.empty(0), np.zeros(n_tasks + 1, np.int64)
