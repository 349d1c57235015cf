"""Split tasks into sets of tasks, and points within tasks into support and query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from condmeta.errors import DataError

_INTS = int | np.integer
_FLOATS = float | np.floating


def make_generator(random_state: Any = None) -> Any:
    """Return a random generator from a seed, a Generator, a RandomState or None (fresh)."""
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return np.random.default_rng(int(random_state))
    raise DataError(
        "The 'random_state' parameter must be a non-negative int, a NumPy Generator or "
        f"RandomState, or None. Got {random_state!r} instead."
    )


def task_parts(n_tasks: int, sizes: Any, random_state: Any = None) -> list[np.ndarray]:
    """Draw disjoint sets of task positions, each in increasing order.

    `sizes` are counts or fractions; one number means that many, and the rest. Fractions that sum
    to 1 use every task. Counts may sum to less than `n_tasks`: the other tasks are in no part.

    Examples
    --------
    >>> [part.size for part in task_parts(10, (0.5, 0.3, 0.2), random_state=0)]
    [5, 3, 2]
    """
    alone = isinstance(sizes, _INTS | _FLOATS)
    wanted: Sequence[Any] = [sizes] if alone else list(sizes)
    counts_given = all(isinstance(s, _INTS) and not isinstance(s, bool) for s in wanted)
    usable = all(isinstance(s, _INTS | _FLOATS) and s >= 0 for s in wanted)
    total = sum(wanted) if usable else -1
    if counts_given and usable and total <= n_tasks:
        ends = np.cumsum([int(s) for s in wanted])
    elif not counts_given and usable and total <= 1 + 1e-9:
        ends = np.floor(np.cumsum(wanted) * n_tasks + 0.5).astype(np.int64)
    else:
        raise DataError(
            f"The 'sizes' parameter of split_tasks must be counts that sum to at most {n_tasks} "
            f"(the number of tasks), or fractions that sum to at most 1. Got {sizes!r} instead."
        )
    if alone:
        ends = np.append(ends, n_tasks)
    shuffled = make_generator(random_state).permutation(n_tasks)
    starts = np.concatenate([[0], ends[:-1]])
    return [np.sort(shuffled[a:b]) for a, b in zip(starts, ends, strict=True)]


def task_rows(offsets: np.ndarray, at: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return the rows of the tasks at positions `at`, and their offsets among these.

    Rows that stand together are a slice.

    Examples
    --------
    >>> task_rows(np.array([0, 2, 3, 5]), np.array([2, 0]))
    (array([3, 4, 0, 1]), array([0, 2, 4]))
    """
    sizes = np.diff(offsets)[at]
    new = np.concatenate([[0], np.cumsum(sizes)])
    if at.size and (np.diff(at) == 1).all():
        return slice(offsets[at[0]], offsets[at[-1] + 1]), new
    return np.repeat(offsets[at] - new[:-1], sizes) + np.arange(new[-1]), new


def point_mask(
    offsets: np.ndarray, train: Any, how: str = "random", random_state: Any = None
) -> np.ndarray:
    """Choose the support points of every task: (N,) bool, True for support.

    `train` is a count (at most that many points a task) or a fraction in (0, 1), rounded half up
    in each task. `how="first"` takes the first rows, `"random"` a random subset.

    Examples
    --------
    >>> point_mask(np.array([0, 3, 4]), train=2, how="first").tolist()
    [True, True, False, True]
    """
    sizes = np.diff(offsets)
    if isinstance(train, _INTS) and not isinstance(train, bool) and train >= 0:
        wanted = np.minimum(sizes, int(train))
    elif isinstance(train, _FLOATS) and 0 < train < 1:
        wanted = np.floor(train * sizes + 0.5).astype(np.int64)
    else:
        raise DataError(
            "The 'train' parameter of split_points must be a count (an int of at least 0) or a "
            f"fraction (a float in (0, 1)). Got {train!r} instead."
        )
    if how not in ("random", "first"):
        raise DataError(
            f"The 'how' parameter of split_points must be 'random' or 'first'. Got {how!r} instead."
        )
    task_of_row = np.repeat(np.arange(sizes.size), sizes)
    rank = np.arange(task_of_row.size) - offsets[:-1][task_of_row]
    if how == "first":
        return rank < wanted[task_of_row]
    # sort each task's rows by a random key below 1, so that tasks stay apart: row order[i] gets
    # the rank of place i
    key = task_of_row + 0.999999 * make_generator(random_state).random(task_of_row.size)
    order = np.argsort(key, kind="stable")
    chosen = np.empty(task_of_row.size, bool)
    chosen[order] = rank < wanted[task_of_row]
    return chosen
