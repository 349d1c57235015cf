"""Write tasks as the columns of one table."""

from __future__ import annotations

from typing import Any

import numpy as np

from condmeta.tasks.ids import id_columns


def columns_of(tasks: Any, side: bool) -> dict[Any, np.ndarray]:
    """Return task, X, y, weights and side information of a `TaskSet`, in the input's order."""
    task_of_row = tasks.restore_order(np.repeat(np.arange(len(tasks)), tasks.sizes))
    X = tasks.restore_order(tasks.X)
    columns = id_columns(tasks.ids[task_of_row], tasks.task_name)
    names = tasks.feature_names or [f"x{j}" for j in range(tasks.n_features)]
    columns |= {name: X[:, j] for j, name in enumerate(names)}
    if tasks.y is not None:
        columns[tasks.target_name or "y"] = tasks.restore_order(tasks.y)
    if tasks.weight is not None:
        columns["sample_weight"] = tasks.restore_order(tasks.weight)
    if side and tasks.side is not None:
        columns |= tasks.side.take(tasks.ids[task_of_row]).data
    return columns
