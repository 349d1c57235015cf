"""Side information of a call: a row for each task, or separate conditioning points."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier

from condmeta.errors import DataError
from condmeta.fitted.columns import Columns
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.side_reader import SideReader
from condmeta.learners.checks import check_features, check_weights, drop_weightless
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.frames import column_names, is_frame
from condmeta.tasks.ids import as_id_array
from condmeta.tasks.side_table import read_side_row, read_side_table
from condmeta.typing import Frame, SideInfo

NAMELESS = as_id_array([None])  # the id of a task that a call gives without one


def side_reader(learner: Any) -> SideReader:
    """Return a reader of side information for a learner that is not fitted."""
    kernel = getattr(learner, "kernel", None)
    return SideReader.of(learner.feature_map, learner.missing_side, kernel)


def read_sides(learner: Any, fitted: Fitted, side_info: SideInfo):
    """Read side information: ids, side rows, conditioning points, and whether it was one row."""
    if side_info is None or not _is_table(side_info, fitted.reader.columns):
        return NAMELESS, *read_one_side(learner, fitted, side_info), True
    table, points = read_side(learner, side_info, fitted.reader.map, fitted.columns)
    return table.ids if points is None else points.ids, table, points, False


def read_side(learner: Any, side_info: SideInfo, fmap: Any, columns: Columns):
    """Return side information as (TaskTable or None, TaskSet of conditioning points or None)."""
    if side_info is None:
        return None, None
    if isinstance(side_info, TaskSet):
        if not fmap.reads_points:
            raise DataError(
                "side_info holds conditioning points, but no feature map reads points. Use "
                "MeanInput, MeanInputOutput or MeanFourier, or give one row for each task."
            )
        table, points = side_info.side if fmap.reads_table else None, side_info
    elif fmap.reads_points and not fmap.reads_table and is_frame(side_info):
        table, points = None, _long_table(side_info, columns, learner.side_key)
    else:
        key = learner.side_key
        return read_side_table(side_info, task_name=columns.task_name, side_key=key), None
    if getattr(learner, "base", None) is not None and is_classifier(learner):
        raise DataError(
            "base= does not work with conditioning points in side_info. Use base=None, or let "
            "the feature map read the task's own points."
        )
    check_features(learner, points, columns, "side_info")
    return table, drop_weightless(check_weights(learner, points))


def _long_table(frame: Frame, columns: Columns, side_key: Any) -> TaskSet:
    """Return a table of conditioning points as tasks."""
    key = side_key if side_key is not None else columns.task_name
    names, features = column_names(frame), columns.names
    keys = list(key) if isinstance(key, (tuple, list)) else [key]
    if features is None or key is None or not {*features, *keys} <= set(names):
        raise DataError(
            "A table of conditioning points needs the task column (or side_key=) and the feature "
            f"columns of X. It has {names}. A TaskSet works as well."
        )
    rest = [name for name in names if name not in features and name not in keys]
    if len(rest) > 1:
        raise DataError(
            f"A table of conditioning points has one target column at most. Left over: {rest}."
        )
    target = rest[0] if rest else None
    return TaskSet.from_frame(frame, task=keys, target=target, features=list(features))


def read_one_side(learner: Any, fitted: Fitted, side_info: SideInfo):
    """Return the side row and the conditioning points of one task without an id."""
    if not isinstance(side_info, TaskSet):
        if side_info is None:
            return None, None
        return read_side_row(side_info, _side_columns(fitted)), None
    if len(side_info) != 1:
        raise DataError(
            f"side_info holds points of {len(side_info)} tasks, and all rows of X are one task. "
            "Pass the points of one task, or the task of each row as task=."
        )
    table, points = read_side(learner, side_info, fitted.reader.map, fitted.columns)
    if table is not None:
        known = table.take(points.ids[table.has(points.ids)])
        table = TaskTable.trusted(NAMELESS, known.data, known.backend) if known.n_tasks else None
    parts = points.X, points.y, points.offsets, NAMELESS
    return table, TaskSet.trusted(*parts, weight=points.weight)


def _side_columns(fitted: Fitted):
    """Return the columns of the side table that `fit` was given."""
    shared = fitted.predictor.shared
    if fitted.reader.columns is None and shared is not None and shared.encoder is not None:
        return shared.encoder.columns_
    return fitted.reader.columns


def _is_table(side_info: SideInfo, columns: Any) -> bool:
    """Return whether side information is a table of tasks; a dict that has the columns is a row."""
    if isinstance(side_info, (TaskSet, TaskTable)):
        return True
    if isinstance(side_info, dict):
        return columns is not None and not set(columns) <= set(map(str, side_info))
    return hasattr(side_info, "columns") or hasattr(side_info, "column_names")
