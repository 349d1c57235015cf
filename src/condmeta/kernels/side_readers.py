"""Readers that turn tasks into what a kernel reads: sets of points, or rows of kernel values.

They have the interface of `ComposedMap`, which returns coordinates. If a task lacks what the
kernel reads, its coordinates and kernel values are NaN, and its set of points is empty.
"""

from typing import Any, Self

import numpy as np

from condmeta.errors import DataError
from condmeta.kernels.own import GramRows
from condmeta.kernels.set_kernels import PointSets
from condmeta.persistence import register
from condmeta.persistence.fields import TEXT, InvalidFieldError, mapping, number, sequence
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.messages import name_task, show_ids


def has_side(sides: Any) -> np.ndarray:
    """Return for each task whether it has what the kernel reads, (T,) bool."""
    return ~np.isnan(sides).any(axis=1) if isinstance(sides, np.ndarray) else sides.present


def join_sides(first: Any, second: Any):
    """Return the tasks of both, in this order."""
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    return first.concat(second)


@register(fields={"names_out_": sequence(TEXT, "k")})
class SetReader:
    """Pass the points of each task to a kernel on sets."""

    reads_table, reads_points, columns_ = False, True, None

    def fit(self, table: Any, points: Any) -> Self:
        """Learn the names of the coordinates."""
        names = points.feature_names
        self.names_out_ = names or tuple(f"x{j}" for j in range(points.X.shape[1]))
        return self

    def transform(
        self,
        n_tasks: int,
        *,
        table: Any = None,
        rows: Any = None,
        points: Any = None,
        fill: Any = None,
    ) -> PointSets:
        """Return the points of each task."""
        return PointSets(np.ascontiguousarray(points[0]), points[2])


def _places_are_those_of_the_columns(state: dict, sizes: dict[str, int]) -> None:
    columns = state["columns_"]
    if state["places_"] != {name: j for j, name in enumerate(columns)}:
        raise InvalidFieldError("places_", "must be the position of each column")
    if tuple(state["names_out_"]) != tuple(columns):
        raise InvalidFieldError("names_out_", "must be the columns")


@register(
    fields={
        "columns_": sequence(TEXT, "k", distinct=True), "names_out_": sequence(TEXT, "k"),
        "places_": mapping(number(low=0, whole=True)),
    },
    rule=_places_are_those_of_the_columns,
)  # fmt: skip
class GramReader:
    """Read kernel values from a side table with one column for each training task."""

    reads_table, reads_points = True, False

    def fit(self, table: TaskTable | None, points: Any) -> Self:
        """Learn the names of the columns."""
        if table is None:
            raise DataError(
                "kernel='precomputed' reads kernel values from side_info: pass a table with one "
                "row for each task and one column for each training task, named like it."
            )
        self.columns_ = self.names_out_ = table.columns
        self.places_ = {name: j for j, name in enumerate(table.columns)}
        return self

    def transform(
        self,
        n_tasks: int,
        *,
        table: Any = None,
        rows: Any = None,
        points: Any = None,
        fill: Any = None,
    ) -> GramRows:
        """Return the rows of kernel values, NaN for tasks without a row."""
        values = np.full((n_tasks, len(self.columns_)), np.nan)
        own = np.full(n_tasks, -1)
        if table is not None:
            table = table.align(self.columns_)
            read = table.numeric(allow_gaps=True)
            if np.isnan(read).any():
                t, j = np.argwhere(np.isnan(read))[0]
                raise DataError(
                    f"{name_task(table.ids[t])} has no kernel value in column {self.columns_[j]!r}."
                )
            values[rows] = read
            own[rows] = [self.places_.get(str(task), -1) for task in table.ids.tolist()]
        return GramRows(values, own)

    def require_square(self, tasks: TaskSet) -> None:
        """Raise a DataError unless rows and columns stand for the same training tasks."""
        trained = tasks.ids[tasks.sizes > 0]
        absent = [task for task in trained.tolist() if str(task) not in self.places_]
        known = set(map(str, tasks.side.ids.tolist()))
        unknown = [name for name in self.columns_ if name not in known]
        if absent or unknown:
            parts = [f"Tasks without a column: {show_ids(absent)}."] * bool(absent)
            parts += [f"Columns without a task: {show_ids(unknown)}."] * bool(unknown)
            raise DataError(
                "kernel='precomputed' needs a square table of the training tasks, with columns "
                f"named like the rows. {' '.join(parts)}"
            )
