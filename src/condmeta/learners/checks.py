"""Checks of tasks against the learner that is given them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from condmeta.errors import ConstantFeatureWarning, DataError, MemoryUseWarning
from condmeta.feature_maps.table_encoder import allow_unseen_levels
from condmeta.fitted.columns import Columns
from condmeta.fitted.scales import FARTHEST
from condmeta.fitted.user_rows import no_weights
from condmeta.fitted.weighing import TAILS
from condmeta.tasks import TaskSet
from condmeta.tasks.arrays import is_sparse
from condmeta.tasks.checks import task_of_row
from condmeta.tasks.messages import name_task
from condmeta.tasks.numbers import column_ends
from condmeta.tasks.weights import repeats
from condmeta.warn import warn

MUCH_MEMORY = 1e9  # bytes
FAR_FROM_ZERO = 1e3  # times how much a column varies


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
        warn(text, ConstantFeatureWarning)


@contextmanager
def fits_to_folds() -> Iterator[None]:
    """Do not warn of the columns of the tasks that are left: only of those of the user's table.

    A rare level may be absent from a fold, or from all but one: this is no fault of the table.
    """
    with allow_unseen_levels():
        warnings.simplefilter("ignore", ConstantFeatureWarning)
        yield


def warn_far_values(learner: Any, tasks: TaskSet) -> None:
    """Name a value beside which others lose their digits, and a column far from zero.

    What is far is seen by the middle of some rows. Rows that are not centred are far from zero.
    """
    X, centred = tasks.X, learner.scale == "standard" and learner.fit_intercept
    if is_sparse(X) or not len(X):
        return
    some = X[:: max(len(X) // 1000, 1)]
    middle = np.median(some, axis=0)
    centre = middle if centred else np.zeros_like(middle)
    with np.errstate(over="ignore"):
        spread, usual = (np.quantile(np.abs(some - c), 0.75, axis=0) for c in (middle, centre))
        low, high = column_ends(X)
        distance = np.maximum(high - centre, centre - low)
        far = (distance / FARTHEST > usual) & (usual > 0) & (learner.scale != "rows")
        away = (np.abs(middle - centre) / FAR_FROM_ZERO > spread) & (spread > 0)
    names = tasks.feature_names
    for column in np.flatnonzero(far | away):
        where = f"feature {column}" if names is None else f"column {names[column]!r}"
        if far[column]:
            row = int(np.abs(X[:, column] - centre[column]).argmax())
            task = task_of_row((tasks.ids, tasks.offsets))(row)
            text = (
                f"{name_task(task)} has {X[row, column]:g} in {where} of X: compared with it, "
                "most rows have one and the same value there. Correct the value or drop the row."
            )
        else:
            text = (
                f"Values of {where} of X are around {middle[column]:g} and differ by about "
                f"{spread[column]:.2g}: without centring, the column hardly distinguishes rows. "
                "Use scale='standard' with fit_intercept=True, or subtract a constant from the "
                "column."
            )
        warn(text, ConstantFeatureWarning)


def warn_memory(n_tasks: int, width: int) -> None:
    """Say how much memory statistics of tasks will take, if it is much."""
    size = 8 * n_tasks * width * (width + 1) // 2
    if size > MUCH_MEMORY:
        warn(
            f"The statistics of {n_tasks} tasks with {width - 1} features will take about "
            f"{size / 1e9:.1f} GB: the square of the number of features for each task. Leave out "
            "features, or fit a sample of the tasks and adapt the others.",
            MemoryUseWarning,
        )


def refuse_weighing(learner: Any) -> None:
    """Raise if a learner weighs rows, and these are not all there."""
    noise = getattr(learner, "noise", None)
    if noise in TAILS:
        raise DataError(
            f"noise={noise!r} needs the rows of all tasks at once, in ConditionalRidge.fit: call "
            "fit, or use noise='auto'."
        )
