"""From what a user passes (arrays, frames, ids, columns) to checked values.

`read_training` reads the call of a first `fit`, `read_tasks` labelled rows for a fitted learner,
and `read_rows` rows to predict. One task without an id is a set of one task, with the id None.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError, OneTaskWarning
from condmeta.fitted.columns import Columns
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.prepared import no_points
from condmeta.fitted.rows import Rows
from condmeta.fitted.shared_model import OutOfTask
from condmeta.fitted.target import TargetScale
from condmeta.fitted.user_rows import read_points, read_target
from condmeta.learners.call_columns import (
    CallColumns,
    as_tuple,
    n_rows,
    read_columns,
    readable_tasks,
)
from condmeta.learners.checks import check_features, check_weights, drop_weightless
from condmeta.learners.form import Form
from condmeta.learners.labels import read_labels, sizes_of
from condmeta.learners.side_by_row import by_row
from condmeta.learners.side_inputs import NAMELESS, read_one_side, read_side, side_reader
from condmeta.tasks import TaskSet
from condmeta.tasks.checks import check_finite
from condmeta.tasks.containers import refuse_odd
from condmeta.tasks.ids import factorize
from condmeta.tasks.read import join_side, require_rows, task_name_of
from condmeta.tasks.weights import split_time
from condmeta.typing import Ids, Matrix, SideInfo, Values
from condmeta.warn import warn

# scikit-learn's routing passes these to every method that takes ids, without a request.
METADATA = {"task": True, "side_info": True}


class Inputs(NamedTuple):
    """What a call of `fit` gives: tasks with labels as numbers, and what is known of their columns.

    `points` are separate conditioning points, or None; `target` is the scale that the labels are on
    already, or None. `form` is what x and y are transformed by and the base, `transformer` that of
    x, fitted, `form_errors` are the errors of the forms that it was chosen from, and `shared` is
    the base if it was chosen. `keys` (T,) are those of the tasks (see `task_sample`), if known.
    """

    tasks: TaskSet
    points: TaskSet | None
    columns: Columns
    classes: np.ndarray | None
    target: TargetScale | None = None
    form: Form = Form()
    transformer: Any = None
    form_errors: dict[Form, float] = {}
    shared: OutOfTask | None = None
    keys: np.ndarray | None = None

    def chosen_form(self) -> dict[str, Any]:
        """Return the attributes of a learner that chose its form; files hold words, no objects."""
        ranked = sorted(self.form_errors.items(), key=lambda item: item[1])
        rows = [form.words() | {"error": error} for form, error in ranked]
        chosen = {f"{name}_": value for name, value in self.form.words().items()}
        return chosen | {"transform_choice_": rows} if rows else {}


def is_nameless(learner: Any, X: Matrix, task: Ids) -> bool:
    """Return whether a call does not name the tasks of its rows: they are then one task."""
    return task is None and learner.task_column is None and not isinstance(X, TaskSet)


def warn_of_one_task(learner: Any, X: Matrix, task: Ids) -> None:
    """Warn if a call of `fit` does not name the tasks of its rows; a baseline needs no names."""
    if learner._learns_across_tasks and is_nameless(learner, X, task):
        warn(
            "task= is missing, so all rows count as one task and nothing can be learned across "
            "tasks. Pass task=: the ids, or the name of a column of X.",
            OneTaskWarning,
        )


def read_training(
    learner: Any,
    X: Matrix,
    y: Values,
    task: Ids,
    side_info: SideInfo,
    weight: Any = None,
    classes: Any = None,
) -> Inputs:
    """Read the tasks that a learner learns from first."""
    fmap = side_reader(learner).map
    if isinstance(X, TaskSet):
        X = readable_tasks(learner, X)
        _refuse_company(X, (y, task, weight))
        columns = _columns_of(X)
        labelled = _labelled_set(learner, X, side_info, fmap, columns, classes)
        require_rows(X.X)
    else:
        rows = read_columns(learner, X, task, None)
        if rows.task is None and side_info is not None:
            raise DataError(
                "side_info= is given without task=, so the task of each row of X is unknown. "
                "Pass task=: the ids, or the name of a column of X."
            )
        columns = rows.columns
        labelled = _labelled_rows(learner, rows, y, side_info, fmap, classes, weight)
    tasks, points, classes = labelled
    tasks = drop_weightless(check_weights(learner, tasks))
    if not len(tasks.X):
        raise DataError("Every weight is zero: there is nothing to learn from.")
    return Inputs(tasks, points, columns, classes)


def inputs_of(learner: Any, tasks: TaskSet, classes: Any = None) -> Inputs:
    """Return tasks that were read already; with `classes`, their labels are -1 and +1."""
    tasks = readable_tasks(learner, tasks)
    return Inputs(drop_weightless(tasks), None, _columns_of(tasks), classes)


def read_tasks(
    learner: Any,
    fitted: Fitted,
    X: Matrix,
    y: Values,
    task: Ids,
    side_info: SideInfo,
    weight: Any = None,
) -> tuple[TaskSet, TaskSet | None]:
    """Read labelled rows of tasks for a fitted learner; also separate conditioning points."""
    fmap, columns, classes = fitted.reader.map, fitted.columns, fitted.predictor.classes
    if isinstance(X, TaskSet):
        X = readable_tasks(learner, X)
        _refuse_company(X, (y, task, weight))
        check_features(learner, X, columns, "X")
        named = columns._replace(task_name=X.task_name or columns.task_name)
        tasks, points, _ = _labelled_set(learner, X, side_info, fmap, named, classes)
    else:
        rows = read_columns(learner, X, task, columns)
        tasks, points, _ = _labelled_rows(learner, rows, y, side_info, fmap, classes, weight)
    return drop_weightless(check_weights(learner, tasks)), points


def read_new_tasks(
    learner: Any,
    fitted: Fitted,
    X: Matrix,
    y: Values,
    task: Ids,
    side_info: SideInfo,
    weight: Any = None,
):
    """Read the tasks of `adapt`: labelled rows, or none; also separate conditioning points."""
    if X is not None and not is_nameless(learner, X, task):
        return read_tasks(learner, fitted, X, y, task, side_info, weight)
    if task is not None:  # ids without points, and further ones of the side table
        named = fitted.columns._replace(task_name=task_name_of(task) or fitted.columns.task_name)
        table, points = read_side(learner, side_info, fitted.reader.map, named)
        ids = factorize(task)[1]
        if table is not None:
            ids, table = join_side(ids, table, "mean")
        X, y, offsets = no_points(len(ids), fitted.columns.n_features)
        return TaskSet.trusted(X, y, offsets, ids, table), points
    if X is not None:
        refuse_odd(X, "X")
    if X is None or (hasattr(X, "__len__") and n_rows(X) == 0):
        X, y, _ = no_points(1, fitted.columns.n_features)
        weight = time = None
    else:
        rows = read_columns(learner, X, None, fitted.columns)
        side_info = rows.side_info(side_info)
        X, y, weight, time = read_points(fitted.predictor, rows.X, y, weight)
    table, points = read_one_side(learner, fitted, side_info)
    offsets = np.array([0, len(X)])
    return TaskSet.trusted(X, y, offsets, NAMELESS, table, weight=weight, time=time), points


def read_rows(learner: Any, fitted: Fitted, X: Matrix, task: Ids, side_info: SideInfo) -> Rows:
    """Read rows to predict, and the task of each."""
    columns, fmap = fitted.columns, fitted.reader.map
    if isinstance(X, TaskSet):
        X = readable_tasks(learner, X)
        _refuse_company(X, (task,))
        check_features(learner, X, columns, "X")
        side_info = X.side if side_info is None else side_info
        named = columns._replace(task_name=X.task_name or columns.task_name)
        codes = np.repeat(np.arange(len(X)), X.sizes)
        table, points = read_side(learner, side_info, fmap, named)
        return Rows(X.X, codes, X.ids, table, points, X.restore_order, X.time)
    rows = read_columns(learner, X, task, columns)
    if rows.task is None:
        check_finite(rows.X, None, feature_names=columns.names)
        if side_info is None:
            if fitted.tasks is None or len(fitted.tasks) != 1:
                raise fitted.which_task()
            return Rows(rows.X, None, fitted.tasks.ids)
        table, points = read_one_side(learner, fitted, side_info)
        return Rows(rows.X, None, NAMELESS, table, points)
    codes, ids = factorize(rows.task)
    if len(codes) != len(rows.X):
        raise DataError(f"X has {len(rows.X)} rows and task has {len(codes)} ids.")
    check_finite(rows.X, None, lambda row: ids[codes[row]], feature_names=columns.names)
    if rows.side_columns and side_info is None:
        codes, ids, side_info = by_row(fitted, rows.side_columns, codes, ids)
    else:
        side_info = rows.side_info(side_info)
    table, points = read_side(learner, side_info, fmap, rows.columns)
    return Rows(rows.X, codes, ids, table, points)


def _labelled_set(
    learner: Any, tasks: TaskSet, side_info: SideInfo, fmap: Any, columns: Columns, classes: Any
) -> tuple[TaskSet, TaskSet | None, Any]:
    """Return tasks with labels as numbers and side rows, conditioning points, and the classes."""
    table, points = read_side(learner, side_info, fmap, columns)
    labels, classes = read_labels(learner, tasks.y, None, classes, sizes_of(learner, tasks))
    tasks = tasks.with_target(labels)
    return tasks if table is None else tasks.with_side(table), points, classes


def _labelled_rows(
    learner: Any, rows: CallColumns, y: Values, side_info: SideInfo, fmap: Any, classes: Any,
    weight: Any,
) -> tuple[TaskSet, TaskSet | None, Any]:  # fmt: skip
    """Return the rows of a call as `_labelled_set` returns tasks."""
    target = read_target(y, len(rows.X), type(learner).__name__)
    labels, classes = read_labels(learner, target, rows.task, classes, weight)
    table, points = read_side(learner, rows.side_info(side_info), fmap, rows.columns)
    weight, time = split_time(weight)
    tasks = TaskSet.from_arrays(
        rows.X, labels, rows.task, side_info=table, missing_side="mean", weight=weight, time=time,
        feature_names=rows.columns.names,
    )  # fmt: skip
    return tasks, points, classes


def _refuse_company(tasks: TaskSet, others: Any) -> None:
    """Raise if a call gives a TaskSet and also what it carries, or needs y and has none."""
    if any(other is not None for other in others):
        raise DataError("A TaskSet carries y and the task ids: pass it alone, without y and task.")
    if tasks.y is None and len(others) > 1:
        raise DataError("The TaskSet has no y. Make it with a target.")


def _columns_of(tasks: TaskSet) -> Columns:
    names = as_tuple(tasks.feature_names)
    return Columns(tasks.n_features, names, tasks.task_name, tasks.backend)
