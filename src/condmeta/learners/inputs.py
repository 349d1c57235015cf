"""From what a user passes (arrays, frames, ids, columns) to checked values.

`read_training` reads the call of a first `fit`, `read_tasks` labelled rows for a fitted learner,
and `read_rows` rows to predict. One task without an id is a set of one task, with the id None.
"""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from condmeta.errors import DataError, OneTaskWarning
from condmeta.fitted.columns import Columns
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.prepared import no_points
from condmeta.fitted.rows import Rows
from condmeta.fitted.shared_model import OutOfTask
from condmeta.fitted.target import TargetScale
from condmeta.fitted.user_rows import no_weights, numbers, read_points, read_target
from condmeta.learners.checks import check_features, check_weights, drop_weightless
from condmeta.learners.labels import read_labels, sizes_of
from condmeta.learners.side_by_row import by_row
from condmeta.learners.side_inputs import NAMELESS, read_one_side, read_side, side_reader
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.checks import check_finite
from condmeta.tasks.containers import refuse_odd
from condmeta.tasks.frames import (
    as_matrix,
    as_vector,
    backend_of,
    column_names,
    drop_columns,
    eager,
    get_column,
    get_series,
    is_dask,
    is_frame,
    is_sparse,
    numeric_matrix,
    require_columns,
    select_columns,
)
from condmeta.tasks.ids import as_id_array, factorize
from condmeta.tasks.read import join_side, require_rows, task_name_of
from condmeta.tasks.side_table import as_names, side_from_rows
from condmeta.tasks.weights import split_time
from condmeta.typing import Ids, Matrix, SideInfo, Values

# scikit-learn's routing passes these to every method that takes ids, without a request.
METADATA = {"task": True, "side_info": True}


MOST_DENSE = 1 << 28  # numbers of sparse rows that are made dense: 2 GB


class Form(NamedTuple):
    """What a model is fitted to: transformations of x and y, and a base; None where there is none.

    The fields are called as the parameters of learners that ask for them.
    """

    x_transform: Any = None
    y_transform: str | None = None
    base: Any = None

    def words(self) -> dict[str, str | None]:
        """Return all by name; an object of the user's is "given"."""
        return {
            name: value if value is None or isinstance(value, str) else "given"
            for name, value in self._asdict().items()
        }


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
        warnings.warn(
            "Nothing names the tasks, so that all rows are one task and there is nothing to learn "
            "across tasks: pass task=, ids or the name of a column of X.",
            OneTaskWarning, stacklevel=3,
        )  # fmt: skip


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
    reader = side_reader(learner)
    if isinstance(X, TaskSet):
        X = readable_tasks(learner, X)
        _refuse_company(X, (y, task, weight))
        columns = _columns_of(X)
        table, points = read_side(learner, side_info, reader.map, columns)
        labels, classes = read_labels(learner, X.y, None, classes, sizes_of(learner, X))
        tasks = X.with_target(labels)
        tasks = tasks if table is None else tasks.with_side(table)
        require_rows(X.X)
    else:
        rows = _read_columns(learner, X, task, None)
        if rows.task is None and side_info is not None:
            raise DataError(
                "There is side_info about tasks, but nothing names the task of each row of X: pass "
                "task=, ids or the name of a column of X."
            )
        columns = rows.columns
        target = read_target(y, len(rows.X), type(learner).__name__)
        labels, classes = read_labels(learner, target, rows.task, classes, weight)
        table, points = read_side(learner, rows.side_info(side_info), reader.map, columns)
        tasks = _grouped(rows, labels, table, weight)
    tasks = drop_weightless(check_weights(learner, tasks))
    if not len(tasks.X):
        raise DataError("Every weight is zero: there is nothing to learn from.")
    return Inputs(tasks, points, columns, classes)


def inputs_of(learner: Any, tasks: TaskSet, classes: Any = None) -> Inputs:
    """Return tasks that were read already; with `classes`, their labels are -1 and +1."""
    tasks = readable_tasks(learner, tasks)
    columns = Columns(
        tasks.n_features, _as_tuple(tasks.feature_names), tasks.task_name, tasks.backend
    )
    return Inputs(drop_weightless(tasks), None, columns, classes)


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
        table, points = read_side(learner, side_info, fmap, named)
        tasks = X.with_target(read_labels(learner, X.y, None, classes, sizes_of(learner, X))[0])
        tasks = tasks if table is None else tasks.with_side(table)
    else:
        rows = _read_columns(learner, X, task, columns)
        target = read_target(y, len(rows.X), type(learner).__name__)
        labels, _ = read_labels(learner, target, rows.task, classes, weight)
        table, points = read_side(learner, rows.side_info(side_info), fmap, rows.columns)
        tasks = _grouped(rows, labels, table, weight)
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
        rows = _read_columns(learner, X, None, fitted.columns)
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
    rows = _read_columns(learner, X, task, columns)
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


