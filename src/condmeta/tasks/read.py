"""Read tasks from tables, arrays and lists of tasks into the parts of a `TaskSet`."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks import arrays, frames
from condmeta.tasks.ids import as_id_array, combine, factorize, group_rows
from condmeta.tasks.messages import bad_parameter, explain_absent, explain_mismatch, name_task
from condmeta.tasks.side_table import as_names, read_side_table, side_from_rows
from condmeta.tasks.task_table import TaskTable
from condmeta.tasks.times import read_times
from condmeta.tasks.weights import as_weights
from condmeta.text import pluralize


def require_rows(X: np.ndarray) -> None:
    """Raise a DataError if X has no rows or no columns."""
    if X.shape[0] == 0:
        raise DataError(f"There are no rows: X has 0 sample(s) (shape={X.shape}).")
    if X.shape[1] == 0:
        raise DataError(
            f"There are no features: X has 0 feature(s) (shape={X.shape}). For a model of "
            "intercepts alone give a column of ones, with fit_intercept=False."
        )


def matrix_and_target(
    X: Any, y: Any, feature_names: Sequence[str] | None = None, target_name: str | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return X as (N, d) float64 and y as (N,) float64 or text, of the same length."""
    X = arrays.as_matrix(X)
    if feature_names is not None and len(feature_names) != X.shape[1]:
        raise DataError(f"There are {len(feature_names)} feature names for {X.shape[1]} features.")
    if y is not None:
        y = arrays.as_labels(y, "y" if target_name is None else f"Column {target_name!r}")
        if y.shape[0] != X.shape[0]:
            raise DataError(f"X has {X.shape[0]} rows and y has {y.shape[0]}.")
    return X, y


def from_frame(
    df: Any,
    task: Any,
    target: Any,
    features: Any,
    side: Any,
    side_key: Any,
    missing_side: Any,
    weight: Any,
    time: Any,
) -> dict[str, Any]:
    """Read a table with a task column; parameters as for `TaskSet.from_frame`."""
    if not frames.is_frame(df):
        raise DataError(
            f"df must be a pandas, polars or PyArrow table, got a {type(df).__name__}: "
            "for arrays use TaskSet.from_arrays."
        )
    frame, keys = frames.eager(df), as_names(task)
    names = frames.column_names(frame)
    frames.require_columns(frame, keys, "task")
    side_names = as_names(side) if isinstance(side, str | list | tuple) else []
    used = [*keys, *side_names, *(name for name in (target, weight, time) if name is not None)]
    frames.require_columns(frame, side_names, "side")
    frames.require_columns(frame, [] if target is None else [target], "target")
    frames.require_columns(frame, [] if weight is None else [weight], "weight")
    frames.require_columns(frame, [] if time is None else [time], "time")
    if features is None:
        features = [name for name in names if name not in used]
    else:
        frames.require_columns(frame, as_names(features), "features")
    codes, ids = combine([frames.get_series(frame, key) for key in keys], "task")
    X = frames.numeric_matrix(frame, as_names(features))
    y, target_name = None, None
    if target is not None:
        target_name = str(target)
        y = arrays.as_labels(frames.get_column(frame, target), f"Column {target!r}")
    if side_names:
        table = side_from_rows({n: frames.get_column(frame, n) for n in side_names}, codes, ids)
        table.backend = frames.backend_of(frame)
    else:
        table = None if side is None else read_side_table(side, task_name=keys, side_key=side_key)
    repeats = None if weight is None else frames.get_column(frame, weight)
    if time is not None:
        time = read_times(frames.get_series(frame, time), len(X), f"Column {time!r}")
    parts = _grouped(X, y, codes, ids, table, missing_side, repeats, time)
    return parts | {
        "feature_names": as_names(features), "target_name": target_name,
        "task_name": _one_or_many(keys), "backend": frames.backend_of(frame),
    }  # fmt: skip


def _one_or_many(names: list[Any]) -> Any:
    return names[0] if len(names) == 1 else tuple(names)


def from_arrays(
    X: Any,
    y: Any,
    task: Any,
    side_info: Any,
    side_key: Any,
    feature_names: Any,
    missing_side: Any,
    weight: Any,
    time: Any,
) -> dict[str, Any]:
    """Read X, y and row-aligned task ids; parameters as for `TaskSet.from_arrays`."""
    backend = frames.backend_of(X)
    if frames.is_frame(X) and feature_names is None:
        X = frames.eager(X)
        feature_names = [str(name) for name in frames.column_names(X)]
    target_name = getattr(y, "name", None) if frames.is_series(y) else None
    target_name = None if target_name is None else str(target_name)
    X, y = matrix_and_target(X, y, feature_names)
    require_rows(X)
    if isinstance(task, str):
        raise DataError(
            f"task is the name {task!r}: pass the ids themselves, such as task=df[{task!r}], "
            f"or use TaskSet.from_frame(df, task={task!r})."
        )
    task_name = task_name_of(task)
    codes, ids = factorize(np.zeros(X.shape[0], np.int64) if task is None else task)
    if codes.size != X.shape[0]:
        raise DataError(f"X has {X.shape[0]} rows and task has {pluralize(codes.size, 'id')}.")
    table = None
    if side_info is not None:
        table = read_side_table(side_info, task_name=task_name, side_key=side_key)
    if time is not None:
        time = read_times(time, X.shape[0], task_of_row=lambda row: ids[codes[row]])
    return _grouped(X, y, codes, ids, table, missing_side, weight, time) | {
        "feature_names": feature_names, "target_name": target_name, "task_name": task_name,
        "backend": backend,
    }  # fmt: skip


