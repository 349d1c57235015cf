"""Fit `ConditionalRidge` to tasks that come in parts, each task whole and once.

A part is reduced to statistics, which go to a file. The prior and the models are then learned from
the files, leaf after leaf: the fit of all tasks in memory, with the same bits. What x and y become
is settled before, on the rows of the tasks with the smallest keys.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.prepared import raw_points
from condmeta.fitted.scales import Scales
from condmeta.fitted.solve import solve_stored
from condmeta.learners.checks import refuse_weighing
from condmeta.learners.copies import with_fitted
from condmeta.learners.form import Form
from condmeta.learners.gathered import refuse_base
from condmeta.learners.inputs import Inputs, read_tasks, read_training
from condmeta.learners.learn import begin, conclude, with_learned
from condmeta.learners.parameters import check_learner
from condmeta.learners.side_rows import SideRows
from condmeta.learners.task_sample import (
    LARGEST_KEY,
    Candidates,
    KeyedTasks,
    joined,
    largest_key,
    narrowed,
    read_candidates,
)
from condmeta.learners.training import Training
from condmeta.learners.transforms import choose_transforms, put_on_scale
from condmeta.meta.stored_tasks import Here, Runner, StoredTasks
from condmeta.meta.task_files import Piece, distinct_in_all, write_piece
from condmeta.meta.task_statistics import TaskStatistics, without_ties
from condmeta.meta.wide_tasks import WIDE
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.splits import copied_columns, keys_by_content
from condmeta.tasks.weights import repeats

log = logging.getLogger("condmeta")

ReadSide = Callable[[], TaskTable | None]


class Reduction(NamedTuple):
    """How parts are reduced to statistics.

    start : what statistics are collected with
    samples : whether candidates for the sample of rows are written
    distinct : see `TaskStatistics.of`
    """

    start: Fitted
    samples: bool = False
    distinct: np.ndarray | None = None


class Reduced(NamedTuple):
    """A part of the rows, reduced to statistics.

    piece : the statistics of its tasks, in a file
    sampled : those of the tasks with the smallest keys; None where they were joined
    candidates : tasks that may belong to the sample of rows; None if they are not wanted
    ends : the least and the largest label
    """

    piece: Piece
    sampled: TaskStatistics | None
    candidates: Candidates | None
    ends: tuple[float, float]


Reduce = Callable[[Reduction], Iterable[Reduced]]


def no_side() -> None:
    """Return no side rows."""


def fit_parts(
    learner: Any, parts: Iterable[TaskSet], folder: Path, read_side: ReadSide = no_side,
    runner: Runner | None = None, keep: int = 0,
) -> Any:  # fmt: skip
    """Fit a learner to parts without side information, which have no task in common; return it.

    Parameters
    ----------
    parts : iterable, which may be gone through several times
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
    first = next(iter(parts), None)
    if first is None:
        raise DataError("There are no rows.")

    def reduced(how: Reduction) -> Iterator[Reduced]:
        near, bound = [], LARGEST_KEY
        for number, tasks in enumerate(parts):
            found = reduce_part(tasks, learner, how, str(folder / f"piece-{number:06d}"), bound)
            if found.candidates is not None:
                near, bound = narrowed(near, found.candidates.found)
            yield found

    how = folder, read_side, runner or Here(), keep
    return with_fitted(learner, learn_parts(learner, start_with(first, learner), reduced, *how))


def learn_parts(
    learner: Any, start: Fitted, reduced: Reduce, folder: Path, read_side: ReadSide,
    runner: Runner, keep: int = 0,
) -> Fitted:  # fmt: skip
    """Return the fitted value of parts that `reduced` reduces to statistics (see `fit_parts`).

    If x or y is transformed, the parts are reduced once more: how is settled on a sample of rows.
    """
    named = Form(learner.x_transform, learner.y_transform)
    samples = any(value is not None for value in named)
    parts, sampled = join_reduced(reduced, Reduction(start, samples))
    every = ([getattr(part.piece, name) for part in parts] for name in ("ids", "spare"))
    sides = [SideRows.of(*map(np.concatenate, every), read_side())]
    if samples:
        sides[0].require(start.reader)
        tasks = sample_of_parts(parts, runner)
        log.info("choosing the transformations on %s tasks", f"{len(tasks):,}")
        table, ends = sides[0].of_tasks(tasks.ids), ends_of(parts)
        tasks = tasks if table is None else tasks.with_side(table)
        given = choose_transforms(learner, named, Inputs(tasks, None, start.columns, None), ends)
        if any(value is not None for value in given.form):
            log.info("transforming the rows")
            start = require_statistics(learner, begin(learner, put_on_scale(given)))
            parts, sampled = join_reduced(reduced, Reduction(start))
        else:
            start = start._replace(info=start.info | given.chosen_form())
    stored = StoredTasks.merge(folder, sampled, [part.piece for part in parts], runner)
    del parts  # they hold all ids
    return learn_stored(learner, start, stored, sides.pop, keep)


