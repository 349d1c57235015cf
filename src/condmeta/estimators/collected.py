"""What a learner by statistics remembers of its tasks: enough to learn again, not their rows."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.inner.scatter import Scatter
from condmeta.meta.points import WeightedPoints
from condmeta.meta.ridge_choice import FOLDS
from condmeta.tasks import TaskTable
from condmeta.tasks.ids import show_ids

SAMPLE = 500  # tasks whose halves are kept apart, to choose by


class Collected(NamedTuple):
    """Statistics of T tasks, which do not depend on how or with which others they came.

    Attributes
    ----------
    ids : (T,) object array
    whole : Scatter of all tasks
    table : TaskTable or None
        Raw side rows of the tasks that have one, where the map reads these alone.
    Phi : (T, k) array or None
        Features, where the map reads points, which are not kept.
    sizes : (T,) int array
        Rows of each task, whatever their weights.
    keys : (T,) uint64 array
        Hashes of the ids: the tasks with the smallest are the sample.
    sample : (m,) int array
        Positions of the sampled tasks, by rising key.
    support, query : Scatter of the sampled tasks
        Every second point, from the second on, and the others.
    Phi_support : (m, k) array or None
        Features of the sampled tasks from their support alone, where Phi is kept.
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

    @classmethod
    def of(cls, ids, points: WeightedPoints, table=None, Phi=None, features=None) -> Collected:
        """Collect the tasks of one call.

        `features(tasks, points)` gives Phi of the tasks at some positions from these points of
        theirs, for a map that reads the points themselves.
        """
        keys = task_keys(ids)
        order = np.argsort(keys, kind="stable")
        sample = order[points.sizes[order] > 0][:SAMPLE]
        first, second = (half_of(points, sample, half) for half in (True, False))
        Phi_support = None if Phi is None else Phi[sample]
        if features is not None:
            Phi_support = features(sample, first)
        whole = Scatter.of(*points)
        halves = Scatter.of(*first), Scatter.of(*second)
        return cls(ids, whole, table, Phi, points.sizes, keys, sample, *halves, Phi_support)

    def refuse(self, ids, remedy: str) -> None:
        """Say so when some ids are known already."""
        known = set(self.ids.tolist())
        again = [task for task in ids.tolist() if task in known]
        if again:
            few = "1 task was" if len(again) == 1 else f"{len(again)} tasks were"
            raise DataError(f"{few} seen before: {show_ids(again)}. {remedy}")

    def join(self, other: Collected) -> Collected:
        """Return the tasks of both, which differ in their ids."""
        keys = np.concatenate([self.keys, other.keys])
        at = np.concatenate([self.sample, len(self.ids) + other.sample])
        order = np.argsort(keys[at], kind="stable")[:SAMPLE]
        table = self.table if other.table is None else other.table
        if self.table is not None and other.table is not None:
            table = self.table.concat(other.table)
        return Collected(
            np.concatenate([self.ids, other.ids]),
            self.whole.join(other.whole),
            table,
            _both(self.Phi, other.Phi),
            np.concatenate([self.sizes, other.sizes]),
            keys,
            at[order],
            self.support.join(other.support).take(order),
            self.query.join(other.query).take(order),
            None if self.Phi is None else _both(self.Phi_support, other.Phi_support)[order],
        )

    def extend(self, at, points: WeightedPoints) -> Collected:
        """Return it with further points of the tasks at positions `at`."""
        order = np.argsort(at)
        sizes = np.zeros(len(self.ids), np.int64)
        sizes[at] = points.sizes
        points = points.take(order)._replace(offsets=np.concatenate([[0], np.cumsum(sizes)]))
        support, query = (
            part.extend(Scatter.of(*half_of(points, self.sample, half, self.sizes)))
            for part, half in ((self.support, True), (self.query, False))
        )
        whole, sizes = self.whole.extend(Scatter.of(*points)), self.sizes + sizes
        return self._replace(whole=whole, sizes=sizes, support=support, query=query)

    def order(self) -> np.ndarray:
        """Return the positions of the tasks with points: the sample, then the rest by their keys.

        It does not depend on the order in which tasks came.
        """
        rest = np.setdiff1d(np.flatnonzero(self.whole.count > 0), self.sample)
        return np.concatenate([self.sample, rest[np.argsort(self.keys[rest], kind="stable")]])

    def folds(self) -> np.ndarray:
        """Return when each task of the sample is left out."""
        return np.arange(len(self.sample)) % FOLDS


def task_keys(ids) -> np.ndarray:
    """Return numbers (T,) that the ids have in every process."""
    hashes = (
        blake2b(f"{type(task).__name__}:{task!r}".encode(), digest_size=8).digest()
        for task in ids.tolist()
    )
    return np.frombuffer(b"".join(hashes), dtype="<u8").astype(np.uint64)


def half_of(points: WeightedPoints, tasks, half: bool, before=None) -> WeightedPoints:
    """Return one half of the points of some tasks; `before` (T,): points until now."""
    points = points.take(tasks)
    within = np.arange(len(points.y)) - np.repeat(points.offsets[:-1], points.sizes)
    if before is not None:
        within = within + np.repeat(before[tasks], points.sizes)
    return points.where((within % 2 == 1) == half)


def _both(a, b):
    return None if a is None else np.concatenate([a, b])
