"""Statistics of tasks: enough to learn from again, without their rows."""

from functools import reduce
from typing import NamedTuple, Self
from zlib import crc32

import numpy as np

from condmeta.errors import DataError
from condmeta.inner.scaled import ScaledTasks
from condmeta.inner.scatter import Scatter
from condmeta.inner.squared import SquaredState
from condmeta.meta.blocks import by_leaf
from condmeta.persistence.fields import (
    InvalidFieldError,
    floats,
    ids,
    instance,
    integers,
    maybe,
    optional,
    point_counts,
    sequence,
)
from condmeta.persistence.registry import register_tuple
from condmeta.tasks import TaskTable
from condmeta.tasks.messages import show_ids
from condmeta.tasks.points import Points
from condmeta.tasks.splits import (
    distinct_columns,
    first_points,
    fold_numbers,
    half_of,
    in_content_order,
    keys_by_content,
)
from condmeta.tasks.timed import Timed

SAMPLE = 500  # tasks that settings are chosen on
FEW = 1, 2, 5  # numbers of points that settings are judged at, beside none and half of a task


def _sample_is_of_the_tasks(state: dict, sizes: dict[str, int]) -> None:
    sample = state["sample"]
    if len(np.unique(sample)) < len(sample) or sample.max(initial=-1) >= sizes["T"]:
        raise InvalidFieldError("sample", "must be positions of different tasks")
    if (state["Phi"] is None) != (state["Phi_support"] is None):
        raise InvalidFieldError("Phi_support", "must be kept with Phi")


