"""X, y and labels as arrays, from what a user passes: tables, columns, lists, sparse matrices."""

from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.containers import refuse_odd
from condmeta.tasks.frames import is_frame, is_series, numeric_matrix, to_array
from condmeta.tasks.numbers import class_names, refuse_masked, to_floats


def is_sparse(X: Any) -> bool:
    """Return whether X is a sparse matrix or array of SciPy."""
    return hasattr(X, "toarray") and hasattr(X, "nnz")


def stack_rows(parts: list[Any]) -> Any:
    """Return the rows of several arrays, or of sparse rows, one after the other."""
    if not any(map(is_sparse, parts)):
        return np.concatenate(parts)
    from scipy.sparse import vstack  # slow to import

    from condmeta.tasks.sparse_rows import SparseRows

    return SparseRows(vstack(parts, format="csr"))


def as_matrix(X: Any) -> Any:
    """Return X (N, d) as float64, from a table, array or nested list: C-contiguous, or sparse."""
    if is_frame(X):
        return numeric_matrix(X)
    refuse_odd(X, "X")
    if is_sparse(X):
        from condmeta.tasks.sparse_rows import SparseRows, read_sparse  # slow to import

        return X if isinstance(X, SparseRows) else read_sparse(X)
    refuse_masked(X, "X")
    try:
        array = to_array(X) if is_series(X) else np.asarray(X)
    except ValueError as error:
        raise DataError("X has rows of unequal length; it must be a 2-D table.") from error
    if array.ndim != 2:
        raise DataError(
            f"X must be a 2-D table (rows, features), got an array of shape {array.shape}. "
            "Reshape your data: X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one row."
        )
    return np.ascontiguousarray(to_floats(array, "X"))


def as_vector(y: Any, label: str = "y") -> np.ndarray:
    """Return y as an (N,) float64 array, from a column, array or list."""
    return np.ascontiguousarray(to_floats(_one_dimensional(y, label), label, role=label))


def as_labels(y: Any, label: str = "y") -> np.ndarray:
    """Return y as an (N,) array: numbers as float64, names of classes as objects."""
    if isinstance(y, list | tuple) and any(isinstance(value, str) for value in y):
        y = np.array([*y, None], dtype=object)[:-1]  # NumPy would turn numbers beside text to text
    array = _one_dimensional(y, label)
    names = class_names(array, label)
    if names is not None:
        return names
    return np.ascontiguousarray(to_floats(array, label, role="y"))


def _one_dimensional(y: Any, label: str) -> np.ndarray:
    rule = f"{label} must be 1-D (one number a row)"
    if is_frame(y):
        raise DataError(f"{rule}, got a table: pass one column.")
    refuse_odd(y, label)
    refuse_masked(y, label)
    try:
        array = to_array(y) if is_series(y) else np.asarray(y)
    except ValueError as error:
        raise DataError(f"{rule}.") from error
    if array.ndim != 1:
        raise DataError(f"{rule}, got an array of shape {array.shape}.")
    return array
