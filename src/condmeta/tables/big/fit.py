"""Fit to the rows of many files: find, convert, order by task, sum up, learn.

The work folder keeps what is done. A fit that was stopped goes on there: files that were converted,
and rows that were ordered, are not touched again. As each step gives the same bits, so does the
model.
"""

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from condmeta import __version__
from condmeta.errors import DataError
from condmeta.learners.parts import fit_parts
from condmeta.learners.ridge import ConditionalRidge
from condmeta.tables.big.engine import Rows, check_memory
from condmeta.tables.big.paths import find_files, stage
from condmeta.tables.big.schema import learn_schema_of
from condmeta.tables.files import CsvOptions, arrow, read_table
from condmeta.tables.learner import make_learner
from condmeta.tables.roles import ColumnOptions
from condmeta.tables.schema import Schema
from condmeta.tables.stream import whole_tasks
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.ids import factorize

PLAN, STAGED, ORDERED, SPILL = "plan.json", "staged", "ordered.parquet", "spill"
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
    check_memory(memory)
    if isinstance(side_info, str | os.PathLike):
        side_info = read_table(side_info, text=options.side_table_text if text else ())
    paths = find_files(files)
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="condmeta-") as made:
            work = Path(made)
            return _fit(learner, paths, side_info, options, missing, memory, work, text, csv, guess)
    work = _open_folder(Path(folder), paths, options, text)
    return _fit(learner, paths, side_info, options, missing, memory, work, text, csv, guess)


def _fit(
    learner, paths, side_info, options, missing, memory, work: Path, text, csv, guess
) -> tuple[Any, Schema, int]:  # fmt: skip
    log.info("reading %s files", len(paths))
    staged = stage(paths, work / STAGED, text, csv)
    rows = Rows(staged, list(text), memory, work / SPILL)
    schema, side = learn_schema_of(rows, side_info, options, missing, guess)
    roles, ordered = schema.roles, work / ORDERED
    if not ordered.exists():
        log.info("ordering the rows by task")
        rows.order([*roles.task, roles.target, *roles.features], roles.task, ordered)
    rows.connection.close()
    count = [0]
    parts = _tasks(ordered, schema, side, count)
    return fit_parts(learner, parts), schema, count[0]


def _tasks(path: Path, schema: Schema, side: TaskTable | None, count: list) -> Iterator[TaskSet]:
    """Yield whole tasks; the last part has those of the side table without rows. `count` rows."""
    left = np.zeros(0, bool) if side is None else np.ones(side.n_tasks, bool)
    batches = arrow.parquet.ParquetFile(path).iter_batches(PART)
    parts = whole_tasks(map(arrow.pa.Table.from_batches, ([batch] for batch in batches)), schema)
    part = next(parts, None)
    while part is not None:
        later, rows = next(parts, None), None
        if side is not None:
            at = side.positions(factorize(schema.roles.ids(part))[1])
            at = at[at >= 0]
            left[at] = False
            rows = side.rows(at if later is not None else np.append(at, np.flatnonzero(left)))
        tasks = schema.tasks(part, rows, labelled=True)
        count[0] += len(tasks.X)
        log.info("summing up the rows: %s", f"{count[0]:,}")
        yield tasks
        part = later
    arrow.pa.default_memory_pool().release_unused()


def _open_folder(folder: Path, paths: list[str], options: ColumnOptions, text) -> Path:
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
    for name in (STAGED, SPILL):
        shutil.rmtree(folder / name, ignore_errors=True)
    for path in (folder / ORDERED, folder / PLAN):
        path.unlink(missing_ok=True)
        path.with_suffix(".part").unlink(missing_ok=True)
    if folder.exists() and not any(folder.iterdir()):
        folder.rmdir()
