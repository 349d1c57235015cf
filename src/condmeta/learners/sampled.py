"""Fit learners that need rows to tasks that come in parts, each task whole and in one part.

Settings, shared model and prior are learned from a sample of whole tasks, those with the smallest
keys, in memory. Then one pass over the parts solves all other tasks by this prior: the model is
that of `fit` to the sample, then `update` with the rest. A part is solved as one block, its tasks
by rising key; so for the same parts the models have the same bits, wherever the parts are.
"""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from condmeta.errors import DataError, ReadingNote
from condmeta.fitted.against_rest import AgainstRest
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.task_store import TaskStore
from condmeta.fitted.update import new_models
from condmeta.learners.checks import drop_weightless
from condmeta.learners.copies import with_fitted
from condmeta.learners.count import ConditionalCount
from condmeta.learners.inputs import read_tasks
from condmeta.learners.logistic import ConditionalLogistic
from condmeta.learners.ordinal import ConditionalOrdinal
from condmeta.learners.parameters import check_learner
from condmeta.learners.ridge import ConditionalRidge
from condmeta.learners.task_sample import (
    KeyedTasks,
    joined,
    keyed_tasks,
    largest_key,
    rows_of,
    sample_of,
    with_side,
    write_value,
)
from condmeta.tasks import TaskSet, TaskTable
from condmeta.warn import warn

BY_ROWS = ConditionalLogistic, ConditionalCount, ConditionalOrdinal
log = logging.getLogger("condmeta")


class RowParts(Protocol):
    """Parts of the rows, of which no two have a task in common."""

    def map(self, function: Callable[..., Any], each: Iterable[tuple[Any, ...]] = ()) -> list[Any]:
        """Return function(tasks of a part, *more) of each part; `each` has what `more` is."""
        ...


def needs_rows(learner: Any) -> bool:
    """Return whether a learner learns from rows, not from statistics; raise if it needs all."""
    if type(learner) is ConditionalRidge:
        return learner.base is not None
    if type(learner) not in BY_ROWS:
        names = [kind.__name__ for kind in (ConditionalRidge, *BY_ROWS)]
        raise DataError(
            f"{type(learner).__name__} needs all rows at once. Use {', '.join(names[:-1])} or "
            f"{names[-1]}, or fit a sample of whole tasks that fits into memory."
        )
    return True


def fit_sampled(
    learner: Any, parts: RowParts, folder: Path, read_side: Callable[[], TaskTable | None],
    prior_tasks: int | None = None,
) -> Any:  # fmt: skip
    """Return a learner that is fitted to parts without side information.

    Parameters
    ----------
    folder : Path
        Where side rows and models of parts are written, and removed again.
    read_side : callable
        It returns the side rows of all tasks, or None; tasks without points are kept.
    prior_tasks : int, optional
        How many tasks the prior is learned from; by default up to 10,000 with 2,000,000 rows.
    """
    check_learner(learner)
    found = parts.map(keyed_tasks)
    limit = largest_key(KeyedTasks.joined(found), prior_tasks)
    sample = joined(parts.map(sample_of, [(limit,)] * len(found)))
    side = read_side()
    n_tasks = sum(int((part.sizes > 0).sum()) for part in found)
    if len(sample) < n_tasks and prior_tasks is None:
        warn(
            f"{type(learner).__name__} learns its prior from {len(sample):,} of {n_tasks:,} tasks; "
            "prior_tasks= sets how many.",
            ReadingNote,
        )
    log.info("learning from a sample of %s tasks", f"{len(sample):,}")
    learner.fit(with_side(sample, side))
    if learner.keep_tasks:
        solved = solve_parts(learner, parts, found, side, folder, limit)
        parts = [part._replace(state=None) for part in _each(solved)]
        learner = with_fitted(learner, with_parts(solved, parts))
    return learner


