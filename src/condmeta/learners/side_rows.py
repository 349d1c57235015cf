"""The side rows of tasks whose statistics are in files: find them, encode them block by block."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.fitted.side_reader import SideReader
from condmeta.fitted.tau import LinearTau
from condmeta.meta.stored_tasks import StoredTasks
from condmeta.meta.task_statistics import TaskStatistics
from condmeta.tasks import TaskTable
from condmeta.tasks.points import Points

FEATURES_AT_ONCE = 1 << 16  # tasks


class SideRows(NamedTuple):
    """The side rows of tasks.

    ids : (T,) the tasks with points, then those without: of the rows, then of the side table
    rows : (n,) the row of each task with points, -1 if it has none
    empty : (T - n,) the row of each task without points, -1 if it has none
    """

    ids: np.ndarray
    rows: np.ndarray
    empty: np.ndarray
    table: TaskTable | None

    @classmethod
    def of(cls, ids: np.ndarray, spare: np.ndarray, side: TaskTable | None) -> SideRows:
        """Find the rows of tasks with points, and of those without."""
        n = len(ids)
        ids = np.append(ids, spare) if len(spare) else ids
        if side is None:
            return cls(ids, np.full(n, -1), np.full(len(ids) - n, -1), None)
        rows, left = side.positions(ids), np.ones(side.n_tasks, bool)
        side = TaskTable.trusted(side.ids, side.data, side.backend)  # without its index
        left[rows[rows >= 0]] = False
        further = np.flatnonzero(left)
        return cls(np.append(ids, side.ids[further]), rows[:n], np.append(rows[n:], further), side)

    def require(self, reader: SideReader) -> None:
        """Raise if tasks with points lack side rows that a map reads."""
        if (self.rows < 0).any():
            reader.require_rows(self.ids[: len(self.rows)], self.table)

    def of_tasks(self, ids: np.ndarray) -> TaskTable | None:
        """Return the side rows of some tasks with points."""
        if self.table is None:
            return None
        n, wanted = len(self.rows), set(ids.tolist())
        rows = self.rows[np.fromiter((task in wanted for task in self.ids[:n]), bool, n)]
        return self.table.rows(rows[rows >= 0])

    def encode(
        self, reader: SideReader, at: np.ndarray
    ) -> tuple[SideReader, np.ndarray, np.ndarray]:
        """Learn the encodings; return the reader, and Phi of tasks with points, and without.

        `at` are the tasks with points by rising key: encodings are learned in this order.
        """
        rows, side = self.rows[at], self.table
        has = rows >= 0
        self.require(reader)
        reader = reader.refit(None if side is None else side.rows(rows[has]))
        zero = LinearTau(np.empty(0), np.zeros(len(reader.names)))
        Phi = np.empty((len(rows), len(reader.names)))
        for lo in range(0, len(rows), FEATURES_AT_ONCE):
            part = slice(lo, lo + FEATURES_AT_ONCE)
            some = None if side is None else side.rows(rows[part][has[part]])
            Phi[part] = reader.features(self.ids[at[part]], some, None, zero)
        if reader.map.reads_table and not has.all():
            Phi[~has] = Phi[has].mean(axis=0) if has.any() else 0.0
        empty = np.empty((0, Phi.shape[1]))
        if len(self.empty):
            spare = None if side is None else side.rows(self.empty[self.empty >= 0])
            mean = LinearTau(np.empty(0), Phi.mean(axis=0))
            empty = reader.features(self.ids[len(rows) :], spare, None, mean)
        return reader, Phi, empty

    def statistics(self, stored: StoredTasks) -> TaskStatistics:
        """Return the statistics of all tasks in memory, with their side rows."""
        state, n = stored.load(), len(self.rows)
        if len(self.empty):
            points = Points(
                np.empty((0, state.whole.mean.shape[1] - 1)), np.empty(0),
                np.zeros(len(self.empty) + 1, np.int64),
            )  # fmt: skip
            state = state.join(TaskStatistics.of(self.ids[n:], points))
        if self.table is None:
            return state
        have = np.append(self.rows, self.empty)
        have = have[have >= 0]
        return state._replace(table=self.table.rows(have))
