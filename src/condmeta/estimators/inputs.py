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
from condmeta.tasks.ids import as_id_array, factorize
from condmeta.tasks.numbers import to_floats
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
        """Return the side columns as a table, one row for each task; without ids one task, 0."""
        if self.task is None:
            return side_from_rows(self.side_columns, np.zeros(len(self.X), int), as_id_array([0]))
        return side_from_rows(self.side_columns, *factorize(self.task))

    def side_info(self, given):
        """Return the side information of the call: what was given, or the side columns."""
        if not self.side_columns:
            return given
        if given is not None:
            raise DataError("Give side information by side_info= or by side_columns=, not by both.")
        return self.side_table()


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
    if keys:  # a column of a PyArrow table does not know its name
        name = keys[0] if len(keys) == 1 else tuple(keys)
    else:
        name = None if task is None else task_name_of(task)
    return Rows(read_matrix(estimator, X, reset), task, side_columns, name, backend)


def read_matrix(estimator, X, reset: bool) -> np.ndarray:
    """Return X (N, d) as C-contiguous float64, its features learnt or checked."""
    if not reset and _fits(estimator, X):
        return np.ascontiguousarray(X)
    if is_frame(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return numeric_matrix(X)
    return validate_data(
        estimator, numbers(X), reset=reset, dtype=np.float64, order="C", ensure_all_finite=False
    )


def _fits(estimator, X) -> bool:
    """Tell whether X is plainly right, so that a call on a few rows is not checked for long."""
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and len(X) > 0
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
    )


def numbers(X):
    """Return an array of objects as floats, or name the column that holds no real numbers.

    Whatever is numeric already, or no array or list of rows at all, is handed on as it is.
    """
    if not isinstance(X, (np.ndarray, list, tuple)):
        return X
    try:
        array = np.asarray(X)
        # A list with a text among its numbers would become an array of texts.
        array = array if array.dtype.kind != "U" or X is array else np.asarray(X, dtype=object)
    except ValueError:  # rows of unequal length
        return X
    if array.ndim != 2 or array.dtype.kind not in "OUSc":
        return X
    out = np.empty(array.shape)
    for j, column in enumerate(array.T):
        try:
            out[:, j] = to_floats(column, f"Feature {j} of X")
        except DataError as sentence:
            # scikit-learn's own words go with ours: its users look for them.
            if array.dtype.kind == "c":
                raise DataError(f"{sentence} (Complex data not supported)") from None
            if "objects (of type" in str(sentence):
                raise TypeError(f"{sentence} (argument must be a string or a number)") from None
            raise
    return out


def read_target(y, n_rows: int, owner: str) -> np.ndarray:
    """Return y (N,), of any type, or say why it does not fit X."""
    if y is None:
        raise DataError(f"{owner} requires y to be passed, but the target y is None.")
    if getattr(getattr(y, "dtype", None), "kind", "") == "c":
        raise DataError("y holds complex numbers; y must be real. (Complex data not supported)")
    if type(y) is not np.ndarray or y.ndim != 1:
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
    else:
        check_features(estimator, tasks, "X")


def check_features(estimator, tasks: TaskSet, what: str) -> None:
    """Say so when a TaskSet has other features than the fit."""
    if tasks.n_features != estimator.n_features_in_:
        raise DataError(
            f"{what} has {tasks.n_features} features, but {type(estimator).__name__} is expecting "
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
