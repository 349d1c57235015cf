"""Fit to the rows of partitions, on the workers of a cluster.

Workers write the rows of each partition, split by their tasks; then each reads the rows of some
tasks, and reduces them to statistics. The prior is learned here, from sums that workers send
(`condmeta.meta.stored_tasks`). No row leaves the workers but those of the sample on which it is
chosen what x and y become (`condmeta.learners.task_sample`).
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from condmeta.blas_threads import limit_threads
from condmeta.errors import DataError
from condmeta.learners.copies import with_fitted
from condmeta.learners.parts import Reduced, Reduction, learn_parts, reduce_part, start_with
from condmeta.learners.streams import StreamLearner
from condmeta.tables.big.table_of_files import TableOfFiles, temporary_folder
from condmeta.tables.cluster.partitions import (
    Partition,
    PartitionRows,
    parquet_partitions,
    write_batches,
    write_partition,
)
from condmeta.tables.cluster.stream import Partitions, fit_stream
from condmeta.tables.cluster.workers import OnWorkers, naming_lost_workers
from condmeta.tables.files import arrow
from condmeta.tables.roles import ColumnOptions
from condmeta.tables.schema import Schema
from condmeta.tasks import TaskSet
from condmeta.tasks.ids import factorize

ROWS = 500_000  # of the tasks that a worker reduces at once
ROWS_SOLVED, LEAST_GROUPS = 100_000, 16  # of the tasks that it solves at once
KEPT = 1 << 28  # bytes: statistics up to this size are kept in the model
log = logging.getLogger("condmeta")


def fit_on_workers(
    learner: Any, rows: Any, side_info: Any, options: ColumnOptions, missing: str,
    missing_side: str, client: Any, folder: Any = None, text: Any = (),
    prior_tasks: int | None = None,
) -> tuple[Any, Schema, int]:  # fmt: skip
    """Fit a copy of a learner to a Dask DataFrame or Parquet files (see `TableModel.fit_dask`).

    Returns
    -------
    the fitted learner, the schema, the number of rows
    """
    table = TableOfFiles(
        learner, side_info, options, missing, missing_side, text, prior_tasks, in_order=True
    )
    with temporary_folder() if folder is None else _own_folder(Path(folder)) as work:
        return _fit(table, rows, client, work.resolve())


def _fit(table: TableOfFiles, rows: Any, client: Any, work: Path) -> tuple[Any, Schema, int]:
    runner, text = OnWorkers(client, work), table.text
    parts = _stage(rows, client, work)
    source = PartitionRows(parts, runner, text)
    columns = table.learn(source)
    if isinstance(table.learner, StreamLearner):
        fit_stream(
            table, Partitions(runner, table.schema, parts, source.schema, columns, text), work
        )
        return table.learner, table.schema, source.n_rows
    n_groups = max(source.n_rows // ROWS, 2 * runner.n_threads)
    if table.by_rows:  # models depend on their block by rounding: on the rows alone, then
        n_groups = max(source.n_rows // ROWS_SOLVED, LEAST_GROUPS)
    log.info("splitting %s rows by task", f"{source.n_rows:,}")
    how = columns, table.schema.roles, n_groups, source.schema, text
    jobs = [(part, str(work / f"split-{at:06d}"), *how) for at, part in enumerate(parts)]
    filled = np.flatnonzero(np.sum(runner.map(split_rows, jobs), axis=0))
    split = [path for _, path, *_ in jobs]
    groups = TaskGroups(runner, table.schema, split, filled.tolist())
    if table.by_rows:
        table.fit_rows(groups, work)
        return table.learner, table.schema, source.n_rows
    learner = table.learner
    log.info("summing up the rows")
    (start,) = groups._replace(numbers=groups.numbers[:1]).map(start_with, [(learner,)])

    def reduced(how: Reduction) -> list[Reduced]:
        paths = (str(work / f"piece-{number:06d}") for number in groups.numbers)
        return groups.map(reduce_part, [(learner, how, path) for path in paths])

    fitted = learn_parts(learner, start, reduced, work, table.read_side, runner, KEPT)
    table.learner = with_fitted(learner, fitted)
    table.warn_not_kept(f"more than {KEPT / 1e9:.1f} GB", "")
    return table.learner, table.schema, source.n_rows


@contextmanager
def _own_folder(folder: Path) -> Iterator[Path]:
    """Give a folder, which must be empty; remove it at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise DataError(f"The folder '{folder}' is not empty: name another one to work in.")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _stage(rows: Any, client: Any, work: Path) -> list[Partition]:
    """Return the partitions of rows in files."""
    if isinstance(rows, list):
        return parquet_partitions(rows)
    import dask

    write = dask.delayed(write_partition)
    made = [
        write(part, str(work / f"rows-{number:06d}"))
        for number, part in enumerate(rows.to_delayed())
    ]
    with naming_lost_workers():
        return client.gather(client.compute(made))


def split_rows(
    part: Partition,
    path: str,
    columns: list[str],
    roles: Any,
    n_groups: int,
    schema: Any,
    text: Sequence[str],
) -> np.ndarray:
    """Write the rows of a partition, one batch for each group of tasks; return their sizes."""
    table = part.read_as(schema, columns, text)
    codes, ids = factorize(roles.ids(table))
    # In the order of the ids' text, not of `hash`, which differs from process to process.
    of_id = np.array([crc32(repr(task).encode()) % n_groups for task in ids.tolist()], np.int64)
    group = of_id[codes]
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=n_groups)
    begins = np.cumsum([0, *sizes])
    ordered = table.take(order)
    write_batches(path, [ordered.slice(b, n) for b, n in zip(begins, sizes, strict=False)])
    return sizes


def read_group(schema: Schema, split: list[str], group: int) -> TaskSet:
    """Return the tasks of a group; their rows are in the order of the partitions."""
    batches = []
    for path in split:
        with arrow.pa.OSFile(path) as file:
            batches.append(arrow.pa.ipc.open_file(file).get_batch(group))
    return schema.tasks(arrow.pa.Table.from_batches(batches), None, labelled=True)


class TaskGroups(NamedTuple):
    """Groups of tasks as parts (see `condmeta.learners.sampled`), read by workers."""

    runner: OnWorkers
    schema: Schema
    split: list[str]
    numbers: list[int]

    def map(self, function: Callable[..., Any], each: Iterable[tuple] = ()) -> list[Any]:
        """Return function(tasks, *more) of each group."""
        each = list(each) or [()] * len(self.numbers)
        jobs = [
            (function, self.schema, self.split, number, *more)
            for number, more in zip(self.numbers, each, strict=True)
        ]
        return self.runner.map(apply_to_group, jobs)


def apply_to_group(
    function: Callable[..., Any], schema: Schema, split: list[str], group: int, *more: Any
) -> Any:
    """Return function(tasks of a group, *more)."""
    with limit_threads(1):
        return function(read_group(schema, split, group), *more)
