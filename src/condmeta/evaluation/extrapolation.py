"""Side information outside the training range, and the nearest known tasks."""

from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from condmeta.feature_maps.table_encoder import allow_unseen_levels
from condmeta.feature_maps.training_ranges import UnusualValue
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.starts import features
from condmeta.tasks import TaskTable
from condmeta.tasks.messages import show_id
from condmeta.text import pluralize
from condmeta.warn import warn

FAR = "(all columns)"
BEYOND = 0.25  # of the width of a column's training range: farther out, predictions are a guess
SAMPLE = 1000  # known tasks of which the nearest neighbour is looked up


class Nearest(NamedTuple):
    """The nearest known tasks of T others: their ids, points and distances, (T, c) each."""

    ids: np.ndarray
    n: np.ndarray
    distance: np.ndarray


class Neighbourhood:
    """The tasks that a learner keeps, at their Phi, each feature in its standard deviations.

    Attributes
    ----------
    farthest : float
        The largest distance of a known task from its nearest neighbour. With T known tasks, a new
        one from the same distribution is farther away with probability 1 / (T + 1).
    """

    def __init__(self, ids: np.ndarray, n: np.ndarray, Phi: np.ndarray):
        self.ids, self.n = ids, n
        scale = Phi.std(axis=0)
        self.scale = np.where(scale > 1e-12 * np.abs(Phi).max(axis=0), scale, 1.0)
        self.Z = Phi / self.scale

    @classmethod
    def of(cls, fitted: Fitted) -> Self | None:
        """Return the known tasks with points, or None if their Phi is not kept."""
        store = fitted.tasks
        if store is None or store.Phi is None or not store.Phi.shape[1]:
            return None
        there = (store.sizes > 0) & np.isfinite(store.Phi).all(axis=1)
        kept = store.ids[there], store.sizes[there], store.Phi[there]
        return cls(*kept) if there.sum() > 1 else None

    @cached_property
    def _index(self):
        from sklearn.neighbors import NearestNeighbors

        return NearestNeighbors().fit(self.Z)

    @cached_property
    def farthest(self) -> float:
        at = np.unique(np.linspace(0, len(self.Z) - 1, SAMPLE).astype(int))
        # The nearest one of a known task is itself, or a twin at the same distance 0.
        return float(self._index.kneighbors(self.Z[at], 2)[0][:, 1].max())

    def nearest(self, Phi: np.ndarray, count: int = 1, ids: np.ndarray | None = None) -> Nearest:
        """Return the nearest known tasks of those at Phi (T, k), the nearest first.

        With `ids` (T,), a known task is not its own neighbour.
        """
        more = min(count + (ids is not None), len(self.Z))
        distance, at = self._index.kneighbors(Phi / self.scale, more)
        if ids is not None and more > 1:
            own = self.ids[at] == ids[:, None]
            own[~own.any(axis=1), -1] = True  # leave out the farthest instead
            keep = np.argsort(own, axis=1, kind="stable")[:, : more - 1]
            distance, at = (np.take_along_axis(part, keep, axis=1) for part in (distance, at))
        return Nearest(self.ids[at], self.n[at], distance)


class Sides(NamedTuple):
    """Side information of T tasks: ids, rows in the columns of the fit (or None), Phi (T, k)."""

    ids: np.ndarray
    table: TaskTable | None
    Phi: Any


def sides_of(fitted: Fitted, ids: Any, table: Any, points: Any = None) -> Sides:
    """Return the side information of tasks, without a warning about unseen levels."""
    columns = fitted.reader.columns
    if table is not None and columns is not None:
        table = table.align(columns)
    with allow_unseen_levels():
        return Sides(ids, table, features(fitted, ids, table, points))


def warn_extrapolating(learner: Any, ids: np.ndarray, table: TaskTable | None) -> np.ndarray:
    """Return which tasks (T,) have a number far outside its training range, and warn of them."""
    learners = getattr(learner, "learners_", {"": learner}).values()
    maps = (one.fitted_.reader.map for one in learners)
    ranges = next((fmap.seen_ for fmap in maps if hasattr(fmap, "seen_")), None)
    if ranges is None or table is None:
        return np.zeros(len(ids), bool)
    rows = table.take(ids[table.has(ids)])
    reasons = {}
    for unusual in ranges.unusual_values(rows):
        low, high = ranges.ranges.get(unusual.column, (-np.inf, np.inf))
        if unusual.value is not None and np.isfinite(high - low):
            off = max(low - unusual.value, unusual.value - high)
            if off > BEYOND * (high - low):
                reason = f"{unusual.column} {unusual.value:g} is {unusual.reason}"
                reasons.setdefault(unusual.row, reason)
    if reasons:
        first = next(iter(reasons))
        warn(
            f"Side information of {pluralize(len(reasons), 'new task')} is far outside the "
            f"training range, so the predictions are a guess: task {show_id(rows.ids[first])}, "
            f"{reasons[first]}{', and others' if len(reasons) > 1 else ''}.",
        )
    far = {rows.ids[row] for row in reasons}
    return np.array([one in far for one in ids.tolist()], dtype=bool)


def unusual_sides(
    fitted: Fitted, sides: Sides, around: Neighbourhood | None, near: Nearest | None = None
) -> list[UnusualValue]:
    """Return the unusual side information of tasks; `row` is the position of the task.

    This is a value outside its column's training range, or a level or a gap that training did not
    have. If every value is usual, it is a task farther from all known tasks than any known task is
    from its nearest one. `near` saves looking up the nearest tasks again.
    """
    ranges, found = getattr(fitted.reader.map, "seen_", None), []
    if ranges is not None and sides.table is not None:
        here = sides.table.positions(sides.ids.tolist())
        at = {int(row): t for t, row in enumerate(here) if row >= 0}
        unusual = ranges.unusual_values(sides.table)
        found = [one._replace(row=at[one.row]) for one in unusual if one.row in at]
    named = {one.row for one in found}
    if around is not None and len(sides.ids):
        distance = (near or around.nearest(sides.Phi)).distance[:, 0]
        for t in np.flatnonzero(distance > around.farthest * (1 + 1e-9)):
            if int(t) not in named:
                reason = (
                    f"no known task within {distance[t]:.3g} standard deviations; known tasks have "
                    f"one within {around.farthest:.3g}"
                )
                found.append(UnusualValue(int(t), FAR, None, reason))
    return sorted(found, key=lambda one: one.row)
