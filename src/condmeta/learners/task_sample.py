"""A sample of whole tasks, those with the smallest keys: the same one wherever the rows are.

Keys are hashes of the tasks' rows. The sample serves where a fit needs rows, and statistics of each
task do not suffice: for transformations of x and y, or for a whole prior.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.learners.checks import drop_weightless
from condmeta.meta.task_statistics import without_ties
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.splits import keys_by_content

TASKS, ROWS = 10_000, 2_000_000  # the most that a sample has, unless the caller says how many
LARGEST_KEY = np.uint64(0xFFFFFFFFFFFFFFFF)


class KeyedTasks(NamedTuple):
    """Tasks by their keys, without their rows: ids, keys (T,) and numbers of rows (T,)."""

    ids: np.ndarray
    keys: np.ndarray
    sizes: np.ndarray

    @classmethod
    def joined(cls, parts: Sequence[KeyedTasks]) -> KeyedTasks:
        """Return the tasks of all parts."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    def where(self, mask: np.ndarray) -> KeyedTasks:
        """Return the tasks that a mask (T,) selects."""
        return KeyedTasks(*(part[mask] for part in self))


def keyed_tasks(tasks: TaskSet) -> KeyedTasks:
    """Return the keys of the tasks of a part; a task whose rows all have weight 0 has no rows."""
    tasks = drop_weightless(tasks)
    return KeyedTasks(tasks.ids, without_ties(keys_by_content(tasks), tasks.ids), tasks.sizes)


def largest_key(found: KeyedTasks, n_tasks: int | None = None) -> np.uint64:
    """Return the largest key of the sample, of `n_tasks` tasks if this is given."""
    order = np.argsort(found.keys, kind="stable")
    order = order[found.sizes[order] > 0]
    if not len(order):
        raise DataError("Every weight is zero: there is nothing to learn from.")
    if n_tasks is None:
        rows = np.cumsum(found.sizes[order])
        n_tasks = max(min(TASKS, int(np.searchsorted(rows, ROWS, "right"))), 1)
    return found.keys[order[: max(int(n_tasks), 1)][-1]]


def sample_of(tasks: TaskSet, limit: np.uint64) -> tuple[np.ndarray, TaskSet]:
    """Return the tasks of a part with keys up to a limit, and their keys."""
    tasks = drop_weightless(tasks)
    return tasks_up_to(keyed_tasks(tasks), tasks, limit)


def tasks_up_to(found: KeyedTasks, tasks: TaskSet, limit: np.uint64) -> tuple[np.ndarray, TaskSet]:
    """Return the keys up to a limit, and their tasks; `found` has the keys of `tasks`."""
    at = np.flatnonzero((found.keys <= limit) & (found.sizes > 0))
    return found.keys[at], tasks.subset(at)


def sampled(found: KeyedTasks, tasks: TaskSet) -> TaskSet:
    """Return the sample of tasks in memory, by rising key; `found` has their keys."""
    return joined([tasks_up_to(found, tasks, largest_key(found))])


def joined(parts: Sequence[tuple[np.ndarray, TaskSet]]) -> TaskSet:
    """Return the tasks of all parts, by rising key."""
    keys, sets = zip(*parts, strict=True)
    order, first = np.argsort(np.concatenate(keys), kind="stable"), sets[0]
    if len(sets) == 1:
        return first.subset(order)
    weight = None if first.weight is None else np.concatenate([tasks.weight for tasks in sets])
    tasks = TaskSet.trusted(
        np.concatenate([tasks.X for tasks in sets]), np.concatenate([tasks.y for tasks in sets]),
        np.concatenate([[0], np.cumsum(np.concatenate([tasks.sizes for tasks in sets]))]),
        np.concatenate([tasks.ids for tasks in sets]), None, weight,
        feature_names=first.feature_names, target_name=first.target_name,
        task_name=first.task_name, backend=first.backend,
    )  # fmt: skip
    return tasks.subset(order)


class Candidates(NamedTuple):
    """The tasks of a part that may belong to the sample; their rows are in a file."""

    path: str
    found: KeyedTasks

    @classmethod
    def write(cls, path: str, found: KeyedTasks, tasks: TaskSet, bound: np.uint64) -> Candidates:
        """Write the sample of a part, if the sample of all tasks has no key above a bound."""
        if len(found.ids):
            keys, few = tasks_up_to(found, tasks, min(bound, largest_key(found)))
            found = KeyedTasks(few.ids, keys, few.sizes)
            write_value(path, (keys, few))
        return cls(path, found)


def narrowed(near: Sequence[KeyedTasks], more: KeyedTasks) -> tuple[list[KeyedTasks], np.uint64]:
    """Return the sample of the tasks so far, and a bound on the keys of the sample of all tasks."""
    found = KeyedTasks.joined([*near, more])
    if not len(found.ids):
        return [], LARGEST_KEY
    limit = largest_key(found)
    few = found.where(found.keys <= limit)
    return [few], limit if len(few.ids) < len(found.ids) else LARGEST_KEY


def read_candidates(path: str, limit: np.uint64) -> tuple[np.ndarray, TaskSet]:
    """Return the keys up to a limit, and their tasks, of a file of candidates."""
    keys, tasks = pickle.loads(Path(path).read_bytes())
    return tasks_up_to(KeyedTasks(tasks.ids, keys, tasks.sizes), tasks, limit)


def with_side(tasks: TaskSet, side: TaskTable | None) -> TaskSet:
    """Return tasks with their side rows."""
    return tasks if side is None else tasks.with_side(rows_of(side, tasks.ids))


def rows_of(side: TaskTable | None, ids: np.ndarray) -> TaskTable | None:
    """Return the side rows of some tasks."""
    return None if side is None else side.take(ids[side.has(ids)])


def write_value(path: Path | str, value: Any) -> str:
    """Write a value to a file, which is complete or not there; return its path."""
    part = f"{path}.{os.getpid()}.part"
    Path(part).write_bytes(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    os.replace(part, path)
    return str(path)
