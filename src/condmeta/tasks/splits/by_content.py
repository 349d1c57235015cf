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
IGNORED_BITS = np.uint64(20)  # of 52: a sum in another order may change the last digits
HALF = np.uint64(1 << 19)  # to round them off


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
    return np.lexsort((keys_by_content(tasks, salt), tasks.sizes == 0))


def keys_by_content(tasks: TaskSet | Points, salt: int = 0) -> np.ndarray:
    """Return a hash (T,) of the rows of each task, in any order; a row counts as its weight says.

    The hash of all rows is the sum of those of its parts, modulo 2^64.

    Examples
    --------
    >>> from condmeta.tasks import TaskSet
    >>> tasks = TaskSet.from_arrays([[1.0]] * 4, [1, 2, 2, 1], task=list("aabb"))
    >>> len(set(keys_by_content(tasks).tolist()))
    1
    """
    hashes = _hashes(tasks, salt)
    if tasks.weight is not None:
        hashes *= _times(tasks.weight)
    return np.diff(np.append(np.uint64(0), np.cumsum(hashes))[tasks.offsets])


def rows_by_content(tasks: TaskSet | Points, salt: int = 0) -> np.ndarray:
    """Return the rows (N,), task after task, those of a task in an order of their numbers alone.

    Equal rows may be in any order.

    Examples
    --------
    >>> from condmeta.tasks import TaskSet
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> tasks, other = (TaskSet.from_arrays(x, [0.0] * 4, task=[1] * 4) for x in (X, X[::-1]))
    >>> bool((X[rows_by_content(tasks)] == X[::-1][rows_by_content(other)]).all())
    True
    """
    count = len(tasks.sizes)
    task = np.repeat(np.arange(count, dtype=np.uint64), tasks.sizes)
    bits = np.uint64(max(count - 1, 1).bit_length())
    # One key of task and hash sorts several times faster than two.
    return np.argsort(task << (np.uint64(64) - bits) | _hashes(tasks, salt) >> bits)


def in_content_order(points: Points, raw: TaskSet | Points | None = None) -> Points:
    """Return the points with the rows of each task in an order of their numbers alone.

    `raw` are the same rows before they were scaled: scales have rounding errors, which depend on
    the order of the input.
    """
    return points.pick(rows_by_content(points if raw is None else raw), points.offsets)


def _hashes(tasks: TaskSet | Points, salt: int) -> np.ndarray:
    """Return a hash (N,) of the numbers in each row: x, unless it is sparse, and y, if given.

    Columns of x that are constant in a task are left out, and so are copies of an earlier column: a
    column that says nothing may be added.
    """
    sizes, seen = np.diff(tasks.offsets), set()
    hashes = np.full(int(sizes.sum()), (salt + 1) * STEP & WORD, np.uint64)
    for column in tasks.X.T if isinstance(tasks.X, np.ndarray) else ():
        key = hash(np.ascontiguousarray(column).tobytes())
        if key not in seen:
            seen.add(key)
            _stir(hashes, column, np.repeat(_varies(column, tasks.offsets), sizes))
    if tasks.y is not None:
        _stir(hashes, tasks.y, slice(None))
    return hashes


def _stir(hashes: np.ndarray, column: np.ndarray, rows) -> None:
    """Mix the numbers of some rows of a column into the hashes."""
    bits = (column[rows] + 0.0).view(np.uint64)  # + 0.0: -0.0 is 0.0
    bits += HALF
    bits >>= IGNORED_BITS
    bits ^= hashes[rows] + np.uint64(STEP)
    hashes[rows] = _mixed(bits)


def _varies(column: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return whether a column is not constant in each task (T,)."""
    steps = np.zeros(len(column) + 1, np.int64)
    np.cumsum(column[1:] != column[:-1], out=steps[1:-1] if len(column) else steps[:0])
    first = np.minimum(offsets[:-1], max(len(column) - 1, 0))
    return steps[np.maximum(offsets[1:] - 1, first)] > steps[first]


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