def solve_parts(
    learner: Any, parts: RowParts, found: Sequence[KeyedTasks], side: TaskTable | None,
    folder: Path, limit: np.uint64 | None = None,
) -> Fitted | AgainstRest:  # fmt: skip
    """Return the fitted value of a learner with the models of all tasks.

    Tasks with keys up to a limit have a model already.
    """
    log.info("solving the tasks")
    fitted, prior = learner.fitted_, folder / "prior"
    own = with_fitted(learner, fitted.slim(tasks=False, resume=False))
    write_value(prior, own)
    paths = [str(folder / f"models-{number:06d}") for number in range(len(found))]
    each = (
        (str(prior), limit, write_value(f"{path}-side", rows_of(side, part.ids)), path)
        for path, part in zip(paths, found, strict=True)
    )
    parts.map(solve_part, each)
    stores = [[] if part.tasks is None else [part.tasks] for part in _each(fitted)]
    for path in paths:
        _add(stores, pickle.loads(Path(path).read_bytes()))
        os.unlink(path)
    spare = _without_rows(found, side)
    if len(spare):
        nothing = np.empty((0, fitted.columns.n_features)), np.empty(0)
        offsets = np.zeros(len(spare) + 1, np.int64)
        _add(
            stores, models_of(own, TaskSet.trusted(*nothing, offsets, spare, rows_of(side, spare)))
        )
    pairs = zip(_each(fitted), stores, strict=True)
    return with_parts(fitted, [one._replace(tasks=TaskStore.joined(few)) for one, few in pairs])


def with_parts(fitted: Fitted | AgainstRest, parts: list[Fitted]) -> Fitted | AgainstRest:
    """Return what was fitted, with other values for each of its parts."""
    return fitted._replace(parts=tuple(parts)) if isinstance(fitted, AgainstRest) else parts[0]


def solve_part(tasks: TaskSet, prior: str, limit: np.uint64 | None, side: str, path: str) -> None:
    """Write the models of the tasks of a part with keys above a limit to a file."""
    learner = _load_once(prior, os.stat(prior).st_mtime_ns)
    tasks = drop_weightless(tasks)
    found = keyed_tasks(tasks)
    order = np.argsort(found.keys, kind="stable")
    order = order[found.sizes[order] > 0]
    order = order if limit is None else order[found.keys[order] > limit]
    rows = pickle.loads(Path(side).read_bytes())
    tasks = with_side(tasks.subset(order), rows)
    write_value(path, models_of(learner, tasks) if len(order) else [])


def models_of(learner: Any, tasks: TaskSet) -> list[TaskStore]:
    """Return the models of new tasks, for each value that was fitted."""
    fitted = learner.fitted_
    tasks, _ = read_tasks(learner, fitted, tasks, None, None, None)
    given = fitted.by_class(tasks, None) if isinstance(fitted, AgainstRest) else [(fitted, tasks)]
    return [new_models(part, part.past_shared_model(own), None, own.side)[0]
            for part, own, *_ in given]  # fmt: skip


def _each(fitted: Fitted | AgainstRest) -> Sequence[Fitted]:
    return fitted.parts if isinstance(fitted, AgainstRest) else [fitted]


def _add(stores: list[list[TaskStore]], more: Sequence[TaskStore]) -> None:
    """Append further stores, without what the first ones do not keep."""
    for parts, store in zip(stores, more, strict=False):
        first = parts[0] if parts else store
        lacking = [f.name for f in fields(store) if getattr(first, f.name) is None]
        parts.append(replace(store, **dict.fromkeys(lacking)))


def _without_rows(found: Sequence[KeyedTasks], side: TaskTable | None) -> np.ndarray:
    """Return the ids of tasks without rows: of weight 0, then of the side table."""
    spare = [part.ids[part.sizes == 0] for part in found]
    if side is not None:
        left = np.ones(side.n_tasks, bool)
        for part in found:
            at = side.positions(part.ids)
            left[at[at >= 0]] = False
        spare.append(side.ids[left])
    return np.concatenate(spare)


@lru_cache(maxsize=1)
def _load_once(path: str, _: int) -> Any:
    """Return what a file of the work folder holds; `_` tells versions of the file apart."""
    return pickle.loads(Path(path).read_bytes())
