"""The rows of known tasks, of a learner whose posteriors are no sums over points.

Counts, shares and classes have no statistics from which the model of a task follows. To add points
to a task exactly, its rows are kept, and the task is solved again. With the side table they are all
that a fit needs, so that further tasks can be learned from as well (`Gathered`).
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from condmeta.persistence.fields import either, floats, instance, integers, maybe, optional
from condmeta.persistence.registry import register_tuple
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.points import Points
from condmeta.tasks.timed import offsets_rise


@register_tuple(
    fields={
        "X": floats("N d"), "y": floats("N"), "offsets": integers("T+1", low=0),
        "weight": maybe(either(floats("N", low=0), floats("N 2", low=0))),
        "table": optional(maybe(instance("TaskTable"))),
    },
    rule=offsets_rise,
)  # fmt: skip
class KeptRows(NamedTuple):
    """Rows of T tasks as in `prepared.raw_points`, in the order of the task models.

    Their units are powers of two, so that a fit to them has the bits of the first fit.
    table : TaskTable or None, the raw side information of the tasks.
    """

    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    weight: np.ndarray | None
    table: TaskTable | None = None

    @property
    def points(self) -> Points:
        """The rows as points."""
        return Points(*self[:4])

    def extend(self, at: np.ndarray, more: Points) -> Self:
        """Return it with further rows of the tasks at positions `at`."""
        return type(self)(*self.points.extend(at, more), self.table)

    def join(self, more: Points, table: TaskTable | None) -> Self:
        """Return it with the rows and the side information of further tasks."""
        return type(self)(*self.points.join(more), joined_tables(self.table, table))


class Gathered(NamedTuple):
    """All rows of tasks in the user's units, with labels as numbers: nothing is learned yet."""

    tasks: TaskSet

    def join(self, more: TaskSet) -> Self:
        """Return it with further tasks, which have other ids."""
        ours, theirs = (Points(t.X, t.y, t.offsets, t.weight) for t in (self.tasks, more))
        X, y, offsets, weight = ours.join(theirs)
        ids = np.concatenate([self.tasks.ids, more.ids])
        side = joined_tables(self.tasks.side, more.side)
        names = "feature_names", "task_name", "backend"
        named = {name: getattr(self.tasks, name) for name in names}
        return type(self)(TaskSet.trusted(X, y, offsets, ids, side, weight, **named))


def joined_tables(table: TaskTable | None, more: TaskTable | None) -> TaskTable | None:
    """Return the rows of both side tables; of a task in both, that of the first."""
    if table is None or more is None:
        return more if table is None else table
    new = more.ids[~table.has(more.ids)]
    return table.concat(more.take(new)) if len(new) else table
