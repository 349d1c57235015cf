"""Tasks in the learner's units: scaled rows, and the features of each task."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.label_codes import encode_labels
from condmeta.fitted.scales import FARTHEST, LARGEST, Scales
from condmeta.tasks import TaskSet
from condmeta.tasks.arrays import is_sparse
from condmeta.tasks.checks import task_of_row
from condmeta.tasks.ids import positions
from condmeta.tasks.messages import name_task
from condmeta.tasks.points import Points
from condmeta.tasks.splits import first_halves
from condmeta.tasks.weights import masses


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
    classes=None, farthest: float = LARGEST,
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
    farthest : float
        See `Scales.find_huge`.
    """
    scaled, y = scaled_tasks(tasks, scales, farthest)
    offsets, weight, given = tasks.offsets, tasks.weight, None
    if conditioning is not None:
        if points is not None:
            given = align_points(points, tasks.ids, scales, classes)
        elif conditioning == "split":
            mask, first, rest = first_halves(offsets)
            given = *scales.for_maps(scaled[mask], y[mask]), first
            scaled, y, offsets = scaled[~mask], y[~mask], rest
            if weight is not None:
                given, weight = (*given, masses(weight[mask])), weight[~mask]
        else:
            given = *scales.for_maps(scaled, y), offsets
            given = given if weight is None else (*given, masses(weight))
    Phi = features(tasks.ids, tasks.side, given)
    return Prepared(tasks.ids, scales.with_ones(scaled), y, offsets, Phi, weight)


def scaled_tasks(tasks: TaskSet, scales: Scales, farthest: float = LARGEST):
    """Return the scaled rows and targets of tasks, without the intercept column."""
    X = transformed_rows(tasks, scales, farthest)
    return scales.rescaled(X), scales.target(tasks.y)


def raw_points(tasks: TaskSet, scales: Scales, farthest: float = LARGEST) -> Points:
    """Return the points of tasks in units that do not depend on other tasks."""
    X, y, units = transformed_rows(tasks, scales, farthest), tasks.y, scales.units
    X = scales.rescaled(X) if scales.scale == "rows" else X
    return Points(_times(X, 1 / units[:-1]), y / units[-1], tasks.offsets, tasks.weight)


def _times(X, factor) -> np.ndarray:
    """Return the columns of X, each times its factor (d,)."""
    if (factor == 1).all():
        return X
    return X.times(factor) if is_sparse(X) else X * factor


def transformed_rows(tasks: TaskSet, scales: Scales, farthest: float = LARGEST) -> np.ndarray:
    """Return the transformed rows of tasks, or raise as `check_size`."""
    X, of_row = scales.transformed(tasks.X), task_of_row((tasks.ids, tasks.offsets))
    check_size(X, tasks.y, scales, tasks.feature_names, of_row, farthest)
    return X


def check_size(X, y, scales: Scales, names, of_row=None, farthest: float = FARTHEST) -> None:
    """Raise if a number is so far from the training rows that its square is of no use.

    X (N, d) are transformed rows, `names` the columns of X or None; `of_row(i)` is the task of row
    i, which may be None.
    """
    row, column = scales.find_huge(X, y, farthest)
    if row is None:
        return
    value, where, unit, remedy = y[row], "y", scales.y_scale, "Correct the value, drop the row"
    if column is not None:
        value, where, unit = X[row, column], f"feature {column} of X", scales.x_scale[column]
        if names is not None:
            where = f"column {scales.names(names)[column]!r} of X"
    task = None if of_row is None else of_row(row)
    begin = f"Row {row}" if task is None else name_task(task)
    begin += f" has {value:g} in {where}, "
    if column is not None and abs(value / unit) < LARGEST:
        raise DataError(
            f"{begin}where rows are usually {scales.usual[column]:.3g} from "
            f"{scales.x_mean[column]:.3g}: it is too far from earlier rows for its square to be "
            f"added to theirs. {remedy}, or fit with more rows like it."
        )
    remedy += ", use scale='standard'" if column is not None and scales.scale == "none" else ""
    raise DataError(
        f"{begin}which is learned in units of {unit:.3g}: it is too large to be squared. "
        f"{remedy}, or give all rows in another unit."
    )


def user_points(raw: Points, scales: Scales) -> Points:
    """Return points of `raw_points` in the user's units."""
    units = scales.units
    return raw._replace(X=_times(raw.X, units[:-1]), y=raw.y * units[-1])


def scaled_rows(raw: Points, scales: Scales) -> Points:
    """Return points of `raw_points` in the learner's units, with the intercept."""
    raw = user_points(raw, scales)
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
    weight = () if chosen.weight is None else (masses(chosen.weight),)
    return *rows, np.concatenate([[0], np.cumsum(sizes)]), *weight


def no_points(n_tasks: int, n_features: int):
    """Return the points (X, y, offsets) of tasks that have none."""
    return np.empty((0, n_features)), np.empty(0), np.zeros(n_tasks + 1, np.int64)
