"""Labels as the numbers that learners learn from, by their kind, and the sizes of rows.

| kind | labels | numbers |
|---|---|---|
| "number" | numbers | the same |
| "class" | one of two classes | -1 and +1 |
| "class" with trials m | k successes | 2 k / m - 1 |
| "class", more than two | one of K ordered classes | 0, ..., K - 1 |
| "count" | numbers of at least 0 | the same |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.arrays import as_vector
from condmeta.tasks.messages import name_task
from condmeta.tasks.weights import Weighted, as_weights

SHARES = np.array([0, 1])  # the classes of labels with trials
WHY = {
    "exposure": "the expected count is exposure times a rate",
    "trials": "successes are counted out of trials",
}


def encode(y, kind: str, classes, weight: Any = None, task_of_row: Callable | None = None):
    """Return labels (N,) as numbers; NaN stays.

    `weight` is what the call gave: with trials, y are successes. `task_of_row(i)` is the task of a
    row, for messages.
    """
    sizes = _check_sizes(weight, len(y), task_of_row)
    if kind == "class" and sizes is not None:
        return _encode_shares(as_vector(y), sizes, task_of_row)
    if kind == "class":
        return encode_labels(y, classes)
    y = as_vector(y)
    if kind == "count" and (y < 0).any():
        row = int(np.argmax(y < 0))
        raise DataError(
            f"{_name_row(row, task_of_row)} has {y[row]:g} in y: a count is at least 0. For "
            "numbers of both signs use ConditionalRidge."
        )
    return y


def encode_labels(y, classes) -> np.ndarray:
    """Return two classes as -1.0 and +1.0, more as 0.0, 1.0, ...; or raise for another label."""
    unknown = [label for label in np.unique(y).tolist() if label not in classes.tolist()]
    if unknown:
        raise DataError(f"y holds labels {unknown} that are not classes: {classes.tolist()}.")
    if len(classes) == 2:
        return np.where(y == classes[1], 1.0, -1.0)
    return np.argmax(np.asarray(y)[:, None] == classes, axis=1).astype(float)


def _check_sizes(weight, n_rows: int, task_of_row) -> np.ndarray | None:
    """Return the exposure or the trials of rows (N,), or raise if one is not above 0."""
    if not isinstance(weight, Weighted) or weight.name not in WHY:
        return None
    sizes = as_weights(weight._replace(repeat=None), n_rows)[:, 1]
    good = (sizes > 0) & (sizes < np.inf)
    if not good.all():
        row = int(np.argmin(good))
        raise DataError(
            f"{_name_row(row, task_of_row)} has {weight.name} {sizes[row]:g}: {WHY[weight.name]}, "
            "which must be a finite number above 0. Drop the row or correct it."
        )
    return sizes


def _encode_shares(y, trials, task_of_row) -> np.ndarray:
    bad = (y < 0) | (y > trials)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"{_name_row(row, task_of_row)} has {y[row]:g} successes in {trials[row]:g} trials: "
            "with trials=, y is the number of successes, from 0 to trials."
        )
    return 2 * y / trials - 1


def _name_row(row: int, task_of_row) -> str:
    return f"Row {row}" if task_of_row is None else f"{name_task(task_of_row(row))}, row {row},"
