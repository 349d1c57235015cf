"""Read the input of a call: a `TaskSet` alone, or arrays and tables."""

from typing import Any

from condmeta.errors import DataError
from condmeta.tasks.frames import column_names, drop_columns, get_series, is_frame
from condmeta.tasks.taskset import TaskSet


def as_tasks(
    X: Any, y: Any, task: Any, side_info: Any, side_key: Any = None, weight: Any = None
) -> TaskSet:
    """Return the tasks of a call: a `TaskSet` alone, or arrays; `task` may be a column's name."""
    if not isinstance(X, TaskSet):
        if is_frame(X) and isinstance(task, str) and task in column_names(X):
            X, task = drop_columns(X, [task]), get_series(X, task)
        # The learner decides whether tasks may lack a side row.
        return TaskSet.from_arrays(
            X, y, task, side_info=side_info, side_key=side_key, missing_side="mean", weight=weight
        )
    if any(given is not None for given in (y, task, side_info, weight)):
        raise DataError(
            "A TaskSet carries y, task ids, side information and weights: pass it alone."
        )
    return X
