"""Orders of tasks and of rows that depend on their numbers alone, not on ids or on the input order.

Folds and halves made from these orders stay the same if tasks are renamed or rows permuted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from condmeta.tasks.points import Points
    from condmeta.tasks.taskset import TaskSet

WORD = 0xFFFFFFFFFFFFFFFF  # arithmetic is modulo 2^64
FACTORS = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)  # splitmix64
STEP = 0x9E3779B97F4A7C15  # 2^64 by the golden ratio
GRID = 2.0**10  # steps that a unit is rounded to: rounding errors hardly ever show


def folds_by_content(tasks: TaskSet, n_folds: int, salt: int = 0) -> np.ndarray:
    """Return the fold (T,) of each task: sizes differ by at most 1, and rows alone decide.

    Examples
    --------
    >>> from condmeta.tasks import TaskSet
    >>> tasks = TaskSet.from_arrays([[1.0]] * 6, [1, 2, 3, 4, 5, 6], task=list("aabbcc"))
    >>> other = TaskSet.from_arrays([[1.0]] * 6, [6, 5, 4, 3, 2, 1], task=list("uuvvww"))
    >>> bool((folds_by_content(tasks, 3) == folds_by_content(other, 3)[::-1]).all())
    True
    """
    order = tasks_by_content(tasks, salt)
    folds = np.empty(len(order), np.int64)
    folds[order] = np.arange(len(order)) % n_folds
    return folds


def tasks_by_content(tasks: TaskSet | Points, salt: int = 0) -> np.ndarray:
    """Return the positions (T,) of tasks by rising key of their rows; tasks without rows are last.

    Tasks with the same rows stay in the order of the input.
    """
    columns = [*_columns(tasks), *([] if tasks.y is None else [tasks.y])]
    hashes = _hashes(columns, tasks.offsets[[0, -1]], salt)
    if tasks.weight is not None:
        hashes *= _times(tasks.weight)
    return np.lexsort((_sums(hashes, tasks.offsets), tasks.sizes == 0))


def keys_by_content(tasks: TaskSet | Points) -> np.ndarray:
    """Return a hash (T,) of the rows of each task, which does not depend on the other tasks.

    It sees what the rows of a task are to each other; tasks of one or two rows may have the same.

    Examples
    --------
    >>> from condmeta.tasks import TaskSet
    >>> tasks = TaskSet.from_arrays([[1.0]] * 6, [1, 2, 4, 40, 20, 10], task=list("aaabbb"))
    >>> len(set(keys_by_content(tasks).tolist()))
    1
    """
    columns = [*_columns(tasks), *([] if tasks.y is None else [tasks.y])]
    return _sums(_hashes(columns, tasks.offsets), tasks.offsets)


def order_of_numbers(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return the positions (T,) of rows of numbers (T, d), in units of their size, by rising hash.

    Y (T, q) decides only between rows that are equal in X.
    """
    hashes = np.full((2, len(Y)), STEP, np.uint64)
    for key, part in zip(hashes, (X, Y), strict=True):
        for column in part.T:
            _stir(key, column, slice(None))
    return np.lexsort(hashes[::-1])


def rows_by_content(tasks: TaskSet | Points, salt: int = 0) -> np.ndarray:
    """Return the rows (N,), task after task, those of a task in an order of their numbers alone.

    Labels decide only between rows with the same x: they may be residuals, which are less exact.
    Equal rows may be in any order.

    Examples
    --------
    >>> from condmeta.tasks import TaskSet
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> tasks, other = (TaskSet.from_arrays(x, [0.0] * 4, task=[1] * 4) for x in (X, X[::-1]))
    >>> bool((X[rows_by_content(tasks)] == X[::-1][rows_by_content(other)]).all())
    True
    """
    task = np.repeat(np.arange(len(tasks.sizes)), tasks.sizes)
    by_x = _hashes([*_columns(tasks)], tasks.offsets, salt)
    by_y = _hashes([] if tasks.y is None else [tasks.y], tasks.offsets, salt)
    return np.lexsort((by_y, by_x, task))


def in_content_order(points: Points, raw: TaskSet | Points | None = None) -> Points:
    """Return the points with the rows of each task in an order of their numbers alone.

    `raw` are the same rows before they were scaled, if they were.
    """
    return points.pick(rows_by_content(points if raw is None else raw), points.offsets)


def _columns(tasks: TaskSet | Points) -> np.ndarray:
    """Return the columns of x; none if it is sparse."""
    return tasks.X.T if isinstance(tasks.X, np.ndarray) else np.empty((0, len(tasks.y)))


def _hashes(columns: list[np.ndarray], offsets: np.ndarray, salt: int = 0) -> np.ndarray:
    """Return a hash (N,) of the numbers in each row.

    A number counts as its place between the least and the largest of its column, within parts of
    the rows that begin at `offsets`: the units of columns do not matter. Constant columns and
    copies of an earlier column are left out: a column that says nothing may be added.
    """
    sizes, seen = np.diff(offsets), set()
    starts, sizes = offsets[:-1][sizes > 0], sizes[sizes > 0]
    hashes = np.full(int(sizes.sum()), (salt + 1) * STEP & WORD, np.uint64)
    for column in columns if len(hashes) else []:
        low, high = (f.reduceat(column, starts) / 2 for f in (np.minimum, np.maximum))
        varies = np.repeat(high > low, sizes)
        span = np.repeat(np.where(high > low, high - low, 1.0), sizes)
        place = (column / 2 - np.repeat(low, sizes)) / span  # halves: no overflow
        key = hash(np.rint(place * GRID).tobytes())
        if key not in seen:
            seen.add(key)
            _stir(hashes, place, varies)
    return hashes


def _stir(hashes: np.ndarray, column: np.ndarray, rows) -> None:
    """Mix the numbers of some rows of a column into the hashes."""
    words = (np.rint(column[rows] * GRID) + 0.0).view(np.uint64)  # + 0.0: -0.0 is 0.0
    words ^= hashes[rows] + np.uint64(STEP)
    hashes[rows] = _mixed(words)


def _sums(hashes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    return np.diff(np.append(np.uint64(0), np.cumsum(hashes))[offsets])


def _times(weight: np.ndarray) -> np.ndarray:
    """Return factors of hashes (N,): a row of weight 2 counts like the row twice."""
    whole = weight == np.floor(weight)
    return np.where(whole, np.where(whole, weight, 0).astype(np.uint64), weight.view(np.uint64))


def _mixed(words: np.ndarray) -> np.ndarray:
    """Mix the bits of 64-bit words in place: a change of one bit changes half of the others."""
    for shift, factor in zip((30, 27), FACTORS, strict=True):
        words ^= words >> np.uint64(shift)
        words *= factor
    words ^= words >> np.uint64(31)
    return words