def join_reduced(reduced: Reduce, how: Reduction) -> tuple[list[Reduced], TaskStatistics]:
    """Return all parts, and the statistics of the sample.

    Keys leave out columns that are copies of others. If a column is a copy in some parts alone, all
    parts are reduced once more.
    """
    while True:
        parts, sampled = [], None
        for part in reduced(how):
            more = part.sampled
            sampled = more if sampled is None else sampled.join(more).sampled()
            parts.append(part._replace(sampled=None))
        pieces = [part.piece for part in parts]
        if not any(len(piece.ids) for piece in pieces):
            raise DataError("Every weight is zero: there is nothing to learn from.")
        wanted = distinct_in_all(pieces)
        if how.distinct is not None or all(piece.has_keys_of(wanted) for piece in pieces):
            return parts, sampled
        log.info("summing up the rows again: a column is a copy of another one in some parts only")
        how = how._replace(distinct=wanted)


def sample_of_parts(parts: Sequence[Reduced], runner: Runner) -> TaskSet:
    """Return the sample of the tasks of all parts, by rising key; remove the candidates."""
    every = [part.candidates for part in parts]
    limit = largest_key(KeyedTasks.joined([some.found for some in every]))
    jobs = [(some.path, limit) for some in every if (some.found.keys <= limit).any()]
    tasks = joined(list(runner.map(read_candidates, jobs)))
    for some in every:
        Path(some.path).unlink(missing_ok=True)
    return tasks


def ends_of(parts: Sequence[Reduced]) -> tuple[float, float]:
    """Return the least and the largest label of all parts."""
    low, high = zip(*(part.ends for part in parts), strict=True)
    return min(low), max(high)


def start_with(first: TaskSet, learner: Any) -> Fitted:
    """Return the value that statistics are collected with, from the tasks of the first part.

    Nothing is transformed. If none of its rows counts, all do: another part has some that do.
    """
    if first.weight is not None and not repeats(first.weight).any():
        first = TaskSet.trusted(
            first.X, first.y, first.offsets, first.ids, feature_names=first.feature_names,
            target_name=first.target_name, task_name=first.task_name, backend=first.backend,
        )  # fmt: skip
    refuse_base(learner)
    refuse_weighing(learner)
    if learner.drift not in (None, "auto"):
        raise DataError("To learn drift, all rows are needed at once: use fit, or drift=None.")
    start = begin(learner, read_training(learner, first, None, None, None))
    if start.reader.reads_points:
        raise DataError("Maps of a task's own points need all rows at once: fit the table whole.")
    return require_statistics(learner, start)


def require_statistics(learner: Any, start: Fitted) -> Fitted:
    """Raise if a learner keeps rows of so many columns, not statistics; return the value."""
    if learner._kind_of_statistics(start.scales) is not TaskStatistics:
        raise DataError(
            f"A table of more than {WIDE} columns needs all rows at once: fit it whole, or set "
            "random='all'."
        )
    return start


def reduce_part(
    tasks: TaskSet, learner: Any, how: Reduction, path: str, bound: np.uint64 = LARGEST_KEY
) -> Reduced:
    """Write the statistics of whole tasks to a file; return it, and those of its sample.

    The sample of rows has no key above the bound.
    """
    start = how.start
    tasks, _ = read_tasks(learner, start, tasks, None, None, None)
    spare = tasks.ids[tasks.sizes == 0]  # all rows of these tasks have weight 0
    tasks = tasks.subset(np.flatnonzero(tasks.sizes)) if len(spare) else tasks
    points = raw_points(start.past_shared_model(tasks), start.scales)
    found = TaskStatistics.of(tasks.ids, points, distinct=how.distinct)
    candidates = None
    if how.samples:
        keys = found.keys
        if start.scales.scale == "rows":  # points are not the rows as they came
            keys = without_ties(keys_by_content(tasks, how.distinct), tasks.ids)
        some = KeyedTasks(tasks.ids, keys, tasks.sizes)
        candidates = Candidates.write(f"{path}-sample", some, tasks, bound)
    low, high = (
        np.append(end(points.X, axis=0, initial=far), end(tasks.y, initial=far))
        for end, far in ((np.min, np.inf), (np.max, -np.inf))
    )
    about = {"spare": spare, "copied": copied_columns(points), "varies": high > low}
    piece = write_piece(path, found)._replace(**about)
    return Reduced(piece, found.sampled(), candidates, (low[-1], high[-1]))


def learn_stored(
    learner: Any, start: Fitted, stored: StoredTasks, take_sides: Callable[[], SideRows],
    keep: int = 0,
) -> Fitted:  # fmt: skip
    """Return the fitted value of tasks whose statistics are in files (see `learn.conclude`).

    The caller of `take_sides` is the only one to hold the side rows, and frees them early.
    """
    sides: SideRows | None = take_sides()
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
    data = Training.of_statistics(stored, None, scales, names)
    fitted = with_learned(start, learner._learn(data))._replace(n_tasks=len(stored))
    if learner.keep_tasks:
        log.info("solving the tasks")
        fitted = fitted._replace(tasks=solve_stored(fitted, stored, ids, Phi_empty))
    if sides is not None:
        return fitted._replace(state=sides.statistics(stored))
    log.info("the statistics of the tasks, %s MB, are not kept", f"{stored.nbytes / 1e6:,.0f}")
    return fitted
