"""Read the input of a call: a `TaskSet` alone, or arrays and tables."""

from typing import Any

from condmeta.errors import DataError
from condmeta.tasks.frames import (
    column_names,
    drop_columns,
    eager,
    get_series,
    is_frame,
    require_columns,
)
from condmeta.tasks.taskset import TaskSet


def require_data(X: Any, y: Any, who: str) -> None:
    """Raise if the data of a call are a model, or lack the target."""
    remedy = "pass X, y and task, or a TaskSet; of a TableModel, model.read_tasks(table, side_info)"
    if hasattr(X, "predict"):
        raise DataError(f"{who} takes data, not a {type(X).__name__}: {remedy}.")
    if isinstance(X, TaskSet):
        if X.y is None:
            raise DataError(f"{who} needs the targets of the tasks: the TaskSet has none.")
    elif y is None:
        raise DataError(f"{who} needs the target y: {remedy}.")


def as_tasks(
    X: Any, y: Any, task: Any, side_info: Any, side_key: Any = None, weight: Any = None,
    time: Any = None,
) -> TaskSet:  # fmt: skip
    """Return the tasks of a call: a `TaskSet` alone, or arrays.

    `task` and `time` may be the names of columns.
    """
    if not isinstance(X, TaskSet):
        if is_frame(X) and isinstance(task, str) and task in column_names(X):
            X, task = drop_columns(X, [task]), get_series(X, task)
        X, time = take_time(X, time)
        # The learner decides whether tasks may lack a side row.
        return TaskSet.from_arrays(
            X, y, task, side_info=side_info, side_key=side_key, missing_side="mean", weight=weight,
            time=time,
        )  # fmt: skip
    if any(given is not None for given in (y, task, side_info, weight, time)):
        raise DataError(
            "A TaskSet carries y, task ids, side information, weights and times: pass it alone."
        )
    return X


def take_time(X: Any, time: Any) -> tuple[Any, Any]:
    """Return X without the column that `time` names, and this column; else both as they are."""
    if not isinstance(time, str):
        return X, time
    if not is_frame(X):
        raise DataError(f"time={time!r} names a column, and X is no table: give the times.")
    X = eager(X)
    require_columns(X, [time], "time")
    return drop_columns(X, [time]), get_series(X, time)
