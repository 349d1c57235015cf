"""Divide the rows of tasks by their times: what was known before, and what came next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from condmeta.tasks.splits.tasks import task_rows
from condmeta.tasks.times import as_clock

if TYPE_CHECKING:
    from condmeta.tasks.taskset import TaskSet

MOST_STEPS = 30  # at which a held-out task is predicted, and blocks of later times
EARLY = 0.7  # share of the times of a fit, before known tasks are predicted


class Ahead(NamedTuple):
    """Tasks with the rows before a time, and the rows of that time."""

    before: TaskSet
    then: TaskSet


def in_time_order(tasks: TaskSet) -> TaskSet:
    """Return the tasks with the rows of each by rising time; those of one time keep their order."""
    task = np.repeat(np.arange(len(tasks)), tasks.sizes)
    order = np.lexsort([as_clock(tasks.time), task])
    return tasks._select(order, tasks.offsets, tasks.ids, tasks.side)


def steps_ahead(tasks: TaskSet) -> Iterator[Ahead]:
    """Yield for the first, second, ... time of each task its rows before and its rows then.

    Of more than 30 times of a task some are left out, rather late ones than early ones.
    """
    tasks = in_time_order(tasks)
    step = time_ranks(tasks)
    last = int(step.max(initial=-1))
    chosen = np.geomspace(1, last + 1, MOST_STEPS).round().astype(int) - 1
    for now in np.unique(np.append(chosen, np.arange(min(last + 1, MOST_STEPS // 3)))):
        at = np.unique(np.repeat(np.arange(len(tasks)), tasks.sizes)[step == now])
        part, rank = tasks.subset(at), step[task_rows(tasks.offsets, at)[0]]
        yield Ahead(part.where(rank < now), part.where(rank == now))


def time_ranks(tasks: TaskSet) -> np.ndarray:
    """Return for each row (N,) how many earlier times its task has; rows are in time order."""
    clock = as_clock(tasks.time)
    new = np.append(False, np.diff(clock) > 0)
    new[tasks.offsets[:-1][tasks.sizes > 0]] = False
    total = np.cumsum(new)
    start = np.append(total, 0)[tasks.offsets[:-1]]
    return total - np.repeat(start, tasks.sizes)


def known_tasks_ahead(tasks: TaskSet) -> Iterator[Ahead]:
    """Yield the rows before each later time, and the rows then, of tasks known from the start.

    The first 70 % of the times are the start: the first `before` has them alone. More than 30 later
    times are divided into 30 blocks.
    """
    clock = as_clock(tasks.time)
    times = np.unique(clock)
    first = int(EARLY * len(times))
    if not 0 < first < len(times):
        return
    known = np.flatnonzero(tasks.where(clock < times[first]).sizes > 0)
    tasks, clock = tasks.subset(known), clock[task_rows(tasks.offsets, known)[0]]
    for block in np.array_split(times[first:], min(MOST_STEPS, len(times) - first)):
        then = tasks.where((clock >= block[0]) & (clock <= block[-1]))
        then = then.subset(np.flatnonzero(then.sizes > 0))
        if len(then):
            yield Ahead(tasks.where(clock < block[0]), then)
