"""Weights of rows: a row of weight 2 counts as two rows, a row of weight 0 as none."""

from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.frames import as_vector
from condmeta.tasks.messages import name_task


def read_weight(weight: Any, n_rows: int, task_of_row=None, row_of=None) -> np.ndarray:
    """Return weights (N,) as finite numbers of at least 0, or raise a DataError that names the row.

    Parameters
    ----------
    task_of_row : function from row to task id, optional
    row_of : (N,) int array, optional
        Numbers of the rows in messages: by default 0, 1, 2, ...

    Examples
    --------
    >>> read_weight([1, -2], 2)
    Traceback (most recent call last):
    condmeta.errors.DataError: Row 1 has weight -2: a weight says how often a row counts, and must \
be a finite number of at least 0.
    """
    values = as_vector(weight, "sample_weight")
    require_length(values, n_rows)
    good = (values >= 0) & (values < np.inf)
    if not good.all():
        at = int(np.argmin(good))
        row = at if row_of is None else row_of[at]
        known = task_of_row is not None
        where = f"{name_task(task_of_row(at))}, row {row}," if known else f"Row {row}"
        raise DataError(
            f"{where} has weight {values[at]:g}: a weight says how often a row counts, and must "
            "be a finite number of at least 0."
        )
    return values


def require_length(weight: np.ndarray, n_rows: int) -> None:
    """Raise a DataError unless there is one weight for each row."""
    if len(weight) != n_rows:
        raise DataError(f"X has {n_rows} rows and sample_weight has {len(weight)}.")


def task_sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the sum of values (N,) over each task (T,).

    The bits of a sum do not depend on the other tasks.

    Examples
    --------
    >>> task_sums(np.array([1.0, 2.0, 4.0]), np.array([0, 2, 2, 3]))
    array([3., 0., 4.])
    """
    sizes, out = np.diff(offsets), np.zeros(len(offsets) - 1)
    filled = np.flatnonzero(sizes)  # reduceat would read a row of the next task for an empty task
    if filled.size:
        out[filled] = np.add.reduceat(values[: offsets[-1]], offsets[filled])
    return out


def weighted_median(values: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the median of values (N,), each repeated weight (N,) times.

    Examples
    --------
    >>> weighted_median(np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 3.0]))
    3.0
    """
    if weight is None:
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    values, upto = values[order], np.cumsum(weight[order])
    half = upto[-1] / 2
    at = int(np.searchsorted(upto, half))
    # Exactly half of the weight ends with this value: average it with the next one.
    above = at + 1 if upto[at] == half else at
    return float(values[at] + values[above]) / 2
