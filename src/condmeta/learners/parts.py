"""Fit `ConditionalRidge` to tasks that come in parts, each task whole and once.

A part is reduced to statistics, which go to a file. The prior and the models are then learned from
the files, leaf after leaf: the fit of all tasks in memory, with the same bits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.collect import collect
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.scales import Scales
from condmeta.fitted.side_reader import SideReader
from condmeta.fitted.starts import with_cold_start
from condmeta.fitted.task_store import TaskStore, narrow
from condmeta.fitted.tau import LinearTau
from condmeta.inner.scatter import Scatter
from condmeta.learners.inputs import read_tasks, read_training
from condmeta.learners.learn import Training, begin, conclude, settled
from condmeta.learners.parameters import check_learner, is_auto
from condmeta.meta.blocks import LEAF
from condmeta.meta.stored_tasks import Here, Runner, StoredTasks
from condmeta.meta.task_files import Piece, distinct_in_all, write_piece
from condmeta.meta.task_statistics import TaskStatistics, scaled_packed
from condmeta.meta.trained_tasks import RawBlock
from condmeta.meta.wide_tasks import WIDE
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.points import Points
from condmeta.tasks.splits import copied_columns

log = logging.getLogger("condmeta")
NEED_ALL_ROWS = {
    "base": "A base", "x_transform": "A transformer of X", "y_transform": "A transform of y",
}  # fmt: skip
FEATURES_AT_ONCE = 1 << 16  # tasks


ReadSide = Callable[[], TaskTable | None]


def no_side() -> None:
    """Return no side rows."""


def fit_parts(
    learner: Any, parts: Iterable[TaskSet], folder: Path, read_side: ReadSide = no_side,
    runner: Runner | None = None, keep: int = 0,
) -> Any:  # fmt: skip
    """Fit a learner to parts without side information, which have no task in common; return it.

    Parameters
    ----------
    parts : iterable, which may be gone through twice
    read_side : callable
        It returns the side rows of all tasks, or None, after the last part; tasks without points
        are kept.
    folder : Path
        Where statistics are written; files of these names are replaced.
    keep : int
        The largest size of statistics, in bytes, that the model keeps: without them it cannot be
        updated.
    """
    check_learner(learner)
    start: Fitted | None = None

    def reduced(distinct: np.ndarray | None) -> Iterator[tuple[Piece, TaskStatistics]]:
        nonlocal start
        for number, tasks in enumerate(parts):
            start = start_with(learner, tasks) if start is None else start
            path = folder / f"piece-{number:06d}"
            yield reduce_part(learner, start, tasks, path, distinct)

    pieces, sampled = join_reduced(reduced)
    stored = StoredTasks.merge(folder, sampled, pieces, runner or Here())
    del pieces  # they hold all ids
    learner._model = learn_stored(learner, start, stored, read_side, keep)
    return learner


def join_reduced(
    reduced: Callable[[np.ndarray | None], Iterable[tuple[Piece, TaskStatistics]]],
) -> tuple[list[Piece], TaskStatistics]:
    """Return the pieces of all parts, and the statistics of the sample.

    Keys leave out columns that are copies of others. If a column is a copy in some parts alone, all
    parts are reduced once more: `reduced(mask of the columns that keys are made of)`.
    """
    distinct = None
    while True:
        pieces, sampled = [], None
        for piece, more in reduced(distinct):
            pieces.append(piece)
            sampled = more if sampled is None else sampled.join(more).sampled()
        if sampled is None:
            raise DataError("There are no rows.")
        wanted = distinct_in_all(pieces)
        if distinct is not None or all(piece.has_keys_of(wanted) for piece in pieces):
            return pieces, sampled
        log.info("summing up the rows once more: a column is a copy in some parts alone")
        distinct = wanted


def start_with(learner: Any, first: TaskSet) -> Fitted:
    """Return the value that statistics are collected with, from the tasks of the first part."""
    for name, what in NEED_ALL_ROWS.items():
        if not (getattr(learner, name) is None or is_auto(getattr(learner, name))):
            raise DataError(f"{what} needs the rows of all tasks at once: use fit, or {name}=None.")
    if learner.drift not in (None, "auto"):
        raise DataError("To learn drift, all rows are needed at once: use fit, or drift=None.")
    start = begin(learner, read_training(learner, first, None, None, None))
    if start.reader.reads_points:
        raise DataError("Maps of a task's own points need all rows at once: fit the table whole.")
    if learner._kind_of_statistics(start.scales) is not TaskStatistics:
        raise DataError(
            f"A table of more than {WIDE} columns needs all rows at once: fit it whole, or set "
            "random='all'."
        )
    return start


def reduce_part(
    learner: Any, start: Fitted, tasks: TaskSet, path: Path | str,
    distinct: np.ndarray | None = None,
) -> tuple[Piece, TaskStatistics]:  # fmt: skip
    """Write the statistics of whole tasks to a file; return it, and those of its sample.

    `distinct`: see `TaskStatistics.of`.
    """
    tasks, _ = read_tasks(learner, start, tasks, None, None, None)
    spare = tasks.ids[tasks.sizes == 0]  # all rows of these tasks have weight 0
    tasks = tasks.subset(np.flatnonzero(tasks.sizes)) if len(spare) else tasks
    found = collect(start, tasks, None, distinct=distinct)
    varies = np.append(np.ptp(tasks.X, axis=0), np.ptp(tasks.y)) > 0
    about = {"copied": copied_columns(tasks), "varies": varies}
    return write_piece(path, found)._replace(spare=spare, **about), found.sampled()


def learn_stored(
    learner: Any, start: Fitted, stored: StoredTasks, read_side: ReadSide, keep: int = 0
) -> Fitted:
    """Return the fitted value of tasks whose statistics are in files (see `learn.conclude`)."""
    sides = SideRows.of(stored.ids, stored.spare, read_side())
    if learner.random not in ("auto", "all"):  # shared coefficients are learned in memory
        return conclude(learner, start._replace(state=sides.statistics(stored)))
    log.info("encoding the side information")
    reader, Phi, Phi_empty = sides.encode(start.reader, stored.at)
    stored = stored.with_features(Phi)
    kept = stored.nbytes <= keep
    ids, sides = sides.ids, sides if kept else None
    del Phi
    scales = start.scales.moved_to(Scales.of_moments(*stored.moments, start.scales))
    start = start._replace(predictor=start.predictor._replace(scales=scales), reader=reader)
    log.info("learning from %s tasks", f"{len(stored):,}")
    names = scales.names(start.columns.names)
    data = Training(None, None, stored.ids, None, None, scales, statistics=stored, names=names)
    fitted = settled(start, learner._learn(data))._replace(n_tasks=len(stored))
    if learner.keep_tasks:
        log.info("solving the tasks")
        fitted = fitted._replace(tasks=solve_stored(fitted, stored, ids, Phi_empty))
    if sides is not None:
        return fitted._replace(state=sides.statistics(stored))
    log.info("the statistics of the tasks, %s MB, are not kept", f"{stored.nbytes / 1e6:,.0f}")
    return fitted


def solve_stored(fitted: Fitted, stored: StoredTasks, ids: Any, Phi_empty: Any) -> TaskStore:
    """Return the models of all tasks, leaf after leaf; those without points come last."""
    T, how = len(ids), (fitted.tau, fitted.scales, fitted.inner)
    theta, coef = np.empty((T, fitted.scales.width)), np.empty((T, fitted.scales.width))
    Phi, count = np.empty((T, Phi_empty.shape[1])), np.zeros(T, stored.sampled.whole.count.dtype)
    for at, *found in stored.map_blocks(solve_block, *how):
        count[at], theta[at], coef[at], Phi[at] = found
    for lo in range(len(stored), T, LEAF):
        at = slice(lo, lo + LEAF)
        Phi[at] = Phi_empty[lo - len(stored) : lo - len(stored) + LEAF]
        block = RawBlock(no_statistics(len(Phi[at]), len(fitted.scales.x_mean)), None, Phi[at])
        _, theta[at], solved, _ = solve_block(block, *how)
        coef[at] = with_cold_start(fitted, solved, Phi[at], np.zeros(len(solved)))
    return TaskStore(ids, count, theta, coef, Phi=narrow(Phi))


def solve_block(raw: RawBlock, tau: LinearTau, scales: Scales, inner: Any) -> tuple:
    """Return the number of points, theta, the model and the features of each task."""
    theta = tau.theta(raw.Phi)
    stats = scaled_packed(raw.scatter, scales, raw.at)
    count = raw.scatter.count if raw.at is None else raw.scatter.count[raw.at]
    how = {} if tau.noise is None else {"factors": tau.noise_factors(raw.Phi)}
    return count.copy(), theta, inner.posterior(stats, theta, **how).mean, raw.Phi.copy()


def no_statistics(n_tasks: int, d: int) -> Scatter:
    """Return the statistics of tasks without points."""
    offsets = np.zeros(n_tasks + 1, np.int64)
    return Scatter.of(np.empty((0, d)), np.empty(0), offsets)


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

    def encode(
        self, reader: SideReader, at: np.ndarray
    ) -> tuple[SideReader, np.ndarray, np.ndarray]:
        """Learn the encodings; return the reader, and Phi of tasks with points, and without.

        `at` are the tasks with points by rising key: encodings are learned in this order.
        """
        rows, side = self.rows[at], self.table
        has = rows >= 0
        if not has.all():
            reader = reader.refit(None) if side is None else reader
            reader.find_rows(self.ids[: len(rows)], side)  # an error names tasks as they came
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
