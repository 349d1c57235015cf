"""From side information to Phi: tables by id, conditioning points, and what to do without."""

from __future__ import annotations

import numpy as np

from condmeta.errors import DataError
from condmeta.estimators.head import Head, encode_labels
from condmeta.feature_maps import ComposedMap
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.frames import column_names, is_frame
from condmeta.tasks.ids import explain_absent, positions
from condmeta.tasks.side_table import read_side_table


def read_side(side_info, feature_map: ComposedMap, task_name, side_key, feature_names):
    """Return side information as (TaskTable or None, TaskSet of conditioning points or None)."""
    if side_info is None:
        return None, None
    if isinstance(side_info, TaskSet):
        if not feature_map.reads_points:
            raise DataError(
                "side_info holds conditioning points, but no feature map reads points. Use "
                "MeanInput, MeanInputOutput or MeanFourier, or give one row for each task."
            )
        return side_info.side if feature_map.reads_table else None, side_info
    if is_frame(side_info) and feature_map.reads_points and not feature_map.reads_table:
        return None, _long_table(side_info, task_name, side_key, feature_names)
    return read_side_table(side_info, task_name=task_name, side_key=side_key), None


def _long_table(frame, task_name, side_key, feature_names) -> TaskSet:
    key = side_key if side_key is not None else task_name
    names = column_names(frame)
    keys = list(key) if isinstance(key, (tuple, list)) else [key]
    if feature_names is None or key is None or not {*feature_names, *keys} <= set(names):
        raise DataError(
            "A table of conditioning points needs the task column (or side_key=) and the feature "
            f"columns of X. It has {names}. A TaskSet works as well."
        )
    rest = [name for name in names if name not in feature_names and name not in keys]
    if len(rest) > 1:
        raise DataError(
            f"A table of conditioning points has one target column at most. Left over: {rest}."
        )
    target = rest[0] if rest else None
    return TaskSet.from_frame(frame, task=keys, target=target, features=list(feature_names))


def align_points(points: TaskSet, ids, head: Head):
    """Return conditioning points (X, y, offsets) of the tasks `ids`, scaled; absent ones empty.

    Their weights stand behind them, if there are some.
    """
    preparation = head.preparation
    found = positions(points.ids, ids)
    sizes = np.where(found < 0, 0, points.sizes[found])
    chosen = points.subset(found[found >= 0])
    y = chosen.y
    if y is not None:
        y = preparation.target(y if head.classes is None else encode_labels(y, head.classes))
    rows = preparation.for_maps(preparation.scaled(chosen.X), y)
    weight = () if chosen.weight is None else (chosen.weight,)
    return *rows, np.concatenate([[0], np.cumsum(sizes)]), *weight


def no_points(n_tasks: int, n_features: int):
    """Return the conditioning points (X, y, offsets) of tasks that have none."""
    return np.empty((0, n_features)), np.empty(0), np.zeros(n_tasks + 1, np.int64)


def halves(offsets) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split every task: its first n // 2 points condition, the rest trains.

    Returns the mask of the conditioning rows (N,), and the offsets of either part.
    """
    sizes = np.diff(offsets)
    first = sizes // 2
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
    mask = within < np.repeat(first, sizes)
    return (
        mask,
        np.concatenate([[0], np.cumsum(first)]),
        np.concatenate([[0], np.cumsum(sizes - first)]),
    )


def features_of(
    feature_map: ComposedMap, ids, table: TaskTable | None, points, fill, missing_side: str
) -> np.ndarray:
    """Return Phi (T, k) of tasks `ids`; what is missing takes `fill`, or is an error."""
    rows = np.arange(len(ids))
    if feature_map.reads_table:
        present = np.zeros(len(ids), bool) if table is None else table.has(ids)
        if not present.all() and missing_side == "error":
            if ids[0] is None:  # a new task given alone
                raise DataError(
                    "The task has no side information, which the feature map reads. Give its row "
                    "as side_info, or set missing_side='mean'."
                )
            known = [] if table is None else table.ids
            raise DataError(
                explain_absent(known, ids[~present], "side_info")
                + " Give their rows in side_info, or set missing_side='mean'."
            )
        rows = np.flatnonzero(present)
        table = table.take(ids[rows]) if len(rows) else None
    return feature_map.transform(len(ids), table=table, rows=rows, points=points, fill=fill)
