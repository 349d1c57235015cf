"""Rows to predict with side columns: a row of a new task is predicted by its own side values.

A fit needs one side row for each task. A prediction does not: tau(s) can be computed row by row.
Tools that shuffle a column, as scikit-learn's permutation importance does, rely on it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from condmeta.fitted.fitted import Fitted
from condmeta.tasks.ids import as_id_array
from condmeta.tasks.numbers import is_na
from condmeta.tasks.side_table import side_from_rows, varies_within_tasks
from condmeta.tasks.task_table import TaskTable


def by_row(
    fitted: Fitted, side_columns: Mapping[str, np.ndarray], codes: np.ndarray, ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray, TaskTable]:
    """Return tasks with one side row each: codes (N,), ids (T,) and their side table.

    Known tasks with points are left whole: their models do not read side information. A new task
    with several side rows becomes several; the first of them keeps the id.
    """
    if not varies_within_tasks(side_columns, codes, len(ids)):
        return codes, ids, side_from_rows(side_columns, codes, ids)
    store = fitted.tasks
    whole = np.zeros(len(ids), bool)
    if store is not None:
        at = store.positions(ids.tolist())
        whole = (at >= 0) & (store.sizes[at] > 0)
    keys = np.column_stack([codes, *map(_level_codes, side_columns.values())])
    keys[whole[codes], 1:] = 0
    _, first, parts = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    names, taken = [], set()
    for row in first.tolist():
        task = ids[codes[row]]
        names.append((task, f"row {row}") if task in taken else task)
        taken.add(task)
    named = as_id_array(names)
    new = ~whole[codes[first]]  # of known tasks the model keeps what it needs
    rows = {name: column[first[new]] for name, column in side_columns.items()}
    return parts.ravel(), named, side_from_rows(rows, np.arange(new.sum()), named[new])


def _level_codes(column: np.ndarray) -> np.ndarray:
    """Return an integer for each value (N,); a gap equals a gap."""
    if column.dtype.kind != "O":
        return np.unique(column, return_inverse=True)[1].ravel()
    seen: dict[object, int] = {}
    return np.array([seen.setdefault(None if is_na(v) else v, len(seen)) for v in column], int)
