"""Fit to a table in parts: tasks are cut whole out of a stream of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from condmeta.errors import DataError
from condmeta.estimators import ConditionalRidge
from condmeta.tasks.frames import backend_of
from condmeta.tasks.ids import factorize
from condmeta.tasks.messages import show_id
from condmeta.tasks.side_table import as_names, read_side_table


def fit_batches(model: Any, batches: Iterable[Any], side_info: Any) -> None:
    """Learn from the parts of a table (see `TableModel.fit_batches`)."""
    learner = ConditionalRidge() if model.learner is None else model.learner
    if not isinstance(learner, ConditionalRidge):
        raise DataError(
            f"{type(learner).__name__} needs all rows at once; ConditionalRidge learns from parts."
        )
    if model.intervals:
        raise DataError("Intervals need all rows at once: fit the table whole, or without them.")
    parts = iter(batches)
    first = next(parts, None)
    if first is None:
        raise DataError("There are no rows.")
    schema, _ = model._learn_schema(first, side_info, learner)
    if side_info is not None:
        side_info = read_side_table(side_info, task_name=schema.task_name, side_key=model.side_key)
    fitted, rows = clone(learner), 0
    for part in whole_tasks(_chain(first, parts), schema):
        side = None
        if side_info is not None:
            ids = factorize(schema.ids(part))[1]
            mine = side_info.take(ids[side_info.has(ids)])
            side = schema.learn_side(part, mine, as_names(model.side))
        elif schema.columns.side:
            side = schema.learn_side(part, None, [])
        tasks = schema.tasks(part, side, labelled=True)
        fitted.partial_fit(tasks)
        rows += len(tasks.X)
    fitted._ready()
    model.learner_, model.schema_, model.n_rows_ = fitted, schema, rows


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def whole_tasks(parts: Iterator[Any], schema: Any) -> Iterator[Any]:
    """Yield tables of whole tasks: the last task of a part waits for the next one.

    A task that comes back after it was given away is an error that says to sort.
    """
    seen: set[Any] = set()
    waiting = None
    for part in parts:
        part = part if waiting is None else _joined(waiting, part)
        codes, ids = factorize(schema.ids(part))
        last = codes == codes[-1]
        back = next((i for i in ids.tolist() if i in seen), None)
        if back is not None:
            raise DataError(
                f"The rows of task {show_id(back)} do not follow each other: sort the table by "
                f"{', '.join(map(repr, schema.columns.task))} first, or fit it whole."
            )
        waiting = _rows(part, last)
        if not last.all():
            seen.update(i for i in ids.tolist() if i != ids[codes[-1]])
            yield _rows(part, ~last)
    if waiting is not None:
        yield waiting


def _rows(frame: Any, mask: np.ndarray) -> Any:
    """Return some rows of a table, in its kind."""
    if backend_of(frame) == "pandas":
        return frame[mask]
    return frame.filter(mask)


def _joined(first: Any, second: Any) -> Any:
    """Return the rows of two tables of one kind."""
    import importlib

    kind = backend_of(first)
    library = importlib.import_module(kind)
    if kind == "pyarrow":
        return library.concat_tables([first, second], promote_options="default")
    return library.concat([first, second])