def read_offset(offset: Any, n_rows: int) -> np.ndarray:
    """Return an offset (N,) as finite numbers, or raise; one number is that of all rows."""
    if np.ndim(offset) == 0 and isinstance(offset, Real):
        offset = np.full(n_rows, float(offset))
    values = as_vector(offset, "offset")
    if values.shape != (n_rows,):
        raise DataError(f"offset has shape {values.shape}, expected one number for {n_rows} rows.")
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values)))
        raise DataError(f"offset holds {values[row]} in row {row}: it must be finite.")
    return values


def minus_offset(y: Values, offset: Any):
    """Return y - offset, or y unchanged without one."""
    if is_zero(offset):
        return y
    if y is None:
        raise DataError("An offset goes with y: a TaskSet carries its own target, take it off y.")
    y = as_vector(y)
    return y - read_offset(offset, len(y))


def is_zero(offset: Any) -> bool:
    """Return whether an offset changes nothing: None, or the number 0."""
    return offset is None or (isinstance(offset, Real) and offset == 0)


def remember_offset(fitted: Fitted, offset: Any) -> Fitted:
    """Return a value that knows whether it was learned with an offset."""
    return fitted if is_zero(offset) else fitted._replace(info=fitted.info | {"offset": True})


def require_offset(fitted: Fitted | None, offset: Any) -> None:
    """Raise if a model that was fitted with an offset is called without one."""
    refuse_forgotten(fitted is not None and bool(fitted.info.get("offset")), offset)


def refuse_forgotten(with_offset: bool, offset: Any) -> None:
    """Raise if there is no offset, and the model was fitted with one."""
    if offset is None and with_offset:
        raise DataError(
            "The model was fitted with an offset: give offset= here as well, one number for each "
            "row, or offset=0 for rows without one."
        )


def require_exposure(fitted: Fitted | None, exposure: Any) -> None:
    """Raise if a model that was fitted with an exposure is called without one."""
    if exposure is None and fitted is not None and fitted.info.get("exposure"):
        raise DataError(
            "The model was fitted with an exposure: give exposure= here as well, one number for "
            "each row, or exposure=1 for counts in one unit of exposure."
        )


def read_exposure(exposure: Any, n_rows: int) -> np.ndarray:
    """Return exposures (N,) as finite numbers of at least 0; one number is that of all rows."""
    if np.ndim(exposure) == 0 and isinstance(exposure, Real):
        exposure = np.full(n_rows, float(exposure))
    values = as_vector(exposure, "exposure")
    if values.shape != (n_rows,):
        raise DataError(f"X has {n_rows} rows and exposure has {len(values)}.")
    good = (values >= 0) & (values < np.inf)
    if not good.all():
        row = int(np.argmin(good))
        raise DataError(
            f"Row {row} has exposure {values[row]:g}: it must be a finite number of at least 0."
        )
    return values


def refuse_unknown(method: str, unknown: dict[str, Any]) -> None:
    """Raise for an unknown argument, or for weights given to a learner without any."""
    others = [name for name in unknown if name != "sample_weight"]
    if others:
        raise TypeError(f"{method} got an unexpected keyword argument {others[0]!r}.")
    if unknown.get("sample_weight") is not None:
        raise no_weights(method.partition(".")[0])


class _FrameRows(NamedTuple):
    """The rows of a call: X (N, d), ids or None, columns of side information, columns of X."""

    X: np.ndarray
    task: Any
    side_columns: dict[str, np.ndarray]
    columns: Columns

    def side_info(self, given: Any):
        """Return the side information of the call: what was given, or the side columns."""
        if not self.side_columns:
            return given
        if given is not None:
            raise DataError("Give side information by side_info= or by side_columns=, not by both.")
        if self.task is None:
            return side_from_rows(self.side_columns, np.zeros(len(self.X), int), as_id_array([0]))
        return side_from_rows(self.side_columns, *factorize(self.task))


