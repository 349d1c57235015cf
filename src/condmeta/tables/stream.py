"""Fit to a table in parts: whole tasks are cut out of a stream of rows."""

import importlib
import warnings
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import clone

from condmeta.errors import DataError, ReadingNote
from condmeta.learners.copies import with_fitted
from condmeta.learners.ridge import ConditionalRidge
from condmeta.tables.raw_columns import apply_readers, find_readers
from condmeta.tables.roles import ColumnOptions
from condmeta.tables.schema import Schema
from condmeta.tables.schema_learning import learn_schema
from condmeta.tables.values import has_text
from condmeta.tasks import TaskTable
from condmeta.tasks.frames import backend_of, get_column, require_columns
from condmeta.tasks.ids import factorize
from condmeta.tasks.messages import show_id
from condmeta.typing import SideInfo


def fit_parts(
    learner: Any, parts: Iterator[Any], side_info: SideInfo, options: ColumnOptions, missing: str
) -> tuple[Any, Schema, int]:
    """Fit a copy of a learner to a table in parts (see `TableModel.fit_batches`).

    Returns
    -------
    the fitted learner, the schema of the first part with ranges of all parts, the number of rows
    """
    learner = ConditionalRidge() if learner is None else clone(learner)
    if not isinstance(learner, ConditionalRidge):
        raise DataError(
            f"{type(learner).__name__} needs all rows at once; ConditionalRidge learns from parts."
        )
    first = next(parts, None)
    if first is None:
        raise DataError("There are no rows.")
    _refuse_text(first, options)
    schema, _, side = learn_schema(first, side_info, options, missing, "number")
    table = None if side_info is None else side  # its columns are read already
    n_rows = 0
    for part in whole_tasks(chain([first], parts), schema):
        rows = schema.side(part, None) if table is None else _side_of(table, part, schema)
        tasks = schema.tasks(part, rows, labelled=True)
        learner.partial_fit(tasks)
        schema = schema.widened(tasks.X)
        n_rows += len(tasks.X)
    fitted = learner.fitted_.without_history()  # learns now: an error is raised here
    return with_fitted(learner, fitted), schema, n_rows


def _refuse_text(first: Any, options: ColumnOptions) -> None:
    """Raise if the target holds text other than numbers."""
    name = options.target
    require_columns(first, [name], "target")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingNote)  # the schema gives this note
        readers = find_readers(first, [name], options)
    if has_text(get_column(apply_readers(first, readers, [name]), name)):
        raise DataError(
            f"Column {name!r} (target) holds text, and a table in parts needs a target of numbers: "
            "call fit with the whole table."
        )


def _side_of(table: TaskTable, part: Any, schema: Schema) -> TaskTable:
    """Return the side rows of the tasks of a part."""
    _, ids = factorize(schema.roles.ids(part))
    return table.take(ids[table.has(ids)])


def whole_tasks(parts: Iterable[Any], schema: Schema, ordered: bool = False) -> Iterator[Any]:
    """Yield tables of whole tasks: the last task of a part waits for the next part.

    Raise an error if a task comes back after it was yielded: the table must be sorted. With
    `ordered` it is, and tasks that were yielded are not remembered.
    """
    seen: set[Any] = set()
    waiting = None
    for part in parts:
        part = part if waiting is None else _concat(waiting, part)
        codes, ids = factorize(schema.roles.ids(part))
        last = codes == codes[-1]
        back = next((i for i in ids.tolist() if i in seen), None)
        if back is not None:
            raise DataError(
                f"The rows of task {show_id(back)} do not follow each other: sort the table by "
                f"{', '.join(map(repr, schema.roles.task))} first, or fit it whole."
            )
        waiting = _rows(part, last)
        if not last.all():
            if not ordered:
                seen.update(i for i in ids.tolist() if i != ids[codes[-1]])
            yield _rows(part, ~last)
    if waiting is not None:
        yield waiting


def _rows(frame: Any, mask: np.ndarray) -> Any:
    """Return some rows of a table, in its kind."""
    return frame[mask] if backend_of(frame) == "pandas" else frame.filter(mask)


def _concat(first: Any, second: Any) -> Any:
    """Return the rows of two tables of one kind."""
    kind = backend_of(first)
    library = importlib.import_module(kind)
    if kind == "pyarrow":
        return library.concat_tables([first, second], promote_options="default")
    return library.concat([first, second])
