"""Weights of rows in a call: those that count, and why some learners take none."""

from __future__ import annotations

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks import TaskSet


def drop_absent(tasks: TaskSet) -> TaskSet:
    """Return the rows that count at all, with all tasks, in the order of their first such row."""
    if tasks.weight is None or (tasks.weight > 0).all():
        return tasks
    tasks = tasks.where(tasks.weight > 0)
    filled = np.flatnonzero(tasks.sizes)
    first = tasks.row_order[tasks.offsets[filled]]
    return tasks.subset(
        np.concatenate([filled[np.argsort(first)], np.flatnonzero(tasks.sizes == 0)])
    )


def require_weight(tasks: TaskSet) -> None:
    """Refuse rows none of which counts."""
    if not len(tasks.X):
        raise DataError("Every weight is zero: there is nothing to learn from.")


def refuse(owner: str, unknown: dict) -> None:
    """Say why a learner takes no weights, or that a method of its does not know an argument."""
    others = [name for name in unknown if name != "sample_weight"]
    if others:
        raise TypeError(f"{owner} got an unexpected keyword argument {others[0]!r}.")
    if unknown.get("sample_weight") is not None:
        raise no_weights(owner.partition(".")[0])


def no_weights(owner: str) -> DataError:
    """Return the reason why an online learner takes no weights."""
    return DataError(
        f"{owner} takes no sample_weight: it reads one point after another, and a step twice as "
        "long is not the point seen twice. Leave it out, repeat the rows, or use a learner that "
        "solves its tasks exactly, as ConditionalRidge, ConditionalLogistic, "
        "ConditionalERMRegressor or a baseline with inner='batch'."
    )