@register_tuple(
    name="Collected",
    fields={
        "ids": ids("T"), "whole": instance("Scatter", T="T", d="d"),
        "table": maybe(instance("TaskTable")),
        "Phi": maybe(floats("T k")), "sizes": point_counts("T"),
        "keys": integers("T", dtype="uint64"), "sample": integers("m", low=0),
        "support": instance("Scatter", T="m", d="d"), "query": instance("Scatter", T="m", d="d"),
        "Phi_support": maybe(floats("m k")),
        "history": optional(maybe(instance("Timed", T="T", d="d"))),
        "few": optional(sequence(instance("Scatter", T="m", d="d"))),
    },
    rule=_sample_is_of_the_tasks,
    by_task=dict.fromkeys(("ids", "whole", "Phi", "sizes", "keys"), "rows")
    | dict.fromkeys(("sample", "support", "query", "few", "Phi_support"), "none")
    | dict.fromkeys(("table", "history"), "drop"),
)  # fmt: skip
class TaskStatistics(NamedTuple):
    """Statistics of T tasks; those of one task do not depend on the others, or on their order.

    Attributes
    ----------
    ids : (T,) object array
    whole : Scatter of all tasks
    table : TaskTable or None
        Raw side rows of the tasks that have one, if the map reads nothing else.
    Phi : (T, k) array or None
        Features, if the map reads points; the points are not kept.
    sizes : (T,) int array
        Rows of each task, without their weights.
    keys : (T,) uint64 array
        Hashes of the tasks' points, then of their ids: the tasks with the smallest are the sample.
    sample : (m,) int array
        Positions of the sampled tasks, by rising key.
    support, query : Scatter of the sampled tasks
        Every second point in an order by content, from the second on, and the others.
    Phi_support : (m, k) array or None
        Features of the sampled tasks from their support alone, if Phi is kept.
    history : Timed or None
        The rows of all tasks with their times, if drift is still to be learned from them.
    few : tuple of Scatter of the sampled tasks
        The first `FEW` points of the support.
    """

    ids: np.ndarray
    whole: Scatter
    table: TaskTable | None
    Phi: np.ndarray | None
    sizes: np.ndarray
    keys: np.ndarray
    sample: np.ndarray
    support: Scatter
    query: Scatter
    Phi_support: np.ndarray | None
    history: Timed | None = None
    few: tuple[Scatter, ...] = ()

    @classmethod
    def of(
        cls, ids, points: Points, table=None, Phi=None, features=None,
        distinct: np.ndarray | None = None, keys: np.ndarray | None = None,
    ) -> Self:  # fmt: skip
        """Collect the tasks of one call.

        `features(tasks, points)` gives Phi of the tasks at some positions from these points of
        theirs, for a map that reads the points themselves. `distinct` is the mask of columns that
        are no copies; without it, those of these points. `keys` are given if they are known.
        """
        distinct = distinct_columns(points) if distinct is None else distinct
        if keys is None:
            keys = without_ties(keys_by_content(points, distinct), ids)
        order = np.argsort(keys, kind="stable")
        sample = order[points.sizes[order] > 0][:SAMPLE]
        sampled = in_content_order(points.take(sample), distinct=distinct)
        halves = [half_of(sampled, half) for half in (True, False)]
        few = tuple(Scatter.of(*first_points(halves[0], n)) for n in FEW)
        Phi_support = None if Phi is None else Phi[sample]
        if features is not None:
            Phi_support = features(sample, halves[0])
        whole, support, query = (Scatter.of(*part) for part in (points, *halves))
        rest = points.sizes, keys, sample, support, query, Phi_support
        return cls(ids, whole, table, Phi, *rest, few=few)

    def refuse_known(self, ids, remedy: str) -> None:
        """Raise if some ids are known already."""
        refuse_known(self.ids, ids, remedy)

    def join(self, other: Self) -> Self:
        """Return the tasks of both, which differ in their ids."""
        keys = _both(self.keys, other.keys)
        at = _both(self.sample, len(self.ids) + other.sample)
        order = np.argsort(keys[at], kind="stable")[:SAMPLE]
        table = self.table if other.table is None else other.table
        if self.table is not None and other.table is not None:
            table = self.table.concat(other.table)
        return type(self)(
            _both(self.ids, other.ids), self.whole.join(other.whole), table,
            _both(self.Phi, other.Phi), _both(self.sizes, other.sizes), keys, at[order],
            self.support.join(other.support).take(order), self.query.join(other.query).take(order),
            None if self.Phi is None else _both(self.Phi_support, other.Phi_support)[order],
            None if self.history is None else self.history.join(other.history),
            tuple(a.join(b).take(order) for a, b in zip(self.few, other.few, strict=False)),
        )  # fmt: skip

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """Return the tasks of all parts, which differ in their ids; the list is emptied.

        Each array is made once: to join parts one by one would copy all tasks each time.
        """
        small = reduce(cls.join, (part.sampled() for part in parts))
        begins = np.cumsum([0, *(len(part.ids) for part in parts)])
        ids = np.concatenate([part.ids for part in parts])
        keys = np.concatenate([part.keys for part in parts])
        sizes = np.concatenate([part.sizes for part in parts])
        at = np.concatenate([b + part.sample for b, part in zip(begins, parts, strict=False)])
        at = at[np.argsort(keys[at], kind="stable")[:SAMPLE]]
        tables = [part.table for part in parts if part.table is not None]
        table = (
            TaskTable.stacked(tables, sum(table.n_tasks for table in tables)) if tables else None
        )
        Phi = None if parts[0].Phi is None else np.concatenate([part.Phi for part in parts])
        scatters = [part.whole for part in parts]
        history = None
        if parts[0].history is not None:
            history = reduce(Timed.join, (part.history for part in parts))
        parts.clear()
        halves = small.support, small.query, small.Phi_support, history, small.few
        return cls(ids, Scatter.joined(scatters), table, Phi, sizes, keys, at, *halves)

    def sampled(self) -> Self:
        """Return the sampled tasks alone."""
        at = self.sample
        whole, Phi = self.whole.take(at), None if self.Phi is None else self.Phi[at]
        return self._replace(
            ids=self.ids[at], whole=whole, table=None, Phi=Phi, sizes=self.sizes[at],
            keys=self.keys[at], sample=np.arange(len(at)),
        )  # fmt: skip

    def times(self, factor: np.ndarray) -> Self:
        """Return the statistics of points (x, y) times a factor (d+1,)."""
        history = self.history
        if history is not None:
            X, y = history.X * factor[:-1], history.y * factor[-1]
            history = history._replace(X=X, y=y)
        return self._map(lambda part: part.times(factor))._replace(history=history)

    def extend(self, at, points: Points) -> Self:
        """Return it with further points of the tasks at positions `at`; not of `history`."""
        whole = self.whole.extend_at(at, Scatter.of(*points))
        sizes = np.zeros(len(self.ids), np.int64)
        sizes[at] = points.sizes
        points = points.take(np.argsort(at))
        points = points._replace(offsets=np.concatenate([[0], np.cumsum(sizes)]))
        sampled, before = in_content_order(points.take(self.sample)), self.sizes[self.sample]
        support, query = (
            part.extend(Scatter.of(*half_of(sampled, half, before)))
            for part, half in ((self.support, True), (self.query, False))
        )
        return self._replace(whole=whole, sizes=self.sizes + sizes, support=support, query=query)

    def remember(self, at, points: Points, time) -> Self:
        """Return it with further rows of the tasks at `at` in `history`, if it is kept."""
        if self.history is None:
            return self
        return self._replace(history=self.history.extend(at, Timed(*points, time)))

    def transformed(self, A, centre) -> Self:
        """Return the statistics of points A (z - centre), z = (x, y) (see `Scatter`)."""
        return self._map(lambda part: part.transformed(A, centre))._replace(history=None)

    def _map(self, change) -> Self:
        """Return the statistics with `change` of each part."""
        parts = {name: change(getattr(self, name)) for name in ("whole", "support", "query")}
        return self._replace(**parts, few=tuple(map(change, self.few)))

    def order(self) -> np.ndarray:
        """Return the positions of the tasks with points: the sample, then the rest by their keys.

        It does not depend on the order in which tasks came.
        """
        left = self.whole.count > 0
        left[self.sample] = False
        rest = np.flatnonzero(left)
        return np.concatenate([self.sample, rest[np.argsort(self.keys[rest], kind="stable")]])

    def leaves(self, at: np.ndarray | None = None) -> list[np.ndarray]:
        """Return the positions of all tasks, or of those at `at`, in leaves by rising key.

        See `condmeta.meta.blocks`.
        """
        if at is None:
            return by_leaf(self.keys)
        return [at[leaf] for leaf in by_leaf(self.keys[at])]

    def folds(self) -> np.ndarray:
        """Return the fold in which each task of the sample is held out."""
        return fold_numbers(len(self.sample))


