"""Fit a learner by statistics to tasks that come in parts, each task whole and once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from condmeta.errors import DataError
from condmeta.fitted.collect import collect
from condmeta.learners.inputs import read_tasks, read_training
from condmeta.learners.learn import begin, conclude
from condmeta.learners.parameters import check_learner
from condmeta.meta.task_statistics import TaskStatistics
from condmeta.meta.wide_tasks import WIDE
from condmeta.tasks import TaskSet


def fit_parts(learner: Any, parts: Iterator[TaskSet]) -> Any:
    """Fit a `ConditionalRidge` to parts that have no task in common; return it.

    Each part is reduced to statistics when it comes; then it is the fit of all tasks at once, with
    the same bits.
    """
    check_learner(learner)
    if learner.base is not None:
        raise DataError("A base needs the rows of all tasks at once: use fit, or base=None.")
    if learner.drift not in (None, "auto"):
        raise DataError("To learn drift, all rows are needed at once: use fit, or drift=None.")
    first = next(parts, None)
    if first is None:
        raise DataError("There are no rows.")
    given = read_training(learner, first, None, None, None)
    start = begin(learner, given)
    if start.reader.reads_points:
        raise DataError("Maps of a task's own points need all rows at once: fit the table whole.")
    if learner._kind_of_statistics(start.scales) is not TaskStatistics:
        raise DataError(
            f"A table of more than {WIDE} columns needs all rows at once: fit it whole, or set "
            "random='all'."
        )
    found = [collect(start, given.tasks, None)]
    for part in parts:
        tasks, _ = read_tasks(learner, start, part, None, None, None)
        found.append(collect(start, tasks, None))
    learner._model = conclude(learner, start._replace(state=TaskStatistics.joined(found)))
    return learner
