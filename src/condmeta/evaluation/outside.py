"""Side information unlike what was seen in training, and why."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from condmeta.evaluation.nearest import Nearest, Neighbourhood
from condmeta.tasks import TaskTable
from condmeta.tasks.ids import show_id
from condmeta.tasks.seen import Odd
from condmeta.words import count

FAR = "(all columns)"
BEYOND = 0.25  # of the width of a column's training range: so far out, a start is a guess


class Sides(NamedTuple):
    """Side information of T tasks: ids, rows as the learner knows them (or None), Phi (T, k)."""

    ids: np.ndarray
    table: TaskTable | None
    Phi: Any


def sides_of(learner: Any, ids, table, points=None) -> Sides:
    """Return the side information of tasks; unseen levels are told by `oddities`, not warned of."""
    columns = learner._map.columns_
    if table is not None and columns is not None:
        table = table.align(columns)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Side columns hold levels not seen in training")
        return Sides(ids, table, learner._sides_of(ids, table, points))


def warn_far_out(learner: Any, ids: np.ndarray, table: TaskTable | None) -> np.ndarray:
    """Return which tasks have a number far outside the training range of its column; warn of them.

    (T,) bool.
    """
    learners = getattr(learner, "_learners", {"": learner}).values()
    seen = next((one._map.seen_ for one in learners if hasattr(one._map, "seen_")), None)
    if seen is None or table is None:
        return np.zeros(len(ids), bool)
    rows = table.take(ids[table.has(ids)])
    told = {}
    for odd in seen.oddities(rows):
        low, high = seen.ranges.get(odd.column, (-np.inf, np.inf))
        if odd.value is not None and np.isfinite(high - low):
            off = max(low - odd.value, odd.value - high)
            if off > BEYOND * (high - low):
                told.setdefault(odd.row, f"{odd.column} {odd.value:g} is {odd.reason}")
    if told:
        first = next(iter(told))
        warnings.warn(
            f"Side information of {count(len(told), 'new task')} is far outside what fit saw, so "
            f"that the start of the model is a guess: task {show_id(rows.ids[first])}, "
            f"{told[first]}{', and others' if len(told) > 1 else ''}.",
            stacklevel=4,
        )
    far = {rows.ids[row] for row in told}
    return np.array([one in far for one in ids.tolist()], dtype=bool)


def oddities(
    learner: Any, sides: Sides, around: Neighbourhood | None, near: Nearest | None = None
) -> list[Odd]:
    """Return what is odd about the side information of tasks; `row` is the place among them.

    A value outside its column's training range, a level or a gap that training did not have; or,
    where each value is usual, a task farther from all known tasks than any of these from its
    nearest one. `near` spares looking the nearest ones up again.
    """
    seen, found = getattr(learner._map, "seen_", None), []
    if seen is not None and sides.table is not None:
        here = sides.table.positions(sides.ids.tolist())
        at = {int(row): t for t, row in enumerate(here) if row >= 0}
        found = [
            odd._replace(row=at[odd.row]) for odd in seen.oddities(sides.table) if odd.row in at
        ]
    told = {odd.row for odd in found}
    if around is not None and len(sides.ids):
        distance = (near or around.nearest(sides.Phi)).distance[:, 0]
        for t in np.flatnonzero(distance > around.farthest * (1 + 1e-9)):
            if int(t) not in told:
                reason = (
                    f"no known task within {distance[t]:.3g} standard deviations; known tasks have "
                    f"one within {around.farthest:.3g}"
                )
                found.append(Odd(int(t), FAR, None, reason))
    return sorted(found, key=lambda odd: odd.row)