def without_ties(keys: np.ndarray, ids) -> np.ndarray:
    """Return keys (T,) whose last 32 bits come from the ids.

    Tasks of one row often have the same content; their order must not be that of the input.
    """
    texts = map(str.encode, map(repr, ids.tolist()))
    last = np.fromiter(map(crc32, texts), np.uint64, len(ids))
    return keys & np.uint64(0xFFFFFFFF00000000) | last


def scaled_statistics(part: Scatter, scales, at=None) -> SquaredState:
    """Return the statistics of scaled rows, of the tasks at positions `at`."""
    return scaled_packed(part, scales, at).squared


def scaled_packed(part: Scatter, scales, at=None) -> ScaledTasks:
    """Return the same, still packed: for passes that read it once."""
    units = scales.units
    mean, scale = np.append(scales.x_mean, scales.y_offset) / units, scales.x_scale / units[:-1]
    return part.scaled(mean, scale, scales.fit_intercept, at)


def refuse_known(known, ids, remedy: str) -> None:
    """Raise if some ids are among those known already."""
    before = set(known.tolist())
    again = [task for task in ids.tolist() if task in before]
    if again:
        few = "1 task was" if len(again) == 1 else f"{len(again)} tasks were"
        raise DataError(f"{few} seen before: {show_ids(again)}. {remedy}")


def _both(a, b):
    return None if a is None else np.concatenate([a, b])
