"""Fit to the rows of many files: find, convert, order by task, sum up to files, learn from these.

The work folder keeps what is done. A fit that was stopped goes on there: files that were converted,
and rows that were ordered, are not touched again. As each step gives the same bits, so does the
model.
"""

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from condmeta import __version__
from condmeta.errors import DataError
from condmeta.learners.parts import fit_parts
from condmeta.tables.big.engine import FileRows, to_bytes
from condmeta.tables.big.paths import find_files, stage
from condmeta.tables.big.table_of_files import TableOfFiles, temporary_folder
from condmeta.tables.files import CsvOptions, arrow
from condmeta.tables.roles import ColumnOptions
from condmeta.tables.schema import Schema
from condmeta.tables.stream import whole_tasks
from condmeta.tasks import TaskSet

PLAN, STAGED, ORDERED, SPILL = "plan.json", "staged", "ordered.parquet", "spill"
STATISTICS = "statistics"
KEPT = 4  # statistics of up to 1/4 of the memory are kept in the model
SHARE = 60  # percent of the memory that DuckDB may use: condmeta holds the side table beside it
PART = 1 << 16  # rows that are summed up at once
log = logging.getLogger("condmeta")


def fit_files(
    learner: Any, files: Any, side_info: Any, options: ColumnOptions, missing: str,
    missing_side: str, *, memory: str = "1GB", folder: Any = None, text: Any = (),
    csv: CsvOptions | None = None, prior_tasks: int | None = None,
) -> tuple[Any, Schema, int]:  # fmt: skip
    """Fit a copy of a learner to rows in files (see `TableModel.fit_files`).

    Returns
    -------
    the fitted learner, the schema, the number of rows
    """
    table = TableOfFiles(learner, side_info, options, missing, missing_side, text, prior_tasks)
    to_bytes(memory)
    paths = find_files(files)
    if folder is not None:
        work = _open_folder(Path(folder), paths, options, text)
        return _fit(table, paths, memory, work, csv)
    with temporary_folder() as work:
        return _fit(table, paths, memory, work, csv)


def _fit(
    table: TableOfFiles, paths: list[str], memory: str, work: Path, csv: CsvOptions | None
) -> tuple[Any, Schema, int]:
    log.info("reading %s files", len(paths))
    staged = stage(paths, work / STAGED, table.text, csv)
    limit, ordered, statistics = to_bytes(memory), work / ORDERED, work / STATISTICS
    rows = FileRows(staged, table.text, f"{limit * SHARE // 100}B", work / SPILL)
    columns = table.learn(rows)
    if not ordered.exists():
        log.info("ordering the rows by task")
        rows.order(columns, table.schema.roles.task, ordered)
    rows.connection.close()
    shutil.rmtree(statistics, ignore_errors=True)
    statistics.mkdir()
    parts = OrderedParts(ordered, table.schema)
    if table.by_rows:
        table.fit_rows(parts, statistics)
        shutil.rmtree(statistics, ignore_errors=True)
        return table.learner, table.schema, parts.count[0]
    keep = limit // KEPT
    table.learner = fit_parts(table.learner, parts, statistics, table.read_side, keep=keep)
    table.warn_not_kept(f"more than 1/{KEPT} of {memory}", ". To keep them, allow more memory")
    shutil.rmtree(statistics, ignore_errors=True)
    return table.learner, table.schema, parts.count[0]


class OrderedParts:
    """Whole tasks of a file, part after part (see `condmeta.learners.sampled`); `count` rows."""

    def __init__(self, path: Path, schema: Schema):
        self.path, self.schema, self.count = path, schema, [0]

    def __iter__(self) -> Iterator[TaskSet]:
        self.count[0] = 0
        return _tasks(self.path, self.schema, self.count)

    def map(self, function: Callable[..., Any], each: Iterable[tuple] = ()) -> list[Any]:
        """Return function(tasks, *more) of each part."""
        if not each:
            return [function(tasks) for tasks in self]
        return [function(tasks, *more) for tasks, more in zip(self, each, strict=True)]


def _tasks(path: Path, schema: Schema, count: list) -> Iterator[TaskSet]:
    """Yield whole tasks; `count` rows."""
    # Without pre_buffer: it keeps what was read.
    batches = arrow.parquet.ParquetFile(path, pre_buffer=False).iter_batches(PART)
    tables = map(arrow.pa.Table.from_batches, ([batch] for batch in batches))
    for part in whole_tasks(tables, schema, ordered=True):
        tasks = schema.tasks(part, None, labelled=True)
        count[0] += len(tasks.X)
        log.info("summing up the rows: %s", f"{count[0]:,}")
        yield tasks
    arrow.pa.default_memory_pool().release_unused()


def _open_folder(
    folder: Path, paths: list[str], options: ColumnOptions, text: Sequence[str]
) -> Path:
    """Return the work folder; what it holds of another fit is removed."""
    files = [[os.path.abspath(path), os.path.getsize(path), os.stat(path).st_mtime_ns]
             for path in paths]  # fmt: skip
    plan = {"version": __version__, "files": files, "options": repr(options), "text": list(text)}
    known = folder / PLAN
    if folder.exists() and any(folder.iterdir()) and not known.exists():
        raise DataError(f"The folder '{folder}' is not empty: name another one to work in.")
    folder.mkdir(parents=True, exist_ok=True)
    written = json.dumps(plan, indent=1)
    if not known.exists() or known.read_text() != written:
        remove_work(folder)
        folder.mkdir(parents=True, exist_ok=True)
        part = known.with_suffix(".part")
        part.write_text(written)
        os.replace(part, known)
    return folder


def remove_work(folder: Any) -> None:
    """Remove a work folder, with its own files alone."""
    folder = Path(folder)
    for name in (STAGED, SPILL, STATISTICS):
        shutil.rmtree(folder / name, ignore_errors=True)
    for path in (folder / ORDERED, folder / PLAN):
        path.unlink(missing_ok=True)
        path.with_suffix(".part").unlink(missing_ok=True)
    if folder.exists() and not any(folder.iterdir()):
        folder.rmdir()