def _read_columns(learner: Any, X: Matrix, task: Ids, known: Columns | None) -> _FrameRows:
    """Read X and the ids of its rows, from `task` or from the columns that the learner names.

    Without `known` columns those of X are learned, else they are checked.
    """
    if is_dask(X):
        name = type(learner).__name__
        raise DataError(
            f"X is a Dask DataFrame, and {name} reads rows in memory. "
            f"cm.TableModel(cm.{name}(), task=..., target=...).fit(X) learns from it on the "
            "workers of its cluster; X.compute() brings the rows into memory."
        )
    backend = backend_of(X) if is_frame(X) else None
    keys, sides = as_names(learner.task_column), as_names(learner.side_columns)
    side_columns = {}
    if backend is None and (keys or sides):
        raise DataError(
            f"{type(learner).__name__} has task_column or side_columns set, so X must be a "
            "DataFrame with these columns. Got an array instead."
        )
    if backend is not None:
        X = eager(X)
        if keys and task is not None:
            raise DataError("Give the task ids by task= or by task_column=, not by both.")
        if _names_columns(task, column_names(X)):
            keys = as_names(task)
        require_columns(X, keys, "task")
        require_columns(X, sides, "side_columns")
        if keys:
            task = get_series(X, keys[0]) if len(keys) == 1 else select_columns(X, keys)
        side_columns = {name: get_column(X, name) for name in sides}
        X = drop_columns(X, [*keys, *sides]) if keys or sides else X
    if keys:  # a column of a PyArrow table does not know its name
        name = keys[0] if len(keys) == 1 else tuple(keys)
    else:
        name = None if task is None else task_name_of(task)
    if known is not None:
        matrix = readable(learner, _read_known_matrix(learner, X, known))
        named = known._replace(task_name=name or known.task_name)
        return _FrameRows(matrix, task, side_columns, named)
    probe = type(type(learner).__name__, (BaseEstimator,), {})()  # validate_data sets attributes
    matrix = readable(learner, _read_matrix(probe, X, reset=True))
    names = _as_tuple(getattr(probe, "feature_names_in_", None))
    columns = Columns(probe.n_features_in_, names, name, backend)
    return _FrameRows(matrix, task, side_columns, columns)


def _read_known_matrix(learner: Any, X: Matrix, known: Columns) -> np.ndarray:
    """Return X (N, d) as C-contiguous float64, its columns checked."""
    plain = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and len(X) > 0
    if plain and X.shape[1] == known.n_features and known.names is None:
        return np.ascontiguousarray(X)  # plainly right: a call on a few rows must be quick
    return _read_matrix(learner, X, reset=False)


def _read_matrix(estimator: Any, X: Matrix, reset: bool) -> np.ndarray:
    if is_frame(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return numeric_matrix(X)
    return validate_data(
        estimator, numbers(X), reset=reset, dtype=np.float64, order="C", ensure_all_finite=False,
        accept_sparse="csr",
    )  # fmt: skip


def readable(learner: Any, X: Matrix) -> Any:
    """Return X as the learner reads it: sparse rows are made dense if it cannot use them."""
    if not is_sparse(X):
        return X
    X, (n, d) = as_matrix(X), X.shape
    keeps = getattr(learner, "_keeps_sparse", None)
    if keeps is not None and keeps(d):
        return X
    if n * d > MOST_DENSE:
        raise DataError(
            f"{type(learner).__name__} reads dense rows, and {n} x {d} numbers are "
            f"{8e-9 * n * d:.0f} GB. ConditionalRidge with its defaults reads sparse X as it is."
        )
    return X.toarray()


def readable_tasks(learner: Any, tasks: TaskSet) -> TaskSet:
    """Return tasks with rows as the learner reads them."""
    X = readable(learner, tasks.X)
    return tasks if X is tasks.X else tasks.with_rows(X, tasks.y)


def n_rows(X: Matrix) -> int:
    """Return the number of rows of what a user gives as X."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def _grouped(rows: _FrameRows, labels: Any, table: TaskTable | None, weight: Any) -> TaskSet:
    """Return the rows of a call as tasks."""
    weight, time = split_time(weight)
    return TaskSet.from_arrays(
        rows.X, labels, rows.task, side_info=table, missing_side="mean", weight=weight, time=time,
        feature_names=rows.columns.names,
    )  # fmt: skip


def _refuse_company(tasks: TaskSet, others: Any) -> None:
    if any(other is not None for other in others):
        raise DataError("A TaskSet carries y and the task ids: pass it alone, without y and task.")
    if tasks.y is None and len(others) > 1:
        raise DataError("The TaskSet has no y. Make it with a target.")


def _names_columns(task: Ids, names: Any) -> bool:
    """Return whether `task` names columns: a string, or a list of column names."""
    if isinstance(task, str):
        return True
    return (
        isinstance(task, list)
        and 0 < len(task) < len(names)
        and all(isinstance(name, str) and name in names for name in task)
    )


def _columns_of(tasks: TaskSet) -> Columns:
    names = _as_tuple(tasks.feature_names)
    return Columns(tasks.n_features, names, tasks.task_name, tasks.backend)


def _as_tuple(names: Any) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)
