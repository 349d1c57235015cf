"""What the one hook of a learner reads and returns: `_learn(data: Training) -> Learned`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from condmeta.fitted.scales import Scales
from condmeta.fitted.tau import KernelTau, LinearTau
from condmeta.meta.task_statistics import TaskStatistics
from condmeta.meta.wide_tasks import WideTasks
from condmeta.tasks import TaskSet
from condmeta.tasks.points import Points
from condmeta.tasks.splits import first_halves, in_content_order, tasks_by_content


class Training(NamedTuple):
    """What a learner learns from: T tasks, all of which have rows.

    Attributes
    ----------
    tasks : TaskSet or None
        The tasks as the user gave them.
    given_points : TaskSet or None
        Separate conditioning points.
    ids : (T,) array
    rows : Points or None
        Their points in the learner's units.
    Phi : (T, k) array, or what a kernel reads of T tasks
    scales : Scales
    features : callable or None
        `features(at, points)` returns Phi of the tasks at positions `at` if they show these points
        only; None if Phi does not depend on the task's own points.
    kernel : kernel or None
        The kernel that reads Phi.
    statistics : TaskStatistics, WideTasks or None
        In place of `tasks` and `rows`, for a learner with `_by_statistics`; tasks without rows are
        among them.
    names : list of str
        Names of the columns of scaled rows, with `statistics`.
    """

    tasks: TaskSet | None
    given_points: TaskSet | None
    ids: np.ndarray
    rows: Points | None
    Phi: Any
    scales: Scales
    features: Callable[..., Any] | None = None
    kernel: Any = None
    statistics: TaskStatistics | WideTasks | None = None
    names: Sequence[str] = ()

    @classmethod
    def of_statistics(
        cls, statistics: Any, Phi: Any, scales: Scales, names: Sequence[str] = ()
    ) -> Training:
        """Return statistics of tasks as a learner with `_by_statistics` reads them."""
        return cls(
            tasks=None, given_points=None, ids=statistics.ids, rows=None, Phi=Phi, scales=scales,
            statistics=statistics, names=names,
        )  # fmt: skip

    def by_content(self, most: int | None = None) -> tuple[np.ndarray, Points]:
        """Return the positions of at most `most` tasks, and their points, to choose settings on.

        Tasks and rows are in an order of the rows' numbers alone: neither ids nor the order of the
        input matter.
        """
        raw = self.tasks
        if len(raw.y) > len(self.rows.y):  # the first halves condition
            raw = raw.where(~first_halves(raw.offsets)[0])
        order = tasks_by_content(raw)[:most]
        return order, in_content_order(self.rows, raw).take(order)


class Learned(NamedTuple):
    """What a learner learns: the map, the inner algorithm, and the learner's own attributes.

    `state` is what a stream continues from.
    """

    tau: LinearTau | KernelTau
    inner: Any
    info: dict[str, Any] = {}
    state: Any = None
