"""Divide sets of tasks: random parts and folds."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from condmeta.tasks.messages import bad_parameter

FOLDS = 5  # that settings are chosen on
INTS = int | np.integer
FLOATS = float | np.floating


def make_generator(random_state: Any = None) -> Any:
    """Return a random generator from a seed, a Generator, a RandomState or None (fresh)."""
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, INTS) and random_state >= 0:
        return np.random.default_rng(int(random_state))
    valid = "a non-negative int, a NumPy Generator or RandomState, or None"
    raise bad_parameter("random_state", valid, random_state)


def task_parts(n_tasks: int, sizes: Any, random_state: Any = None) -> list[np.ndarray]:
    """Draw disjoint sets of task positions, each in increasing order.

    `sizes` are counts or fractions; one number means that many, and the rest. Fractions that sum
    to 1 use every task. Counts may sum to less than `n_tasks`: the other tasks are in no part.

    Examples
    --------
    >>> [part.size for part in task_parts(10, (0.5, 0.3, 0.2), random_state=0)]
    [5, 3, 2]
    """
    alone = isinstance(sizes, INTS | FLOATS)
    wanted: Sequence[Any] = [sizes] if alone else list(sizes)
    counts_given = all(isinstance(s, INTS) and not isinstance(s, bool) for s in wanted)
    usable = all(isinstance(s, INTS | FLOATS) and s >= 0 for s in wanted)
    total = sum(wanted) if usable else -1
    if counts_given and usable and total <= n_tasks:
        ends = np.cumsum([int(s) for s in wanted])
    elif not counts_given and usable and total <= 1 + 1e-9:
        ends = np.floor(np.cumsum(wanted) * n_tasks + 0.5).astype(np.int64)
    else:
        valid = f"counts that sum to at most {n_tasks} (the number of tasks), or fractions that"
        raise bad_parameter("sizes of split_tasks", f"{valid} sum to at most 1", sizes)
    if alone:
        ends = np.append(ends, n_tasks)
    shuffled = make_generator(random_state).permutation(n_tasks)
    starts = np.concatenate([[0], ends[:-1]])
    return [np.sort(shuffled[a:b]) for a, b in zip(starts, ends, strict=True)]


def task_rows(offsets: np.ndarray, at: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return the rows of the tasks at positions `at`, and their offsets among these.

    Adjacent tasks in rising order give a slice, so that no rows are copied.

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


def fold_numbers(n_tasks: int) -> np.ndarray:
    """Return the fold (T,) in which each task is held out: 0, 1, .., 4, 0, 1, ..."""
    return np.arange(n_tasks) % FOLDS


def task_keys(ids: np.ndarray) -> np.ndarray:
    """Return hashes (T,) of the ids, the same in every process."""
    from hashlib import blake2b  # slow to import

    hashes = (
        blake2b(f"{type(task).__name__}:{task!r}".encode(), digest_size=8).digest()
        for task in ids.tolist()
    )
    return np.frombuffer(b"".join(hashes), dtype="<u8").astype(np.uint64)
