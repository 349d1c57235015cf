"""Tasks left out of the fit, then adapted to on 0, 1, 2, ... of their points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.frames import column_names, drop_columns, get_series, is_frame
from condmeta.tasks.splits import make_generator
from condmeta.tasks.taskset import TaskSet

ORDERS = "random", "first"  # of the points that a held-out task shows


class Shot(NamedTuple):
    """Held-out tasks at one number of points: what to adapt on, and the points that are left."""

    n_support: int
    support: TaskSet
    query: TaskSet


def as_tasks(
    X: Any, y: Any, task: Any, side_info: Any, side_key: Any = None, weight: Any = None
) -> TaskSet:
    """Return the tasks of a call: a `TaskSet` alone, or arrays; `task` may be a column's name."""
    if not isinstance(X, TaskSet):
        if is_frame(X) and isinstance(task, str) and task in column_names(X):
            X, task = drop_columns(X, [task]), get_series(X, task)
        # which tasks may lack a side row is for the learner to say
        return TaskSet.from_arrays(
            X, y, task, side_info=side_info, side_key=side_key, missing_side="mean", weight=weight
        )
    if any(given is not None for given in (y, task, side_info, weight)):
        raise DataError(
            "A TaskSet carries y, task ids, side information and weights: pass it alone."
        )
    return X


def check_shots(shots: Any) -> tuple[int, ...]:
    """Return the numbers of points, rising."""
    try:
        given = tuple(shots)
    except TypeError:
        given = (shots,)
    if not all(isinstance(m, int | np.integer) and m >= 0 for m in given):
        raise DataError(f"The 'shots' parameter must hold ints of at least 0. Got {shots!r}.")
    return tuple(sorted({int(m) for m in given}))


def folds_of_tasks(
    tasks: TaskSet, n_splits: int, shots: Sequence[int], order: str, random_state: Any
) -> Iterator[tuple[TaskSet, list[Shot]]]:
    """Yield for each fold the tasks to learn from, and the held-out ones at each number of points.

    The support of a task grows with the number: one order of its points serves them all. Tasks
    without a point left over are not in that shot, and a shot without tasks is left out.
    """
    tasks = tasks.subset(np.flatnonzero(tasks.sizes > 0))
    if not (isinstance(n_splits, int | np.integer) and 2 <= n_splits <= len(tasks)):
        raise DataError(
            f"The 'n_splits' parameter must be an int in [2, {len(tasks)}], the number of tasks "
            f"with points. Got {n_splits!r} instead."
        )
    rng = make_generator(random_state)
    for held in np.array_split(rng.permutation(len(tasks)), n_splits):
        train = tasks.subset(np.setdiff1d(np.arange(len(tasks)), held))
        seed = int(rng.integers(2**31))  # the same for all shots: their supports are nested
        parts = []
        for m in shots:
            left = tasks.subset(np.sort(held[tasks.sizes[held] > m]))
            if len(left):
                parts.append(Shot(m, *left.split_points(m, order, seed)))
        yield train, parts
