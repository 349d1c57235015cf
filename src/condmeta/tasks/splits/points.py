"""Divide the points of each task into support (to adapt on) and query (to judge by)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from condmeta.tasks.messages import bad_parameter
from condmeta.tasks.splits.tasks import FLOATS, FOLDS, INTS, make_generator

if TYPE_CHECKING:
    from condmeta.tasks.points import Points

ORDERS = "random", "first"  # which points of a held-out task are its support
MOST_TASKS = 2000  # that `within_tasks` holds rows out of; more would take longer for little gain
MOST_ROWS = 20_000  # that `across_tasks` uses


class SupportQuery(NamedTuple):
    """The same tasks twice: the points to adapt on, and the points to judge by."""

    support: Points
    query: Points


def point_mask(
    offsets: Any, train: Any, order: str = "random", random_state: Any = None
) -> np.ndarray:
    """Choose the support points of every task: (N,) bool, True for support.

    `train` is a count (at most that many points a task) or a fraction in (0, 1), rounded half up
    in each task. `order="first"` takes the first rows, `"random"` a random subset.

    Examples
    --------
    >>> point_mask(np.array([0, 3, 4]), train=2, order="first").tolist()
    [True, True, False, True]
    """
    sizes = np.diff(offsets)
    if isinstance(train, INTS) and not isinstance(train, bool) and train >= 0:
        wanted = np.minimum(sizes, int(train))
    elif isinstance(train, FLOATS) and 0 < train < 1:
        wanted = np.floor(train * sizes + 0.5).astype(np.int64)
    else:
        valid = "a count (an int of at least 0) or a fraction (a float in (0, 1))"
        raise bad_parameter("train of split_points", valid, train)
    if order not in ORDERS:
        raise bad_parameter("order of split_points", "'random' or 'first'", order)
    task_of_row = np.repeat(np.arange(sizes.size), sizes)
    first = ranks(offsets) < wanted[task_of_row]
    if order == "first":
        return first
    # Shuffle the rows within each task: sort them by the task's position plus a random key below 1.
    key = task_of_row + 0.999999 * make_generator(random_state).random(task_of_row.size)
    chosen = np.empty(task_of_row.size, bool)
    chosen[np.argsort(key, kind="stable")] = first
    return chosen


def first_halves(offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split every task: its first n // 2 points condition, the rest trains.

    Returns the mask of the conditioning rows (N,), and the offsets of either part.
    """
    sizes = np.diff(offsets)
    first = sizes // 2
    mask = ranks(offsets) < np.repeat(first, sizes)
    return mask, np.append(0, np.cumsum(first)), np.append(0, np.cumsum(sizes - first))


def half_of(points: Points, half: bool, before: Any = None) -> Points:
    """Return one half of the points of each task.

    True: every second point, from the second on; False: the others. `before` (T,) is the number of
    points that each task had until now, for points that come in chunks.
    """
    rank = ranks(points.offsets)
    if before is not None:
        rank = rank + np.repeat(before, points.sizes)
    return points.where((rank % 2 == 1) == half)


def first_points(points: Points, n: int) -> Points:
    """Return the first n points of each task, or all that it has."""
    return points.where(ranks(points.offsets) < n)


def fifths(points: Points) -> list[SupportQuery]:
    """Hold out every fifth point of each task, from each of the five starts."""
    fold = ranks(points.offsets) % FOLDS
    held = [fold == start for start in range(FOLDS)]
    return [SupportQuery(points.where(~h), points.where(h)) for h in held if h.any()]


def within_tasks(points: Points) -> SupportQuery:
    """Hold out every fifth row of each task, from each of the five starts.

    Every start of every task is a problem of its own: the "tasks" of the result.
    """
    tasks, offsets = _spread(np.flatnonzero(points.sizes > 1), MOST_TASKS), points.offsets
    rows = [np.arange(offsets[t], offsets[t + 1]) for t in tasks]
    return _problems(points, [(r, np.arange(len(r)) % FOLDS) for r in rows])


def across_tasks(points: Points) -> SupportQuery:
    """Hold out every fifth task, from each of the five starts; rows if there are under five tasks.

    Every start is one problem with the rows of all tasks: the "tasks" of the result.
    """
    sizes, every = points.sizes, np.arange(len(points.y))
    task_of_row = np.repeat(np.arange(len(sizes)), sizes)
    unit = task_of_row if (sizes > 0).sum() >= FOLDS else every
    rows = _spread(every, MOST_ROWS)
    return _problems(points, [(rows, unit[rows] % FOLDS)])


def _problems(points: Points, parts: list[tuple[np.ndarray, np.ndarray]]) -> SupportQuery:
    """Lay out one problem for each fold of each part (rows, fold of each row)."""
    masks = [(rows, fold == f) for rows, fold in parts for f in range(FOLDS)]
    masks = [(rows, held) for rows, held in masks if held.any() and not held.all()]

    def flat(parts: list[np.ndarray]) -> Points:
        chosen = np.concatenate([*parts, np.empty(0, int)]).astype(int)
        return points.pick(chosen, np.cumsum([0, *map(len, parts)]))

    support = flat([rows[~held] for rows, held in masks])
    return SupportQuery(support, flat([rows[held] for rows, held in masks]))


def ranks(offsets: np.ndarray) -> np.ndarray:
    """Return the position (N,) of each row within its task."""
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def _spread(items: np.ndarray, most: int) -> np.ndarray:
    """Return at most `most` items, evenly spread."""
    if len(items) <= most:
        return items
    return items[np.linspace(0, len(items) - 1, most).astype(int)]
