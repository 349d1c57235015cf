"""The `feature_map` parameter: "auto", one map, or several maps with their features joined."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from condmeta.errors import DataError
from condmeta.feature_maps.params import naming_failures
from condmeta.feature_maps.table_encoder import TableEncoder
from condmeta.feature_maps.training_ranges import TrainingRanges
from condmeta.persistence import register
from condmeta.persistence.fields import (
    ANY,
    TEXT,
    InvalidFieldError,
    instance,
    maybe,
    number,
    one_of,
    sequence,
)
from condmeta.tasks.frames import is_frame, numeric_matrix
from condmeta.tasks.messages import bad_parameter, name_task
from condmeta.tasks.task_table import TaskTable
from condmeta.typing import FeatureMapLike

if TYPE_CHECKING:
    from condmeta.tasks import TaskSet


def _parts_fit(state: dict, sizes: dict[str, int]) -> None:
    if sum(state["widths_"]) != sizes["k"]:
        raise InvalidFieldError("widths_", f"must sum to {sizes['k']}, the number of names_out_")
    ComposedMap(state["feature_map"])._parts()  # raises where it is none
    reads_table = any(kind != "points" for kind in state["input_kinds_"])
    if reads_table and state["columns_"] is None:
        raise InvalidFieldError("columns_", "must be the columns that the maps read")
    if (state["columns_"] is None) != (state["seen_"] is None):
        raise InvalidFieldError("seen_", "must be kept with columns_")
    for made, kind, width in zip(
        state["parts_"], state["input_kinds_"], state["widths_"], strict=True
    ):
        if (kind == "points") != _is_point_map(made) or (kind == "table") != isinstance(
            made, TableEncoder
        ):
            raise InvalidFieldError("input_kinds_", f"does not fit {_label(made)}")
        if kind == "table" and made.columns_ != state["columns_"]:
            raise InvalidFieldError("columns_", "must be the columns of the encoder")
        if hasattr(made, "names_out_") and len(made.names_out_) != width:
            raise InvalidFieldError("widths_", f"must be {len(made.names_out_)} for {_label(made)}")


SIZE = number(low=0, whole=True)
KINDS = "table", "numbers", "points", "array", "object", "pandas", "polars", "pyarrow"


@register(
    fields={
        "feature_map": ANY, "parts_": sequence(instance(), "m"), "widths_": sequence(SIZE, "m"),
        "input_kinds_": sequence(one_of(*KINDS), "m"),
        "columns_": maybe(sequence(TEXT, distinct=True)), "seen_": maybe(instance("SeenColumns")),
        "names_out_": sequence(TEXT, "k"),
    },
    rule=_parts_fit,
)  # fmt: skip
class ComposedMap:
    """Compute features Phi (T, k) from side tables and points, with one map or several.

    Parameters
    ----------
    feature_map : None, "auto", map, scikit-learn transformer, or list of them
        None makes no features (k = 0), and so does "auto" without a side table. The maps are
        copied before they are fitted.

    Attributes
    ----------
    parts_ : list of fitted maps
    widths_ : list of int, the number of features of each map
    input_kinds_ : list of what each map reads: "table", "numbers", "points", or the kind of
        table or array that a foreign transformer was fitted on
    columns_ : tuple of str or None, the side columns in fit
    seen_ : TrainingRanges or None, the ranges and levels of these columns in fit
    names_out_ : tuple of str
    n_features_out : int, k

    Examples
    --------
    >>> table = TaskTable({"size": [1.0, 3.0]}, ids=["a", "b"])
    >>> ComposedMap("auto").fit(table).transform(3, table=table, rows=[2, 0], fill=np.zeros(1))
    array([[ 1.],
           [ 0.],
           [-1.]])
    """

    def __init__(self, feature_map: FeatureMapLike = "auto"):
        self.feature_map = feature_map

    def _parts(self) -> list[Any]:
        """Return the maps as the user gave them, checked."""
        given = self.feature_map
        if given is None:
            return []
        parts = list(given) if isinstance(given, list | tuple) else [given]
        for part in parts:
            table_map = hasattr(part, "fit") and hasattr(part, "transform")
            usable = part == "auto" if isinstance(part, str) else table_map or _is_point_map(part)
            if not usable or isinstance(part, type):
                valid = "'auto', None, a map, a scikit-learn transformer or a list of them"
                raise bad_parameter("feature_map", valid, part)
        return parts

    @property
    def reads_table(self) -> bool:
        """Whether some map reads the side table; a fitted "auto" without a table does not."""
        if hasattr(self, "input_kinds_"):
            return any(kind != "points" for kind in self.input_kinds_)
        return any(not _is_point_map(part) for part in self._parts())

    @property
    def reads_points(self) -> bool:
        """Whether some map reads the points of the tasks."""
        return any(_is_point_map(part) for part in self._parts())

    @property
    def needs_y(self) -> bool:
        """Whether some map reads the targets of the points."""
        return any(_is_point_map(p) and getattr(p, "needs_y", False) for p in self._parts())

    @property
    def n_features_out(self) -> int:
        """Number of features k."""
        return sum(self.widths_)

    def units_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and scale (k,): a feature is (side column - mean) / scale.

        Mean 0 and scale 1 for the features of maps that do not say so.
        """
        mean, scale, start = np.zeros(self.n_features_out), np.ones(self.n_features_out), 0
        for part, width in zip(self.parts_, self.widths_, strict=True):
            if hasattr(part, "units_out"):
                mean[start : start + width], scale[start : start + width] = part.units_out()
            start += width
        return mean, scale

    def fit(self, table: TaskTable | None = None, points: TaskSet | None = None) -> Self:
        """Fit the maps to the side rows of the tasks that have one, and to the tasks' points.

        `points` is a `TaskSet`, or a tuple (X, y, offsets) or (X, y, offsets, weight).
        """
        self.columns_ = None if table is None else table.columns
        self.seen_ = None if table is None else TrainingRanges.of(table)
        self.parts_: list[Any] = []
        self.input_kinds_: list[str] = []
        self.widths_: list[int] = []
        names: list[str] = []
        for given in self._parts():
            if isinstance(given, str) and table is None:
                continue  # "auto" without side information: the unconditional case
            part = TableEncoder() if isinstance(given, str) else copy.deepcopy(given)
            kind = _input_kind(part, table, points)
            if kind == "points":
                if hasattr(part, "fit_tasks"):
                    part.fit_tasks(*_arguments(_label(part), part.fit_tasks, points))
            else:
                self._run(part.fit, kind, table)
            self.parts_.append(part)
            self.input_kinds_.append(kind)
            block = self._block(part, kind, table, _one_task(points))
            self.widths_.append(block.shape[1])
            names += _names(part, kind, block.shape[1], table, points)
        self.names_out_ = tuple(names)
        return self

    def with_ranges_of(self, table: TaskTable | None) -> Self:
        """Return the same map with training ranges that include a further side table."""
        if table is None or self.seen_ is None:
            return self
        later = copy.copy(self)
        later.seen_ = self.seen_.join(TrainingRanges.of(table.align(self.columns_)))
        return later

    def transform(
        self, n_tasks: int, *, table: TaskTable | None = None, rows: np.ndarray | None = None,
        points: TaskSet | None = None, fill: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return Phi (n_tasks, k).

        Parameters
        ----------
        n_tasks : int
        table : TaskTable, optional
            The side rows of the tasks that have one.
        rows : (table.n_tasks,) int array, optional
            The task of each row of the table; by default 0, 1, 2, ...
        points : TaskSet or (X, y, offsets) or (X, y, offsets, weight), optional
            The points of all tasks, some of which may have none.
        fill : (k,) array, optional
            Features of a task without a side row, or without points. If None, such a task is a
            DataError.
        """
        if table is not None and self.columns_ is not None and self.reads_table:
            table = table.align(self.columns_)
        elif table is not None and any(isinstance(part, str) for part in self._parts()):
            raise DataError("Side information is given now, but there was none in fit.")
        rows = np.arange(0 if table is None else table.n_tasks) if rows is None else rows
        Phi = np.empty((n_tasks, self.n_features_out))
        start = 0
        for part, kind, width in zip(self.parts_, self.input_kinds_, self.widths_, strict=True):
            block = slice(start, start + width)
            if kind == "points":
                offsets = np.zeros(n_tasks + 1, int) if points is None else _arrays(points)[2]
                at = np.flatnonzero(np.diff(offsets))
            else:
                at = np.asarray(rows, dtype=np.int64)
            if at.size < n_tasks:
                if fill is None:
                    lacking = "points" if kind == "points" else "side information"
                    some = f"{n_tasks - at.size} of {n_tasks} tasks have no {lacking}"
                    raise DataError(f"{some}, which the feature map {_label(part)} reads.")
                Phi[:, block] = np.asarray(fill)[block]
            if at.size:
                values = self._block(part, kind, table, points)
                if values.shape[1] != width:
                    gave = f"The feature map {_label(part)} gave {values.shape[1]} features"
                    raise DataError(f"{gave}, expected {width}.")
                Phi[at, block] = values[at] if kind == "points" else values
            start += width
        return Phi

    def _block(self, part: Any, kind: str, table: Any, points: Any) -> np.ndarray:
        """Return the features of one map, checked."""
        if kind == "points":
            arguments = _arguments(_label(part), part.transform_tasks, points)
            with naming_failures(f"The feature map {_label(part)}"):
                out = part.transform_tasks(*arguments)
            n_rows, ids = len(_arrays(points)[2]) - 1, None
        else:
            with (
                nullcontext()
                if kind == "table"
                else naming_failures(f"The feature map {_label(part)}")
            ):
                out = self._run(part.transform, kind, table)
            n_rows, ids = table.n_tasks, table.ids
        if hasattr(out, "toarray"):
            out = out.toarray()
        out = numeric_matrix(out) if is_frame(out) else np.asarray(out)
        if out.ndim != 2 or out.shape[0] != n_rows or out.dtype.kind not in "fiub":
            raise DataError(
                f"The feature map {_label(part)} gave an array of shape {out.shape} and type "
                f"{out.dtype}, expected numbers of shape ({n_rows}, k)."
            )
        out = out.astype(np.float64, copy=False)
        if not np.isfinite(out).all():
            _raise_if_gaps(table if kind != "points" else None)
            t = int(np.argmax(~np.isfinite(out).all(axis=1)))
            who = f"Task number {t}" if ids is None else name_task(ids[t])
            raise DataError(f"{who} got NaN or infinity from the feature map {_label(part)}.")
        return out

    @staticmethod
    def _run(method: Any, kind: str, table: Any) -> Any:
        """Call fit or transform of a table map on the kind of input it reads."""
        if kind == "table":
            return method(table)
        if kind == "numbers":
            return method(table.numeric())
        try:
            return method(table.native(kind))
        except (ValueError, TypeError) as error:
            if not isinstance(error, DataError):
                _raise_if_gaps(table, error)
            raise


def _is_point_map(part: Any) -> bool:
    return hasattr(part, "transform_tasks")


def _label(part: Any) -> str:
    return '"auto"' if isinstance(part, TableEncoder) else type(part).__name__


def _input_kind(part: Any, table: TaskTable | None, points: Any) -> str:
    """Return what a map reads; a foreign transformer reads the kind of table that fit was given."""
    if _is_point_map(part):
        if points is None:
            raise DataError(f"The feature map {_label(part)} reads the points of the tasks.")
        return "points"
    if table is None:
        raise DataError(f"The feature map {_label(part)} reads side information: pass side_info=.")
    if isinstance(part, TableEncoder):
        return "table"
    if getattr(part, "reads_numbers", False):
        return "numbers"
    return table.backend or ("array" if table.is_numeric else "object")


def _names(part: Any, kind: str, width: int, table: Any, points: Any) -> list[str]:
    """Return the names of the features of a fitted map."""
    if isinstance(part, TableEncoder):
        return list(part.names_out_)
    if hasattr(part, "names_out"):
        if kind != "points":
            return list(part.names_out(table.columns))
        given = getattr(points, "feature_names", None)
        return list(part.names_out(given or [f"x{j}" for j in range(_arrays(points)[0].shape[1])]))
    try:
        names = [str(name) for name in part.get_feature_names_out()]
    except (AttributeError, ValueError, TypeError):
        names = []
    return names if len(names) == width else [f"{_label(part).lower()}{j}" for j in range(width)]


def _raise_if_gaps(table: TaskTable | None, error: Exception | None = None) -> None:
    """Raise a DataError for the first gap in the side table, if there is one."""
    if table is not None and table.gaps().any():
        t, j = np.argwhere(table.gaps())[0]
        raise DataError(
            f"{name_task(table.ids[t])} has NaN (no value) in side column {table.columns[j]!r}: "
            'feature_map="auto" handles gaps.'
        ) from error


def _arrays(points: Any) -> Sequence[Any]:
    """Return X, y, offsets and weight; weight may be None."""
    if isinstance(points, tuple):
        return *points, *[None] * (4 - len(points))
    return points.X, points.y, points.offsets, getattr(points, "weight", None)


def _arguments(label: str, method: Any, points: Any) -> Sequence[Any]:
    """Return the arguments of a method of a map of points; weights only if there are any."""
    *arrays, weight = _arrays(points)
    if weight is None:
        return arrays
    if len(inspect.signature(method).parameters) < 4:
        raise DataError(
            f"The feature map {label} cannot use weights. Give its method {method.__name__} a "
            "fourth argument, weight, or leave sample_weight out."
        )
    return *arrays, weight


def _one_task(points: Any) -> Any:
    """Return the points of the first task that has any: enough to find the width of a map."""
    if points is None:
        return None
    X, y, offsets, weight = _arrays(points)
    end = next((int(end) for end in offsets if end > 0), 0)
    first = [None if array is None else array[:end] for array in (y, weight)]
    return X[:end], first[0], np.array([0, end]), first[1]
