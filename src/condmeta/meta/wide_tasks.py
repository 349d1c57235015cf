"""The rows of tasks of many columns: fewer numbers than statistics of columns by columns."""

from typing import NamedTuple, Self

import numpy as np

from condmeta.meta.task_statistics import refuse_known
from condmeta.persistence.fields import either, floats, ids, instance, integers, maybe
from condmeta.persistence.registry import register_tuple
from condmeta.tasks import TaskTable
from condmeta.tasks.points import Points
from condmeta.tasks.sparse_rows import SparseRows
from condmeta.tasks.splits import tasks_by_content
from condmeta.tasks.timed import offsets_rise

WIDE = 64  # columns, from which on tasks are kept as rows


@register_tuple(
    fields={
        "ids": ids("T"), "X": either(floats("N d"), instance("SparseRows", N="N", d="d")),
        "y": floats("N"), "offsets": integers("T+1", low=0),
        "weight": maybe(either(floats("N", low=0), floats("N 2", low=0))),
        "table": maybe(instance("TaskTable")), "Phi": maybe(floats("T k")),
    },
    rule=offsets_rise,
    by_task="drop",
)  # fmt: skip
class WideTasks(NamedTuple):
    """The rows of T tasks, in place of `TaskStatistics`, which has T d^2 numbers.

    Attributes
    ----------
    ids : (T,) object array
    X : (N, d) array, or SparseRows
    y, offsets, weight : as for `Points`
    table : TaskTable or None
        Raw side rows of the tasks that have one, if the map reads nothing else.
    Phi : (T, k) array or None
        Features, if the map reads points.
    """

    ids: np.ndarray
    X: np.ndarray | SparseRows
    y: np.ndarray
    offsets: np.ndarray
    weight: np.ndarray | None
    table: TaskTable | None
    Phi: np.ndarray | None

    @classmethod
    def of(cls, ids, points: Points, table=None, Phi=None, features=None, keys=None) -> Self:
        """Collect the tasks of one call (see `TaskStatistics.of`); they need no keys."""
        return cls(ids, *points, table, Phi)

    @property
    def whole(self) -> Points:
        """The rows of all tasks."""
        return Points(self.X, self.y, self.offsets, self.weight)

    def refuse_known(self, ids, remedy: str) -> None:
        """Raise if some ids are known already."""
        refuse_known(self.ids, ids, remedy)

    def join(self, other: Self) -> Self:
        """Return the tasks of both, which differ in their ids."""
        table = self.table if other.table is None else other.table
        if self.table is not None and other.table is not None:
            table = self.table.concat(other.table)
        Phi = None if self.Phi is None else np.concatenate([self.Phi, other.Phi])
        points = self.whole.join(other.whole)
        return type(self)(np.concatenate([self.ids, other.ids]), *points, table, Phi)

    def times(self, factor: np.ndarray) -> Self:
        """Return the rows (x, y) times a factor (d+1,)."""
        return self._replace(X=self.X * factor[:-1], y=self.y * factor[-1])

    def extend(self, at, points: Points) -> Self:
        """Return it with further points of the tasks at positions `at`."""
        return type(self)(self.ids, *self.whole.extend(at, points), self.table, self.Phi)

    def order(self) -> np.ndarray:
        """Return the positions of the tasks with points, in an order of their rows' numbers."""
        order = tasks_by_content(self.whole)
        return order[self.whole.sizes[order] > 0]
