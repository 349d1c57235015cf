"""Hold out whole tasks of a `TaskSet`, and divide their points into support and query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.ids import factorize
from condmeta.tasks.messages import bad_parameter
from condmeta.tasks.splits.by_content import folds_by_content, rows_by_content
from condmeta.tasks.splits.points import point_mask, ranks
from condmeta.tasks.splits.tasks import make_generator, task_rows
from condmeta.typing import Ids, Matrix, Order, RandomState

if TYPE_CHECKING:
    from condmeta.tasks.taskset import TaskSet


class Fold(NamedTuple):
    """One split: tasks to learn from, and held-out tasks as points to adapt on and to judge by."""

    train: TaskSet
    support: TaskSet
    query: TaskSet


class Shot(NamedTuple):
    """Held-out tasks at one number of points: what to adapt on, and the points that are left."""

    n_support: int
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
        How many points of a held-out task to adapt to (at most), or which share of them. The error
        is measured on the other points.
    order : "random" or "first"
        Which points to adapt to: random ones, or the first ones in row order.
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

    def __init__(
        self,
        n_splits: int = 5,
        *,
        held_out: float | None = None,
        support: float = 0.5,
        order: Order = "random",
        random_state: RandomState = None,
    ):
        self.n_splits = n_splits
        self.held_out = held_out
        self.support = support
        self.order = order
        self.random_state = random_state

    def split(self, X: Matrix, y: object = None, groups: Ids = None) -> Iterator[Any]:
        """Yield the folds of a `TaskSet`, or rows to train and to test on, as scikit-learn does.

        A `TaskSet` gives train, support and query for each fold of the tasks that have points. Any
        other X is a table of rows, and `groups` names the task of each: `GridSearchCV(..., cv=
        TaskSplit(5)).fit(table, groups=table["store"])`. The training rows are then those of the
        other tasks and the support of the held-out ones; with support=0 these are new tasks.
        """
        return self._task_folds(X) if hasattr(X, "offsets") else self._row_folds(X, groups)

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def _row_folds(self, X: Any, groups: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if groups is None:
            raise DataError("TaskSplit needs the task of each row: pass groups=, such as ids.")
        codes, ids = factorize(groups)
        order = np.argsort(codes, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(ids)))])
        rng = make_generator(self.random_state)
        for held in self._held(len(ids), rng):
            rows, parts = task_rows(offsets, held)
            query = order[rows][~point_mask(parts, self.support, self.order, rng)]
            yield np.setdiff1d(order, query), np.sort(query)

    def _task_folds(self, tasks: TaskSet) -> Iterator[Fold]:
        tasks = tasks.subset(np.flatnonzero(tasks.sizes > 0))
        rng = make_generator(self.random_state)
        for held in self._held(len(tasks), rng):
            support, query = tasks.subset(held).split_points(self.support, self.order, rng)
            judged = np.flatnonzero(query.sizes > 0)
            if not len(judged):
                raise DataError(
                    f"With support={self.support!r} no held-out task has a point left to judge by. "
                    "Use a smaller support."
                )
            train = tasks.subset(np.setdiff1d(np.arange(len(tasks)), held))
            yield Fold(train, support.subset(judged), query.subset(judged))

    def _held(self, n_tasks: int, rng: Any) -> Iterator[np.ndarray]:
        if self.held_out is None:
            if not 2 <= self.n_splits <= n_tasks:
                valid = f"an int in [2, {n_tasks}], the number of tasks with points"
                raise bad_parameter("n_splits of TaskSplit", valid, self.n_splits)
            order = rng.permutation(n_tasks)
            yield from (np.sort(part) for part in np.array_split(order, self.n_splits))
            return
        whole = isinstance(self.held_out, int | np.integer)
        count = self.held_out if whole else round(self.held_out * n_tasks)
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
            f"order={self.order!r}, random_state={self.random_state!r})"
        )


def as_split(split: Any) -> TaskSplit:
    """Return a splitter: the given one, or a `TaskSplit` with the given number of folds."""
    if isinstance(split, str):  # which has a method of that name
        raise bad_parameter("split", "a TaskSplit or a number of folds", split)
    return split if hasattr(split, "split") else TaskSplit(split)


def check_shots(shots: Any) -> tuple[int, ...]:
    """Return the different numbers of points in rising order, or raise."""
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

    The support of a task grows with the number: all numbers use one order of its points. A task
    without a point left to judge by is not in that shot, and a shot without tasks is left out.
    Folds and random orders depend on the numbers of the rows alone, and on the seed: other ids or
    another order of rows give the same ones.
    """
    tasks = tasks.subset(np.flatnonzero(tasks.sizes > 0))
    if not (isinstance(n_splits, int | np.integer) and 2 <= n_splits <= len(tasks)):
        valid = f"an int in [2, {len(tasks)}], the number of tasks with points"
        raise bad_parameter("n_splits", valid, n_splits)
    seed = int(make_generator(random_state).integers(2**31))
    fold = folds_by_content(tasks, n_splits, seed)
    for number in range(n_splits):
        parts = []
        for m in shots:
            left = tasks.subset(np.flatnonzero((fold == number) & (tasks.sizes > m)))
            if len(left):
                shown = ranks(left.offsets) < m  # of the first rows, or in another order
                if order == "random":
                    shown[rows_by_content(left, seed)] = shown.copy()
                parts.append(Shot(m, left.where(shown), left.where(~shown)))
        yield tasks.subset(np.flatnonzero(fold != number)), parts
