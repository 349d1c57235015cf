"""Fit to the rows of many files: find, convert, order by task, sum up to files, learn from these.

The work folder keeps what is done. A fit that was stopped goes on there: files that were converted,
and rows that were ordered, are not touched again. As each step gives the same bits, so does the
model.
"""

import json
import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from condmeta import __version__
from condmeta.errors import DataError
from condmeta.learners.parts import fit_parts
from condmeta.learners.ridge import ConditionalRidge
from condmeta.tables.big.engine import FileRows, to_bytes
from condmeta.tables.big.paths import find_files, stage
from condmeta.tables.big.schema import learn_rows, learn_sides
from condmeta.tables.big.side_table import SideTable
from condmeta.tables.files import CsvOptions, arrow
from condmeta.tables.learner import make_learner
from condmeta.tables.roles import ColumnOptions
from condmeta.tables.schema import Schema
from condmeta.tables.stream import whole_tasks
from condmeta.tasks import TaskSet, TaskTable
from condmeta.typing import SideInfo

PLAN, STAGED, ORDERED, SPILL = "plan.json", "staged", "ordered.parquet", "spill"
STATISTICS = "statistics"
KEPT = 4  # statistics of up to 1/4 of the memory are kept in the model
SHARE = 60  # percent of the memory that DuckDB may use: condmeta holds the side table beside it
PART = 1 << 16  # rows that are summed up at once
log = logging.getLogger("condmeta")


def fit_files(
    learner: Any, files: Any, side_info: Any, options: ColumnOptions, missing: str,
    missing_side: str, *, memory: str = "1GB", folder: Any = None, text: Any = (),
    csv: CsvOptions | None = None,
) -> tuple[Any, Schema, int]:  # fmt: skip
    """Fit a copy of a learner to rows in files (see `TableModel.fit_files`).

    Returns
    -------
    the fitted learner, the schema, the number of rows
    """
    guess, learner = learner is None, make_learner(learner, "number", missing_side)
    if type(learner) is not ConditionalRidge:
        raise DataError(
            f"{type(learner).__name__} needs all rows at once; ConditionalRidge learns from files."
        )
    to_bytes(memory)
    paths = find_files(files)
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="condmeta-") as made:
            work = Path(made)
            return _fit(learner, paths, side_info, options, missing, memory, work, text, csv, guess)
    work = _open_folder(Path(folder), paths, options, text)
    return _fit(learner, paths, side_info, options, missing, memory, work, text, csv, guess)


def _fit(
    learner: Any, paths: Any, side_info: SideInfo, options: Any, missing: Any, memory: Any,
    work: Path, text: Sequence[str], csv: Any, guess: Any
) -> tuple[Any, Schema, int]:  # fmt: skip
    log.info("reading %s files", len(paths))
    staged = stage(paths, work / STAGED, text, csv)
    limit = to_bytes(memory)
    rows = FileRows(staged, list(text), f"{limit * SHARE // 100}B", work / SPILL)
    sides = SideTable(side_info, options.side_table_text if text else ())
    schema, side_rows = learn_rows(rows, sides.head(), options, missing, guess)
    roles, ordered = schema.roles, work / ORDERED
    if not ordered.exists():
        log.info("ordering the rows by task")
        rows.order([*roles.task, roles.target, *roles.features], roles.task, ordered)
    rows.connection.close()
    statistics = work / STATISTICS
    shutil.rmtree(statistics, ignore_errors=True)
    statistics.mkdir()
    count = [0]
    parts = _tasks(ordered, schema, count)

    def read_side() -> TaskTable | None:  # not before it is needed: it may be large
        nonlocal schema
        schema, side = learn_sides(schema, side_rows, sides.read(), options)
        return side

    learner = fit_parts(learner, parts, statistics, read_side, keep=limit // KEPT)
    if learner.fitted_.state is None:
        warnings.warn(
            f"The statistics of the tasks take more than 1/{KEPT} of {memory}: the model does not "
            "keep them. It predicts and adapts, but takes no update; for that allow more memory.",
            stacklevel=4,
        )
    shutil.rmtree(statistics, ignore_errors=True)
    return learner, schema, count[0]


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
