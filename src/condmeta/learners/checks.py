"""Checks of tasks against the learner that is given them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from condmeta.errors import ConstantFeatureWarning, DataError, MemoryUseWarning
from condmeta.fitted.columns import Columns
from condmeta.fitted.scales import FARTHEST
from condmeta.fitted.user_rows import no_weights
from condmeta.tasks import TaskSet
from condmeta.tasks.checks import task_of_row
from condmeta.tasks.frames import is_sparse
from condmeta.tasks.messages import name_task
from condmeta.tasks.weights import repeats

MUCH_MEMORY = 1e9  # bytes


def check_features(learner: Any, tasks: TaskSet, columns: Columns, what: str) -> None:
    """Raise if a TaskSet has other features than the fit."""
    if tasks.n_features != columns.n_features:
        raise DataError(
            f"{what} has {tasks.n_features} features, but {type(learner).__name__} is expecting "
            f"{columns.n_features} features as input."
        )
    expected = columns.names or tasks.feature_names
    if tasks.feature_names is not None and list(expected) != list(tasks.feature_names):
        raise DataError(
            "The feature names should match those that were passed during fit: "
            f"{list(expected)}. Got {list(tasks.feature_names)} instead."
        )


def check_weights(learner: Any, tasks: TaskSet) -> TaskSet:
    if tasks.weight is not None and not learner._weighs:
        raise no_weights(type(learner).__name__)
    return tasks


def drop_weightless(tasks: TaskSet) -> TaskSet:
    """Return the rows of positive weight, with all tasks, in the order of their first such row."""
    if tasks.weight is None or (tasks.weight > 0).all():
        return tasks
    tasks = tasks.where(repeats(tasks.weight) > 0)
    filled = np.flatnonzero(tasks.sizes)
    first = tasks.row_order[tasks.offsets[filled]]
    empty = np.flatnonzero(tasks.sizes == 0)
    return tasks.subset(np.concatenate([filled[np.argsort(first)], empty]))


def warn_constant(names: list[str], n_rows: int) -> None:
    """Name the features that the models of tasks leave out; nothing can vary in one row."""
    if names and n_rows > 1:
        some = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
        text = f"Feature {some} has one value in all rows: it is left out (coefficient 0)."
        if len(names) > 1:
            text = f"{len(names)} features have one value in all rows: {some}. They are left out."
        warnings.warn(text, ConstantFeatureWarning, stacklevel=3)


def warn_dominated(tasks: TaskSet, scale: str) -> None:
    """Name a value so far from all others that rounding leaves these one value beside it."""
    X = tasks.X
    if scale != "standard" or is_sparse(X) or not len(X):
        return
    some = X[:: max(len(X) // 1000, 1)]
    middle = np.median(some, axis=0)
    with np.errstate(over="ignore"):
        usual = np.quantile(np.abs(some - middle), 0.75, axis=0)
        distance = np.maximum(X.max(axis=0) - middle, middle - X.min(axis=0))
    for column in np.flatnonzero((usual > 0) & (distance / FARTHEST > usual)):
        row = int(np.abs(X[:, column] - middle[column]).argmax())
        where = f"feature {column}"
        if tasks.feature_names is not None:
            where = f"column {tasks.feature_names[column]!r}"
        warnings.warn(
            f"{name_task(task_of_row((tasks.ids, tasks.offsets))(row))} has {X[row, column]:g} in "
            f"{where} of X: beside it most rows have one value there, so the column says nothing "
            "about them. Correct the value or drop the row.",
            ConstantFeatureWarning,
            stacklevel=3,
        )


def warn_memory(n_tasks: int, width: int) -> None:
    """Say how much memory statistics of tasks will take, if it is much."""
    size = 8 * n_tasks * width * (width + 1) // 2
    if size > MUCH_MEMORY:
        warnings.warn(
            f"The statistics of {n_tasks} tasks with {width - 1} features will take about "
            f"{size / 1e9:.1f} GB: the square of the number of features for each task. Leave out "
            "features, or fit a sample of the tasks and adapt the others.",
            MemoryUseWarning,
            stacklevel=5,
        )
