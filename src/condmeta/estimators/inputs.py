"""From what a user passes (arrays, frames, ids, columns) to checked arrays and a TaskSet."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import column_or_1d, validate_data

from condmeta.errors import DataError
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.frames import (
    backend_of,
    column_names,
    drop_columns,
    eager,
    get_column,
    get_series,
    is_frame,
    numeric_matrix,
    require_columns,
    select_columns,
)
from condmeta.tasks.ids import factorize
from condmeta.tasks.read import task_name_of
from condmeta.tasks.side_table import as_names, side_from_rows

# What scikit-learn's routing hands to every method that takes ids, without a request.
METADATA = {"task": True, "side_info": True}


class Rows(NamedTuple):
    """The rows of one call: X (N, d), their ids or None, their side columns, the task's name."""

    X: np.ndarray
    task: Any
    side_columns: dict[str, np.ndarray]
    task_name: Any
    backend: str | None

    def side_table(self) -> TaskTable:
        """Return the side columns as a table, one row for each task."""
        return side_from_rows(self.side_columns, *factorize(self.task))


def read_rows(estimator, X, task, *, reset: bool) -> Rows:
    """Read X and the ids of its rows, from `task` or from the columns that the learner names.

    With `reset` the number and the names of the features are learnt, else they are checked.
    """
    backend = backend_of(X) if is_frame(X) else None
    keys, sides = as_names(estimator.task_column), as_names(estimator.side_columns)
    side_columns = {}
    if backend is None and (keys or sides):
        raise DataError(
            f"{type(estimator).__name__} has task_column or side_columns set, so X must be a "
            "DataFrame with these columns. Got an array instead."
        )
    if backend is not None:
        X = eager(X)
        if keys and task is not None:
            raise DataError("Give the task ids by task= or by task_column=, not by both.")
        if _names_columns(task, column_names(X)):
            keys = as_names(task)
        require_columns(X, keys, "task")
        require_columns(X, sides, "side_columns")
        if keys:
            task = get_series(X, keys[0]) if len(keys) == 1 else select_columns(X, keys)
        side_columns = {name: get_column(X, name) for name in sides}
        X = drop_columns(X, [*keys, *sides])
    name = None if task is None else task_name_of(task)
    return Rows(read_matrix(estimator, X, reset), task, side_columns, name, backend)


def read_matrix(estimator, X, reset: bool) -> np.ndarray:
    """Return X (N, d) as C-contiguous float64, its features learnt or checked."""
    if is_frame(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return numeric_matrix(X)
    return validate_data(
        estimator, X, reset=reset, dtype=np.float64, order="C", ensure_all_finite=False
    )


def read_target(y, n_rows: int, owner: str) -> np.ndarray:
    """Return y (N,), of any type, or say why it does not fit X."""
    if y is None:
        raise DataError(f"{owner} requires y to be passed, but the target y is None.")
    y = column_or_1d(y, warn=True)
    if len(y) != n_rows:
        raise DataError(f"X has {n_rows} rows and y has {len(y)}: they must be equally long.")
    return y


def check_taskset(estimator, tasks: TaskSet, others, reset: bool) -> None:
    """Learn or check the features of a TaskSet given in place of X."""
    if any(other is not None for other in others):
        raise DataError("A TaskSet carries y and the task ids: pass it alone, without y and task.")
    if reset:
        estimator.n_features_in_ = tasks.n_features
        estimator.__dict__.pop("feature_names_in_", None)
        if tasks.feature_names is not None:
            estimator.feature_names_in_ = np.array(tasks.feature_names, dtype=object)
        return
    if tasks.n_features != estimator.n_features_in_:
        raise DataError(
            f"X has {tasks.n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    expected = getattr(estimator, "feature_names_in_", tasks.feature_names)
    if tasks.feature_names is not None and list(expected) != list(tasks.feature_names):
        raise DataError(
            "The feature names should match those that were passed during fit: "
            f"{list(expected)}. Got {list(tasks.feature_names)} instead."
        )


def _names_columns(task, names) -> bool:
    """Tell column names from ids: a string, or a list of column names shorter than the table."""
    if isinstance(task, str):
        return True
    return (
        isinstance(task, list)
        and 0 < len(task) < len(names)
        and all(isinstance(name, str) and name in names for name in task)
    )
