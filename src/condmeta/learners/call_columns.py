"""Read X of a call: features, ids and side columns, from an array or a frame."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from condmeta.errors import DataError
from condmeta.fitted.columns import Columns
from condmeta.fitted.user_rows import numbers
from condmeta.tasks import TaskSet
from condmeta.tasks.arrays import as_matrix, is_sparse
from condmeta.tasks.frames import (
    backend_of,
    column_names,
    drop_columns,
    eager,
    get_column,
    get_series,
    is_dask,
    is_frame,
    numeric_matrix,
    require_columns,
    select_columns,
)
from condmeta.tasks.ids import as_id_array, factorize
from condmeta.tasks.read import task_name_of
from condmeta.tasks.side_table import as_names, side_from_rows
from condmeta.typing import Ids, Matrix

MOST_DENSE = 1 << 28  # numbers of sparse rows that are made dense: 2 GB


class CallColumns(NamedTuple):
    """The rows of a call: X (N, d), ids or None, columns of side information, columns of X."""

    X: np.ndarray
    task: Any
    side_columns: dict[str, np.ndarray]
    columns: Columns

    def side_info(self, given: Any):
        """Return the side information of the call: what was given, or the side columns."""
        if not self.side_columns:
            return given
        if given is not None:
            raise DataError("Give side information by side_info= or by side_columns=, not by both.")
        if self.task is None:
            return side_from_rows(self.side_columns, np.zeros(len(self.X), int), as_id_array([0]))
        return side_from_rows(self.side_columns, *factorize(self.task))


def read_columns(learner: Any, X: Matrix, task: Ids, known: Columns | None) -> CallColumns:
    """Read X and the ids of its rows, from `task` or from the columns that the learner names.

    Without `known` columns those of X are learned, else they are checked.
    """
    if is_dask(X):
        name = type(learner).__name__
        raise DataError(
            f"X is a Dask DataFrame, and {name} reads rows in memory. To fit on the workers of "
            f"its cluster, call cm.TableModel(cm.{name}(), task=..., target=...).fit(X). To "
            "bring the rows into memory, call X.compute()."
        )
    backend = backend_of(X) if is_frame(X) else None
    keys, sides = as_names(learner.task_column), as_names(learner.side_columns)
    side_columns = {}
    if backend is None and (keys or sides):
        raise DataError(
            f"{type(learner).__name__} has task_column or side_columns set, so X must be a "
            "DataFrame with these columns. Got an array instead. A transformer before it keeps "
            "them with remainder='passthrough' and set_output(transform='pandas')."
        )
    if backend is not None:
        X = eager(X)
        if keys and task is not None:
            raise DataError("Give the task ids by task= or by task_column=, not by both.")
        if _names_columns(task, column_names(X)):
            keys = as_names(task)
            _require_named(X, task)
        require_columns(X, keys, "task")
        require_columns(X, sides, "side_columns")
        if keys:
            task = get_series(X, keys[0]) if len(keys) == 1 else select_columns(X, keys)
        side_columns = {name: get_column(X, name) for name in sides}
        X = drop_columns(X, [*keys, *sides]) if keys or sides else X
    if keys:  # a column of a PyArrow table does not know its name
        name = keys[0] if len(keys) == 1 else tuple(keys)
    else:
        name = None if task is None else task_name_of(task)
    if known is not None:
        matrix = readable(learner, _read_known_matrix(learner, X, known))
        named = known._replace(task_name=name or known.task_name)
        return CallColumns(matrix, task, side_columns, named)
    probe = type(type(learner).__name__, (BaseEstimator,), {})()  # validate_data sets attributes
    matrix = readable(learner, _read_matrix(probe, X, reset=True))
    names = as_tuple(getattr(probe, "feature_names_in_", None))
    columns = Columns(probe.n_features_in_, names, name, backend)
    return CallColumns(matrix, task, side_columns, columns)


def _read_known_matrix(learner: Any, X: Matrix, known: Columns) -> np.ndarray:
    """Return X (N, d) as C-contiguous float64, its columns checked."""
    plain = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and len(X) > 0
    if plain and X.shape[1] == known.n_features and known.names is None:
        return np.ascontiguousarray(X)  # plainly right: a call on a few rows must be quick
    return _read_matrix(learner, X, reset=False)


def _read_matrix(estimator: Any, X: Matrix, reset: bool) -> np.ndarray:
    if is_frame(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return numeric_matrix(X)
    return validate_data(
        estimator, numbers(X), reset=reset, dtype=np.float64, order="C", ensure_all_finite=False,
        accept_sparse="csr",
    )  # fmt: skip


def _require_named(X: Any, task: Ids) -> None:
    """Raise if a text is no column; it may be meant as the id of all rows."""
    try:
        require_columns(X, as_names(task), "task")
    except DataError as error:
        raise DataError(f"{error} task= names a column, or lists the id of each row.") from None


def _names_columns(task: Ids, names: Any) -> bool:
    """Return whether `task` names columns: a string, or a list of column names."""
    if isinstance(task, str):
        return True
    return (
        isinstance(task, list)
        and 0 < len(task) < len(names)
        and all(isinstance(name, str) and name in names for name in task)
    )


def as_tuple(names: Any) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def readable(learner: Any, X: Matrix) -> Any:
    """Return X as the learner reads it: sparse rows are made dense if it cannot use them."""
    if not is_sparse(X):
        return X
    X, (n, d) = as_matrix(X), X.shape
    keeps = getattr(learner, "_keeps_sparse", None)
    if keeps is not None and keeps(d):
        return X
    if n * d > MOST_DENSE:
        raise DataError(
            f"{type(learner).__name__} needs a dense X, and {n} x {d} dense numbers take "
            f"{8e-9 * n * d:.0f} GB. ConditionalRidge with its defaults reads sparse X as it is."
        )
    return X.toarray()


def readable_tasks(learner: Any, tasks: TaskSet) -> TaskSet:
    """Return tasks with rows as the learner reads them."""
    X = readable(learner, tasks.X)
    return tasks if X is tasks.X else tasks.with_rows(X, tasks.y)


def n_rows(X: Matrix) -> int:
    """Return the number of rows of what a user gives as X."""
    return X.shape[0] if hasattr(X, "shape") else len(X)
