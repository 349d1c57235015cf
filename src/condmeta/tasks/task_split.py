"""Splits for judging a learner on tasks that it has not seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.splits import make_generator
from condmeta.tasks.taskset import TaskSet


class Fold(NamedTuple):
    """One split: tasks to learn from, and held-out tasks as points to adapt on and to judge by."""

    train: TaskSet
    support: TaskSet
    query: TaskSet


class TaskSplit:
    """Hold out whole tasks, then split the points of each into support and query.

    Parameters
    ----------
    n_splits : int
        Folds of tasks; with `held_out`, the number of random splits.
    held_out : int or float, optional
        Number or share of the tasks to hold out in each split; None cuts the tasks into folds.
    support : int or float
        Number (at most) or share of a held-out task's points to adapt on; the rest judges.
    how : "random" or "first"
        Which points are the support: drawn, or the first ones in row order.
    random_state : int, Generator, RandomState or None

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.TaskSet.from_arrays([[1.0]] * 8, range(8), task=[1, 1, 2, 2, 3, 3, 4, 4])
    >>> for train, support, query in cm.TaskSplit(2, support=1, random_state=0).split(tasks):
    ...     print(len(train), len(support), support.sizes, query.sizes)
    2 2 [1 1] [1 1]
    2 2 [1 1] [1 1]
    """

    def __init__(self, n_splits=5, *, held_out=None, support=0.5, how="random", random_state=None):
        self.n_splits = n_splits
        self.held_out = held_out
        self.support = support
        self.how = how
        self.random_state = random_state

    def split(self, tasks: TaskSet) -> Iterator[Fold]:
        """Yield the folds of the tasks that have points."""
        tasks = tasks.subset(np.flatnonzero(tasks.sizes > 0))
        rng = make_generator(self.random_state)
        for held in self._held(len(tasks), rng):
            support, query = tasks.subset(held).split_points(self.support, self.how, rng)
            judged = np.flatnonzero(query.sizes > 0)
            if not len(judged):
                raise DataError(
                    f"With support={self.support!r} no held-out task has a point left to judge by."
                )
            train = tasks.subset(np.setdiff1d(np.arange(len(tasks)), held))
            yield Fold(train, support.subset(judged), query.subset(judged))

    def _held(self, n_tasks: int, rng) -> Iterator[np.ndarray]:
        if self.held_out is None:
            if not 2 <= self.n_splits <= n_tasks:
                raise DataError(
                    f"The 'n_splits' parameter of TaskSplit must be an int in [2, {n_tasks}], the "
                    f"number of tasks with points. Got {self.n_splits!r} instead."
                )
            order = rng.permutation(n_tasks)
            yield from (np.sort(part) for part in np.array_split(order, self.n_splits))
            return
        count = self.held_out
        if not isinstance(count, (int, np.integer)):
            count = round(count * n_tasks)
        if not 1 <= count < n_tasks:
            raise DataError(
                f"The 'held_out' parameter of TaskSplit must leave tasks on both sides: {n_tasks} "
                f"tasks have points. Got {self.held_out!r} instead."
            )
        for _ in range(self.n_splits):
            yield np.sort(rng.permutation(n_tasks)[:count])

    def __repr__(self) -> str:
        return (
            f"TaskSplit({self.n_splits}, held_out={self.held_out!r}, support={self.support!r}, "
            f"how={self.how!r}, random_state={self.random_state!r})"
        )


def as_split(split: Any) -> TaskSplit:
    """Return a splitter, from one or from a number of folds."""
    return split if hasattr(split, "split") else TaskSplit(split)
