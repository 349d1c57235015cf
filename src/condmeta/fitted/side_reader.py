"""From side information to Phi: rows of a side table, points, and tasks that have neither."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.feature_maps import ComposedMap
from condmeta.fitted.scales import Scales
from condmeta.kernels import LinearKernel, PrecomputedKernel, get_kernel
from condmeta.kernels.side_readers import GramReader, SetReader
from condmeta.persistence.fields import instance, maybe, one_of
from condmeta.persistence.registry import register_tuple
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.messages import explain_absent, name_task
from condmeta.tasks.weights import masses


@register_tuple(
    fields={
        "map": instance("ComposedMap", "GramReader", "SetReader", k="k"),
        "missing_side": one_of("error", "mean"), "kernel": maybe(instance()),
    }
)  # fmt: skip
class SideReader(NamedTuple):
    """Turn side information into features Phi (T, k), or into what a kernel reads of T tasks.

    Attributes
    ----------
    map : ComposedMap, GramReader or SetReader
    missing_side : "error" or "mean"
        Whether a task without a side row is an error, or gets the mean training Phi.
    kernel : kernel or None
        The kernel that reads the features; None for a linear map.
    """

    map: Any
    missing_side: str
    kernel: Any = None

    @classmethod
    def of(cls, feature_map, missing_side: str, kernel=None) -> SideReader:
        """Return a reader that is not fitted yet."""
        kernel = None if kernel is None else get_kernel(kernel)
        if kernel is not None and getattr(kernel, "reads_points", False):
            reader = SetReader()
        elif isinstance(kernel, PrecomputedKernel):
            reader = GramReader()
        else:
            return cls(ComposedMap(feature_map), missing_side, kernel)
        if feature_map not in ("auto", None):
            raise DataError(
                f"The kernel {kernel!r} does not use 'feature_map': leave it at 'auto'."
            )
        return cls(reader, missing_side, kernel)

    @property
    def reads_points(self) -> bool:
        """Whether the features depend on points."""
        return self.map.reads_points

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return self.map.names_out_

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns of the side table that `fit` saw, or None."""
        return self.map.columns_

    def fit(self, tasks: TaskSet, scales: Scales, feature_names) -> SideReader:
        """Learn the encodings from the tasks that have rows."""
        table = None
        if tasks.side is not None and self.map.reads_table:
            present = tasks.ids[tasks.sizes > 0]
            table = tasks.side.take(present[tasks.side.has(present)])
        X, y = tasks.X, tasks.y
        if self.reads_points:
            X, y = scales.for_maps(scales.scaled(X), scales.target(y))
        names = None if feature_names is None else scales.names(feature_names)
        own = {"X": X, "y": y, "offsets": tasks.offsets, "weight": masses(tasks.weight)}
        self.map.fit(table, SimpleNamespace(**own, feature_names=names))
        if isinstance(self.map, GramReader):
            self.map.require_square(tasks)
        if self.kernel is not None and not len(self.names):
            return self._replace(kernel=LinearKernel())  # no side information: tau is b
        return self

    def refit(self, table: TaskTable | None) -> SideReader:
        """Return a reader like this one, with encodings learned from a side table alone."""
        fresh = ComposedMap(self.map.feature_map)
        return self._replace(map=fresh.fit(table if fresh.reads_table else None))

    def features(self, ids, table: TaskTable | None, points, tau=None):
        """Return Phi (T, k) of tasks `ids`.

        `points` are (X, y, offsets) or (X, y, offsets, weight), scaled. Where a task lacks what the
        map reads, its features are those of the mean training task, `tau.phi_mean`; during training
        the mean over the given tasks that lack nothing. For a kernel they are NaN.
        """
        if self.kernel is not None:
            sides = self._transform(ids, table, points, np.full(len(self.names), np.nan))
            if getattr(self.kernel, "one_size", False):
                self._require_one_size(ids, sides, sides if tau is None else tau.sides)
            return sides
        fill = None if tau is None else tau.phi_mean
        if fill is None and (self.reads_points or self.missing_side == "mean"):
            fill = self._mean_of_complete(ids, table, points)
        return self._transform(ids, table, points, fill)

    def _mean_of_complete(self, ids, table, points) -> np.ndarray:
        """Return the mean Phi (k,) of the tasks that have everything the map reads."""
        complete = np.ones(len(ids), bool)
        if self.map.reads_table:
            complete &= table.has(ids) if table is not None else False
        if self.reads_points and points is not None:
            complete &= np.diff(points[2]) > 0
        zeros = np.zeros(self.map.n_features_out)
        Phi = self._replace(missing_side="mean")._transform(ids, table, points, zeros)
        return Phi[complete].mean(axis=0) if complete.any() else zeros

    def find_rows(self, ids, table: TaskTable | None) -> np.ndarray:
        """Return which tasks (T,) have a side row; raise where one is needed."""
        present = np.zeros(len(ids), bool) if table is None else table.has(ids)
        if not present.all() and self.map.reads_table and self.missing_side == "error":
            raise _no_side_row(ids, table, present)
        return present

    def require_rows(self, ids, table: TaskTable | None) -> None:
        """Raise if tasks lack side rows that the map will read, named as they came; not fitted."""
        reader = self.refit(None) if table is None else self
        reader.find_rows(ids, table)

    def _transform(self, ids, table, points, fill):
        """Return the features; what is missing takes `fill`, or is an error."""
        rows = np.arange(len(ids))
        if self.map.reads_table:
            rows = np.flatnonzero(self.find_rows(ids, table))
            table = table.take(ids[rows]) if len(rows) else None
        return self.map.transform(len(ids), table=table, rows=rows, points=points, fill=fill)

    def _require_one_size(self, ids, sides, known) -> None:
        sizes, others = sides.sizes, known.sizes
        expected = others[others > 0][:1]
        unlike = (sizes > 0) & (sizes != expected) if len(expected) else np.zeros(len(sizes), bool)
        if unlike.any():
            t = int(np.argmax(unlike))
            raise DataError(
                f"{name_task(ids[t])} has {sizes[t]} conditioning points, others have "
                f"{expected[0]}: {type(self.kernel).__name__} needs the same number for every "
                "task. Use MeanEmbedding, which takes any number."
            )


def _no_side_row(ids, table: TaskTable | None, present) -> DataError:
    if ids[0] is None:  # a new task given alone
        return DataError(
            "The task has no side information, which the feature map reads. Give its row as "
            "side_info, or set missing_side='mean'."
        )
    known = [] if table is None else table.ids
    return DataError(
        explain_absent(known, ids[~present], "side_info")
        + " Add the missing rows to side_info, or set missing_side='mean'."
    )
