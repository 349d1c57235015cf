"""Learners by statistics: reduce tasks to their statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from condmeta.fitted.at_times import required_clock
from condmeta.fitted.prepared import raw_points, scaled_rows, user_points
from condmeta.fitted.starts import aligned_features
from condmeta.meta.task_statistics import TaskStatistics
from condmeta.meta.wide_tasks import WideTasks
from condmeta.tasks import TaskSet
from condmeta.tasks.points import Points
from condmeta.tasks.splits import first_halves
from condmeta.tasks.timed import Timed
from condmeta.tasks.weights import masses

if TYPE_CHECKING:
    from condmeta.fitted.fitted import Fitted


COLLECTED = TaskStatistics, WideTasks  # what a learner by statistics keeps of its tasks


def collect(
    fitted: Fitted, tasks: TaskSet, points: TaskSet | None, kind: Any = TaskStatistics, timed=False,
    keys: np.ndarray | None = None,
) -> Any:  # fmt: skip
    """Return the statistics of tasks, of one `kind`, and their side rows or features.

    With `timed`, also their rows with their times; `keys` are given if they are known.
    """
    raw = raw_points(tasks, fitted.scales)
    if not fitted.reader.reads_points:
        table = tasks.side
        if table is not None:
            table = table.take(tasks.ids[table.has(tasks.ids)])
        found = kind.of(tasks.ids, raw, table, keys=keys)
        if not timed:
            return found
        clock = required_clock(tasks.time, len(tasks.X), fitted.info.get("time"))
        return found._replace(history=Timed(*raw, clock))
    data, features = fitted.prepare(tasks, points), None
    if points is None and fitted.conditioning == "shared":

        def features(at, shown: Points):
            X, y, *_ = user_points(shown, fitted.scales)
            X, y = fitted.scales.rescaled(X), fitted.scales.target(y)
            own = (*fitted.scales.for_maps(X, y), shown.offsets, masses(shown.weight))
            return aligned_features(fitted, tasks.ids[at], tasks.side, own)

    elif points is None:  # the first half of a task's points only conditions
        raw, keys = raw.where(~first_halves(tasks.offsets)[0]), None
    return kind.of(tasks.ids, raw, None, data.Phi, features, keys=keys)


def history_rows(fitted: Fitted) -> Timed:
    """Return the rows of all tasks with their times, in the learner's units."""
    history = fitted.state.history
    return Timed(*scaled_rows(history.points, fitted.scales), history.time)
