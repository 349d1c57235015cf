"""Fit a table that is in memory: learn how it is read, choose the learner, fit it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from condmeta.errors import DataError, FewTasksWarning, ReadingNote
from condmeta.evaluation import calibrate
from condmeta.learners.held_out import FEWEST_TASKS
from condmeta.learners.parameters import is_auto
from condmeta.tables.additions import digest_of
from condmeta.tables.fitted_table import FittedTable, as_table
from condmeta.tables.learner import kind_of_learner, make_learner, uncalibrated
from condmeta.tables.roles import ColumnOptions
from condmeta.tables.schema import Schema
from condmeta.tables.schema_learning import learn_schema
from condmeta.tables.task_columns import with_task_columns
from condmeta.tasks import TaskSet
from condmeta.tasks.messages import show_ids
from condmeta.tasks.side_table import as_names
from condmeta.text import pluralize
from condmeta.typing import Frame, SideInfo
from condmeta.warn import warn


def read_training(
    learner: Any, frame: Frame, side_info: SideInfo, columns: ColumnOptions, missing: str
) -> tuple[Schema, TaskSet]:
    """Learn the schema of a table, and return it with the tasks of the table."""
    frame, order = as_table(frame), getattr(learner, "classes", None)
    frame = with_task_columns(frame, side_info, as_names(columns.task))
    kind = kind_of_learner(learner)
    schema, X, side = learn_schema(frame, side_info, columns, missing, kind, order)
    return schema, schema.tasks(frame, side, labelled=True, X=X)


def fit_table(
    learner: Any, frame: Frame, side_info: SideInfo, columns: ColumnOptions, missing: str,
    missing_side: str, intervals: bool, order: str,
) -> FittedTable:  # fmt: skip
    """Fit a copy of a learner, or the default one, to a table (see `TableModel.fit`)."""
    schema, tasks = read_training(learner, frame, side_info, columns, missing)
    if schema.kind == "count" and learner is None and columns.exposure is None:
        schema = _note_counts(schema, columns)
    if schema.kind == "class" and len(schema.classes or ()) > 2:
        _note_classes(schema, columns)
    made = make_learner(learner, schema.kind, missing_side)
    _require_drift(made, columns.time)
    fitted, n_rows = _fit_learner(made, tasks, intervals, order), len(tasks.X)
    note_transforms(uncalibrated(fitted), columns.target)
    return FittedTable(fitted, schema, n_rows, {digest_of(tasks): n_rows})


def _note_counts(schema: Schema, columns: ColumnOptions) -> Schema:
    """Say that counts were recognised; with times they are read as numbers, as only these drift."""
    if columns.time is not None:
        return replace(schema, kind="number")
    warn(
        f"The target {columns.target!r} holds counts, so ConditionalCount is used. For least "
        "squares use ConditionalRidge (--learner ridge).",
        ReadingNote,
    )  # fmt: skip
    return schema


def _note_classes(schema: Schema, columns: ColumnOptions) -> None:
    """Say that the target has more than two classes, and that they have no order."""
    shown = show_ids(schema.classes)
    warn(
        f"The target {columns.target!r} holds {len(schema.classes)} classes ({shown}): each is "
        "learned against the rest. If they have an order, use ConditionalOrdinal (--learner "
        "ordinal --classes).",
        ReadingNote,
    )  # fmt: skip


def note_transforms(learner: Any, target: Any) -> None:
    """Say that the learner has taken a transformation, and how to have none."""
    if not getattr(learner, "transform_choice_", None):
        return
    words = {
        "y_transform": f"predicts medians of {target!r}, which is skewed, from a power of it",
        "x_transform": "has splines of the features, as straight lines do not fit",
    }
    known = [name for name in words if is_auto(getattr(learner, name, None))]
    taken = " and ".join(words[name] for name in known if getattr(learner, f"{name}_") is not None)
    remedy = "For straight lines set x_transform=None."
    if "y_transform" in known:
        itself = f"{target!r} itself set x_transform=None and y_transform=None."
        remedy = f"For straight lines and {itself}"
    if taken:
        warn(f"The model {taken}: held-out tasks are then predicted better. {remedy}", ReadingNote)


def _require_drift(learner: Any, time: str | None) -> None:
    """Refuse a column of time for a learner that does not forget."""
    if time is not None and "drift" not in learner.get_params(deep=False):
        raise DataError(
            f"{type(learner).__name__} does not forget old rows and cannot use the times in "
            f"column {time!r}: use ConditionalRidge, or leave time out."
        )


def _fit_learner(learner: Any, tasks: TaskSet, intervals: bool, order: str) -> Any:
    """Fit a learner, with calibrated intervals if wanted; these need enough tasks."""
    n_tasks = int((tasks.sizes > 0).sum())
    if n_tasks >= FEWEST_TASKS:
        return calibrate(learner, tasks, order=order) if intervals else learner.fit(tasks)
    if intervals:
        raise DataError(
            f"Intervals are calibrated on held-out tasks and need at least {FEWEST_TASKS} tasks "
            f"with rows; there are {n_tasks}."
        )
    warn(
        f"{pluralize(n_tasks, 'task')} with rows: learning across tasks needs {FEWEST_TASKS} or "
        "more, better hundreds. One regression for all rows may do as well.",
        FewTasksWarning,
    )  # fmt: skip
    return learner.fit(tasks)
