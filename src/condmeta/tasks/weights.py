"""Weights of rows: a row of weight 2 counts as two rows, a row of weight 0 as none.

Inside the package an array of weights has shape (N,), or (N, 2) if rows have a size as well: the
precision of a label, with variance s2 / precision; the exposure of a count; the trials of a share.
Such a row enters sums with weight times size, and counts weight times. A third column is a part of
the score <x, w> of a row that is known and fixed (see `condmeta.meta.shared_rows`).
"""

from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.arrays import as_vector
from condmeta.tasks.messages import name_task


class Weighted(NamedTuple):
    """What rows have beside x and y, each (N,) or None.

    repeat, how often they count; size: precision, exposure or trials, as `name` says; time.
    """

    repeat: Any
    size: Any
    name: str = "precision"
    time: Any = None


def weighted_by(repeat: Any, size: Any, name: str) -> Any:
    """Return the weights of rows, with their sizes if there are some."""
    return repeat if size is None else Weighted(repeat, size, name)


def as_weights(weight: Any, n_rows: int) -> np.ndarray:
    """Return weights (N,), or those of a `Weighted` (N, 2), as numbers."""
    if not isinstance(weight, Weighted):
        return _vector(weight, "sample_weight", n_rows)
    repeat = np.ones(n_rows)
    if weight.repeat is not None:
        repeat = _vector(weight.repeat, "sample_weight", n_rows)
    size = np.full(n_rows, weight.size) if np.ndim(weight.size) == 0 else weight.size
    return np.column_stack([repeat, _vector(size, weight.name, n_rows)])


def split_time(weight: Any) -> tuple[Any, Any]:
    """Return weights without times, and the times or None, of what a call gives as weights."""
    if not isinstance(weight, Weighted):
        return weight, None
    return weight.repeat if weight.size is None else weight._replace(time=None), weight.time


def _vector(values: Any, label: str, n_rows: int) -> np.ndarray:
    values = as_vector(values, label)
    if len(values) != n_rows:
        raise DataError(f"X has {n_rows} rows and {label} has {len(values)}.")
    return values


def repeats(weight: np.ndarray) -> np.ndarray:
    """Return how often each row counts (N,)."""
    return weight if weight.ndim == 1 else weight[:, 0]


def row_sizes(weight: np.ndarray | None, n_rows: int) -> np.ndarray:
    """Return the second column of weights (N, 2): precision, exposure or trials; else ones (N,)."""
    return np.ones(n_rows) if weight is None or weight.ndim == 1 else weight[:, 1].copy()


def row_shifts(weight: np.ndarray | None, n_rows: int) -> np.ndarray:
    """Return the third column of weights (N, 3), the fixed part of scores; else zeros (N,)."""
    plain = weight is None or weight.ndim == 1 or weight.shape[1] == 2
    return np.zeros(n_rows) if plain else weight[:, 2].copy()


def masses(weight: np.ndarray | None) -> np.ndarray | None:
    """Return the weights of rows in sums (N,): how often they count times their size."""
    return weight if weight is None or weight.ndim == 1 else weight[:, 0] * weight[:, 1]


def join_weights(a: Any, n_a: int, b: Any, n_b: int) -> np.ndarray | None:
    """Return the weights of n_a rows, then of n_b rows; None is once each."""
    if a is None and b is None:
        return None
    a, b = (np.ones(n) if w is None else w for w, n in ((a, n_a), (b, n_b)))
    if a.ndim != b.ndim:
        a, b = (w if w.ndim == 2 else np.column_stack([w, np.ones(len(w))]) for w in (a, b))
    return np.concatenate([a, b])


def read_weight(
    weight: Any, n_rows: int, task_of_row: Any = None, row_of: Any = None
) -> np.ndarray:
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
    array = isinstance(weight, np.ndarray) and weight.ndim == 2  # `as_weights` of a `Weighted`
    values = weight if array else as_weights(weight, n_rows)
    good = (repeats(values) >= 0) & (repeats(values) < np.inf)
    precise = np.ones(n_rows, bool)
    if values.ndim == 2:
        precise = (values[:, 1] > 0) & (values[:, 1] < np.inf)
    if not (good & precise).all():
        at = int(np.argmin(good & precise))
        row = at if row_of is None else row_of[at]
        known = task_of_row is not None
        where = f"{name_task(task_of_row(at))}, row {row}," if known else f"Row {row}"
        if good[at]:
            raise DataError(
                f"{where} has precision {values[at, 1]:g}: the variance of a label is s2 / "
                "precision, which must be a finite number above 0."
            )
        raise DataError(
            f"{where} has weight {repeats(values)[at]:g}: a weight says how often a row counts, "
            "and must be a finite number of at least 0."
        )
    return values


def task_sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the sum of values (N, ...) over each task (T, ...).

    The bits of a sum do not depend on the other tasks.

    Examples
    --------
    >>> task_sums(np.array([1.0, 2.0, 4.0]), np.array([0, 2, 2, 3]))
    array([3., 0., 4.])
    """
    sizes, out = np.diff(offsets), np.zeros((len(offsets) - 1, *values.shape[1:]))
    filled = np.flatnonzero(sizes)  # reduceat would read a row of the next task for an empty task
    if filled.size:
        out[filled] = np.add.reduceat(values[: offsets[-1]], offsets[filled], axis=0)
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