def task_name_of(task: Any) -> Any:
    """Return the name, or tuple of names, of a column or table of ids."""
    if frames.is_frame(task):
        return _one_or_many(frames.column_names(task))
    if frames.is_series(task):
        names = getattr(task, "names", None)
        if names is not None and len(names) > 1:
            return tuple(names)
        name = getattr(task, "name", None)
        return name or None if isinstance(name, str) else name
    return None


def join_side(ids: np.ndarray, table: TaskTable, missing_side: str = "error") -> tuple:
    """Match tasks with a side table: extra rows become tasks, missing rows are an error.

    Return the ids of all tasks, and the table in their order.
    """
    if missing_side not in ("error", "mean"):
        raise bad_parameter("missing_side", "'error' or 'mean'", missing_side)
    has = table.has(ids)
    # ids that differ only by their type are an error even if rows may be missing
    if not has.all() and (missing_side == "error" or explain_mismatch(table.ids, ids[~has])):
        raise DataError(explain_absent(table.ids, ids[~has], "the side table"))
    known = set(ids)
    extra = [task_id for task_id in table.ids if task_id not in known]
    every = np.concatenate([ids, as_id_array(extra)])
    return every, table.take([*ids[has], *extra])


def _grouped(
    X: Any, y: Any, codes: Any, ids: Any, table: Any, missing_side: Any, weight: Any, time: Any
) -> dict[str, Any]:
    """Group the rows by task, and join the side table."""
    require_rows(X)
    if table is not None:
        ids, table = join_side(ids, table, missing_side)
    order, offsets = group_rows(codes, ids.size)
    if weight is not None:
        weight = as_weights(weight, X.shape[0])
    if (order[1:] > order[:-1]).all():
        order = None
    else:
        X = X.take(order, axis=0)
        y, weight, time = (
            None if values is None else values.take(order, axis=0) for values in (y, weight, time)
        )
    return {
        "X": X, "y": y, "offsets": offsets, "ids": ids, "side": table, "row_order": order,
        "weight": weight, "time": time,
    }  # fmt: skip


def from_tasks(tasks: Iterable[Any], missing_side: str) -> dict[str, Any]:
    """Read a list of tasks, each (X, y), (X, y, side row) or a `Task`."""
    points, ids, rows, weights, times = [], [], {}, [], []
    for number, item in enumerate(tasks):
        fields = tuple(item)
        if not 2 <= len(fields) <= 6:
            parts = f"Task {number} has {len(fields)} parts"
            raise DataError(f"{parts}: give (X, y), (X, y, side row) or a Task.")
        X, y = fields[:2]
        task_id, side = (None, fields[2]) if len(fields) == 3 else (*fields, None, None)[2:4]
        weight, time = (*fields, None, None)[4:6] if len(fields) > 4 else (None, None)
        weights.append(weight)
        times.append(time)
        ids.append(number if task_id is None else task_id)
        try:
            points.append((None, None) if X is None else matrix_and_target(X, y))
        except DataError as error:
            raise DataError(f"{name_task(ids[-1])}: {error}") from None
        if side is not None:
            rows[ids[-1]] = side
    blocks = [X for X, _ in points if X is not None]
    if not blocks:
        raise DataError("There are no tasks with points.")
    width = blocks[0].shape[1]
    for task_id, (X, _) in zip(ids, points, strict=True):
        if X is not None and X.shape[1] != width:
            raise DataError(f"{name_task(task_id)} has {X.shape[1]} features, expected {width}.")
    unlabelled = [i for i, (X, y) in zip(ids, points, strict=True) if X is not None and y is None]
    if 0 < len(unlabelled) < len(blocks):
        raise DataError(f"{name_task(unlabelled[0])} has no y while other tasks have one.")
    targets = [y for X, y in points if X is not None and y is not None]
    _require_one_kind(targets)
    offsets = np.cumsum([0] + [0 if X is None else X.shape[0] for X, _ in points])
    table = read_side_table(rows) if rows else None
    _, unique = factorize(ids)
    if table is not None and unique.size == len(ids):
        _, table = join_side(unique, table, missing_side)
    return {
        "X": arrays.stack_rows(blocks), "y": np.concatenate(targets) if targets else None,
        "offsets": offsets, "ids": unique if unique.size == len(ids) else ids,
        "side": table, "weight": _join_weights(weights, points),
        "time": _join_times(times, points, ids),
    }  # fmt: skip


def _require_one_kind(targets: list[np.ndarray]) -> None:
    """Raise if some tasks have names of classes as labels and others numbers."""
    text = next((y[0] for y in targets if y.dtype == object and len(y)), None)
    number = next((float(y[0]) for y in targets if y.dtype != object and len(y)), None)
    if text is not None and number is not None:
        raise DataError(
            f"y mixes text and numbers ({text!r} and {number!r}): write all classes as one of them."
        )


def _join_weights(weights: list[Any], points: list[Any]) -> np.ndarray | None:
    """Join the weights of tasks; rows of tasks without weights count once."""
    if all(weight is None for weight in weights):
        return None
    parts = [
        np.ones(len(X)) if weight is None else arrays.as_vector(weight, "sample_weight")
        for weight, (X, _) in zip(weights, points, strict=True)
        if X is not None
    ]
    return np.concatenate(parts)


def _join_times(times: list[Any], points: list[Any], ids: list[Any]) -> np.ndarray | None:
    """Join the times of tasks: all tasks with points have them, or none has."""
    filled = [(i, t, X) for i, t, (X, _) in zip(ids, times, points, strict=True) if X is not None]
    if all(time is None for _, time, _ in filled):
        return None
    lacking = next((task_id for task_id, time, _ in filled if time is None), None)
    if lacking is not None:
        raise DataError(f"{name_task(lacking)} has no times while other tasks have some.")
    return np.concatenate([read_times(time, len(X)) for _, time, X in filled])
