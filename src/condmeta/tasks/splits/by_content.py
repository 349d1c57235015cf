"""Orders of tasks and of rows that depend on their numbers alone, not on ids or on the input order.

Folds and halves made from these orders stay the same if tasks are renamed or rows permuted.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from condmeta.tasks.weights import repeats

if TYPE_CHECKING:
    from condmeta.tasks.points import Points
    from condmeta.tasks.taskset import TaskSet

WORD = 0xFFFFFFFFFFFFFFFF  # arithmetic is modulo 2^64
FACTORS = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)  # splitmix64
STEP = 0x9E3779B97F4A7C15  # 2^64 by the golden ratio
ROWS = 1 << 14  # that are hashed at once
FEW = 100  # rows that tell most columns apart
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
    hashes = _hashes(tasks, tasks.offsets[[0, -1]], salt)
    if tasks.weight is not None:
        hashes *= _times(repeats(tasks.weight))
    return np.lexsort((_sums(hashes, tasks.offsets), tasks.sizes == 0))


def keys_by_content(tasks: TaskSet | Points, distinct: np.ndarray | None = None) -> np.ndarray:
    """Return a hash (T,) of the rows of each task, which does not depend on the other tasks.

    Units and zeros of columns do not matter, except those of y in tasks of one or two rows.
    `distinct` is a mask of the columns of (x, y) that are read: without it, those that are no copy
    of an earlier one in these tasks.

    Examples
    --------
    >>> from condmeta.tasks import TaskSet
    >>> tasks = TaskSet.from_arrays([[1.0]] * 6, [1, 2, 4, 40, 20, 10], task=list("aaabbb"))
    >>> len(set(keys_by_content(tasks).tolist()))
    1
    """
    return _sums(_hashes_of_rows(tasks, distinct=distinct), tasks.offsets)


def copied_columns(tasks: TaskSet | Points) -> np.ndarray:
    """Return for each column of (x, y) the first column that has the same bytes.

    Examples
    --------
    >>> from condmeta.tasks import TaskSet
    >>> tasks = TaskSet.from_arrays([[1.0, 5.0, 1.0], [2.0, 5.0, 2.0]], [3.0, 4.0], task=[1, 1])
    >>> copied_columns(tasks).tolist()
    [0, 1, 0, 3]
    """
    found: dict[bytes, list[tuple[int, np.ndarray]]] = {}
    first = []
    for number, column in enumerate(_numbers(tasks)):
        words = column.view(np.uint64)
        few = found.setdefault(words[:: max(len(words) // FEW, 1)].tobytes(), [])
        same = (at for at, other in few if np.array_equal(words, other))
        first.append(next(same, number))
        if first[-1] == number:
            few.append((number, words))
    return np.array(first, np.int64)


def distinct_columns(tasks: TaskSet | Points) -> np.ndarray:
    """Return the mask of columns of (x, y) that are no copy of an earlier one."""
    first = copied_columns(tasks)
    return first == np.arange(len(first))


def rows_by_content(
    tasks: TaskSet | Points, salt: int = 0, distinct: np.ndarray | None = None
) -> np.ndarray:
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
    task = np.repeat(np.arange(len(tasks.sizes)), tasks.sizes)
    hashes = _hashes_of_rows(tasks, salt, distinct)
    # The largest row has the same place in every task: without its task's key it would come first
    # in all of them, or last.
    hashes = _mixed(hashes ^ np.repeat(_sums(hashes, tasks.offsets), tasks.sizes))
    order = np.lexsort((hashes, task))
    again = (hashes[order[1:]] == hashes[order[:-1]]) & (task[order[1:]] == task[order[:-1]])
    if not again.any():
        return order
    # Copies of a row would be neighbours, and halves would have the same number of each.
    place = np.arange(len(order))
    first = np.maximum.accumulate(np.where(np.append(False, again), 0, place))
    copies = (place - first).astype(np.uint64)
    hashes[order] = _mixed(hashes[order] ^ (copies * np.uint64(STEP)))
    return np.lexsort((hashes, task))


def in_content_order(
    points: Points, raw: TaskSet | Points | None = None, distinct: np.ndarray | None = None
) -> Points:
    """Return the points with the rows of each task in an order of their numbers alone.

    `raw` are the same rows before they were scaled, if they were; `distinct`: see
    `keys_by_content`.
    """
    order = rows_by_content(points if raw is None else raw, distinct=distinct)
    return points.pick(order, points.offsets)


def _numbers(tasks: TaskSet | Points) -> list[np.ndarray]:
    """Return the columns of x, unless it is sparse, and y, if there is one."""
    X, y = tasks.X, tasks.y
    return [*(X.T if isinstance(X, np.ndarray) else ()), *([] if y is None else [y])]


def _hashes_of_rows(
    tasks: TaskSet | Points, salt: int = 0, distinct: np.ndarray | None = None
) -> np.ndarray:
    """Return a hash (N,) of what each row is to the other rows of its task.

    Any two rows are the same to each other: the digits of y tell such tasks apart.
    """
    hashes, small = _hashes(tasks, tasks.offsets, salt, distinct), tasks.sizes <= 2
    if tasks.y is not None and small.any():
        _stir(hashes, np.frexp(tasks.y)[0], np.repeat(small, tasks.sizes))
    return hashes


def _hashes(
    tasks: TaskSet | Points, offsets: np.ndarray, salt: int = 0, distinct: np.ndarray | None = None
) -> np.ndarray:
    """Return a hash (N,) of the numbers in each row.

    A number counts as its place between the least and the largest of its column, within parts of
    the rows that begin at `offsets`: units and zeros of columns do not matter. Constant columns and
    copies of an earlier column are left out: a column that says nothing may be added.
    """
    edges = offsets[:-1][np.diff(offsets) > 0]
    edges = np.append(edges, offsets[-1])
    hashes = np.full(int(edges[-1] - edges[0]), (salt + 1) * STEP & WORD, np.uint64)
    columns: list[np.ndarray] = []
    if len(hashes):
        distinct = distinct_columns(tasks) if distinct is None else distinct
        columns = [c for c, read in zip(_numbers(tasks), distinct, strict=True) if read]
    for begin, end in pairwise(_cuts(edges)):
        here = slice(edges[begin], edges[end])
        starts, sizes = edges[begin:end] - edges[begin], np.diff(edges[begin : end + 1])
        for column in columns:
            part = np.ascontiguousarray(column[here])
            low, high = (f.reduceat(part, starts) / 2 for f in (np.minimum, np.maximum))
            varies = high > low
            span = np.repeat(np.where(varies, high - low, 1.0), sizes)
            place = (part / 2 - np.repeat(low, sizes)) / span  # halves: no overflow
            rows = slice(None) if varies.all() else np.repeat(varies, sizes)
            _stir(hashes[here], place, rows)
    return hashes


def _cuts(edges: np.ndarray) -> np.ndarray:
    """Return the parts, of rows between these edges, after which temporaries fill the cache."""
    most = max(int(edges[-1]) // ROWS, 1)
    ends = np.searchsorted(edges, np.linspace(edges[0], edges[-1], most + 1))
    return np.unique(ends)


def _stir(hashes: np.ndarray, column: np.ndarray, rows: Any) -> None:
    """Mix the numbers of some rows of a column into the hashes."""
    words = (np.rint(column[rows] * GRID) + 0.0).view(np.uint64)  # + 0.0: -0.0 is 0.0
    words ^= hashes[rows] + np.uint64(STEP)
    hashes[rows] = _mixed(words)


def _sums(hashes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    until = np.zeros(len(hashes) + 1, np.uint64)
    np.cumsum(hashes, out=until[1:])
    return np.diff(until[offsets])


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
