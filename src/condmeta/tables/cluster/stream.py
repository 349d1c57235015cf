"""Algorithm 1 on a cluster: through the partitions in their order, as `partial_fit` would.

Each worker continues from the file of the worker before it. Then workers solve the tasks of
all partitions, side by side, from the last map.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from condmeta.blas_threads import limit_threads
from condmeta.errors import DataError
from condmeta.fitted.seen_ids import SeenIds
from condmeta.learners.copies import with_fitted
from condmeta.learners.sampled import keyed_tasks, rows_of, solve_parts, with_side, write_value
from condmeta.tables.big.table_of_files import TableOfFiles
from condmeta.tables.cluster.partitions import Partition
from condmeta.tables.cluster.workers import OnWorkers
from condmeta.tables.schema import Schema
from condmeta.tasks import TaskSet
from condmeta.tasks.messages import show_id


class Partitions(NamedTuple):
    """Partitions as parts (see `condmeta.learners.sampled`), read by workers."""

    runner: OnWorkers
    schema: Schema
    parts: list[Partition]
    types: Any
    columns: list[str]
    text: list[str]

    def jobs(self, each: Iterable[tuple] = ()) -> list[tuple]:
        """Return what workers read a partition by, and more, for each partition."""
        each = list(each) or [()] * len(self.parts)
        how = self.types, self.columns, self.text
        return [((self.schema, part, *how), *more)
                for part, more in zip(self.parts, each, strict=True)]  # fmt: skip

    def map(self, function: Callable[..., Any], each: Iterable[tuple] = ()) -> list[Any]:
        """Return function(tasks, *more) of each partition."""
        return self.runner.map(apply_to_partition, [(function, *job) for job in self.jobs(each)])


def fit_stream(table: TableOfFiles, given: Partitions, work: Path) -> None:
    """Fit the learner of a table to all partitions, one after the other."""
    learner, found = table.learner, given.map(keyed_tasks)
    filled = [at for at, part in enumerate(found) if len(part.ids)]
    given = given._replace(parts=[given.parts[at] for at in filled])
    found = [found[at] for at in filled]
    ids = np.concatenate([part.ids for part in found]).tolist()
    seen = SeenIds(ids)
    if len(seen) < len(ids):
        _refuse_torn(ids, given.schema.roles.task)
    side = table.read_side()
    given = given._replace(schema=table.schema)
    each = [
        (write_value(work / f"side-{at:06d}", rows_of(side, part.ids)), learner,
         str(work / f"state-{at:06d}"))
        for at, part in enumerate(found)
    ]  # fmt: skip
    last = given.runner.chain(go_on_with, given.jobs(each))
    value = pickle.loads(Path(last).read_bytes())
    learner = with_fitted(learner, value._replace(seen=None if learner.keep_tasks else seen))
    if learner.keep_tasks:
        learner = with_fitted(learner, solve_parts(learner, given, found, side, work))
    table.learner = learner


def go_on_with(before: str | None, how: tuple, side: str, learner: Any, path: str) -> str:
    """Write the value after the tasks of one more partition to a file; return its path.

    The ids that were seen are not handed on: they are compared before the first partition.
    """
    if os.path.exists(path):  # a worker died after it had written this
        return path
    tasks = with_side(read_partition(*how), pickle.loads(Path(side).read_bytes()))
    value = None if before is None else pickle.loads(Path(before).read_bytes())
    learner, options = with_fitted(learner, value), {}
    if before is None and how[0].classes is not None:
        options["classes"] = np.arange(float(len(how[0].classes)))
    with limit_threads(1):
        learner.partial_fit(tasks, **options)
    return write_value(path, learner.fitted_._replace(seen=SeenIds()))


def apply_to_partition(function: Callable[..., Any], how: tuple, *more: Any) -> Any:
    """Return function(tasks of a partition, *more)."""
    with limit_threads(1):
        return function(read_partition(*how), *more)


def read_partition(
    schema: Schema, part: Partition, types: Any, columns: list[str], text: list[str]
) -> TaskSet:
    """Return the tasks of a partition."""
    rows = part.read_as(types, columns, text)
    if not len(rows):
        return TaskSet.trusted(np.empty((0, len(schema.feature_names))), np.empty(0),
                               np.zeros(1, np.int64), np.empty(0, object))  # fmt: skip
    return schema.tasks(rows, None, labelled=True)


def _refuse_torn(ids: list, columns: list[str]) -> None:
    """Raise, and name a task whose rows are in several partitions."""
    known: set = set()
    torn = next(task for task in ids if task in known or known.add(task))
    raise DataError(
        f"The rows of task {show_id(torn)} are in several partitions. Algorithm 1 needs all rows "
        f"of a task together: call ddf.shuffle({columns[0]!r})."
    )
