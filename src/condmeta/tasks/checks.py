"""Find NaN and infinity in the rows of tasks, and name their task and column."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.messages import name_task, show_ids
from condmeta.text import pluralize


def check_finite(
    X: np.ndarray | None, y: np.ndarray | None = None, tasks: Any = None, *,
    feature_names: Sequence[str] | None = None, target_name: str | None = None,
) -> None:  # fmt: skip
    """Raise a DataError that names task and column if X or y has NaN or infinity.

    Parameters
    ----------
    X : (N, d) float array or None
    y : (N,) float array, names of classes, or None
    tasks : (ids, offsets), row-aligned ids (N,), a function from row to id, or None
        The tasks of the rows; None leaves the task out of the message.
    feature_names, target_name : optional
        Names for the message.

    Examples
    --------
    >>> check_finite(np.array([[0.0], [np.nan]]), tasks=["a", "b"])
    Traceback (most recent call last):
    condmeta.errors.DataError: Task 'b' has NaN in feature 0 of X: fill it or drop the row.
    """
    if X is not None and hasattr(X, "nnz"):
        _check_sparse(X, tasks, feature_names)
    elif X is not None and not _all_finite(X):
        row, column = (int(i) for i in np.argwhere(~np.isfinite(X))[0])
        known = feature_names is not None
        named = f"column {feature_names[column]!r}" if known else f"feature {column}"
        raise DataError(_sentence(X, row, X[row, column], f"{named} of X", tasks, feature_names))
    if y is not None and y.dtype != object and not _all_finite(y):
        row = int(np.argmax(~np.isfinite(y)))
        named = "y" if target_name is None else f"the target {target_name!r}"
        raise DataError(_sentence(y[:, None], row, y[row], named, tasks))


def _check_sparse(X: Any, tasks: Any, feature_names: Sequence[str] | None) -> None:
    """Raise for the first entry of sparse rows that is not finite."""
    bad = np.flatnonzero(~np.isfinite(X.data))
    if len(bad):
        row = np.searchsorted(X.indptr, bad, side="right") - 1
        column, marks = int(X.indices[bad[0]]), np.zeros((X.shape[0], 1))
        marks[row] = np.nan
        named = (
            f"feature {column}" if feature_names is None else f"column {feature_names[column]!r}"
        )
        sentence = _sentence(marks, int(row[0]), X.data[bad[0]], f"{named} of X", tasks)
        raise DataError(sentence)


def _all_finite(array: np.ndarray) -> bool:
    with np.errstate(all="ignore"):
        # one pass without a temporary array; if finite numbers overflow, the second test is right
        return bool(np.isfinite(array.sum())) or bool(np.isfinite(array).all())


def _sentence(
    values: np.ndarray, row: int, value: float, where: str, tasks: Any,
    names: Sequence[str] | None = None,
) -> str:  # fmt: skip
    """Describe the first bad value, and count the bad values, their columns and their tasks."""
    bad = ~np.isfinite(values)
    count = int(bad.sum())
    word = "NaN" if np.isnan(value) else "infinity"
    of_row = task_of_row(tasks)
    begin = f"Row {row}" if of_row is None else name_task(of_row(row))
    sentence = f"{begin} has {word} in {where}"
    if count > 1:
        places, columns = [], np.flatnonzero(bad.any(axis=0)).tolist()
        if len(columns) > 1:
            listed = show_ids(columns if names is None else [names[j] for j in columns])
            places.append(f" in {len(columns)} columns: {listed}")
        if of_row is not None:
            hit = list(dict.fromkeys(of_row(i) for i in np.flatnonzero(bad.any(axis=1)).tolist()))
            places.append(f" in {pluralize(len(hit), 'task')}: {show_ids(hit)}")
        sentence += f" ({count} such values{';'.join(places)})"
    return sentence + ": fill it or drop the row."


def task_of_row(tasks: Any) -> Any:
    """Return a function from a row to its task id, or None."""
    if tasks is None or callable(tasks):
        return tasks
    if isinstance(tasks, tuple) and len(tasks) == 2 and np.ndim(tasks[1]) == 1:
        ids, offsets = tasks
        return lambda row: ids[int(np.searchsorted(offsets, row, side="right")) - 1]
    return lambda row: tasks[row]
