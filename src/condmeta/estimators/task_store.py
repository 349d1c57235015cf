"""The models of the tasks that a learner keeps, in flat arrays."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np

from condmeta.errors import ConvergenceWarning, DataError, DivergenceError
from condmeta.inner.algorithms import Solved, solve_tasks, weighted
from condmeta.meta.points import WeightedPoints
from condmeta.tasks.ids import explain_mismatch, show_id, show_ids

MOST_FEATURES = 128  # of Phi, kept for each task


class TaskStore:
    """Weight vectors of T tasks, in the learner's units.

    Parameters
    ----------
    ids : (T,) object array
    sizes : (T,) array
        Points of each task, the sum of their weights if they have some; 0 for a task known from its
        side information alone.
    theta, coef : (T, width) arrays
        Where each task starts, and its model.
    own : (T, width) array or None
        The models of the same tasks started from zero: what their own points say.
    gap : (T,) array or None
        Certificates of batch solves.
    state, own_state : named tuples of arrays with T rows, or None
        What `update` needs of either run, or `predict_proba` of the first. Sufficient statistics,
        which do not depend on where a task starts, stand in `state` alone.
    sides : (T, k) array or None
        What a base model reads of each task.
    Phi : (T, k) array or None
        What the map reads of each task; not kept if k is large.
    """

    CACHED = ("index", "kinds")

    def __init__(
        self, ids, sizes, theta, coef, own=None, gap=None, state=None, own_state=None, sides=None,
        Phi=None,
    ):  # fmt: skip
        self.ids = ids
        self.sizes = sizes
        self.theta = theta
        self.coef = coef
        self.own = own
        self.gap = gap
        self.state = state
        self.own_state = own_state
        self.sides = sides
        narrow = isinstance(Phi, np.ndarray) and Phi.shape[1] <= MOST_FEATURES
        self.Phi = Phi if narrow else None

    @classmethod
    def solve(cls, inner, ids, theta, points: WeightedPoints, n_jobs, Phi=None) -> TaskStore:
        """Solve tasks from their theta, and once more from zero."""
        solved = solve_named(inner, ids, theta, points, n_jobs)
        sizes, own, own_state = points.count, None, None
        if getattr(inner, "learns", True):
            any_start = getattr(solved.state, "any_start", False)
            keep = getattr(inner, "resumable", False) and not any_start
            alone = solve_named(inner, ids, np.zeros_like(theta), points, n_jobs, keep_state=keep)
            own, own_state = alone.coef, alone.state
        return cls(
            ids, sizes, theta, solved.coef, own, solved.gap, solved.state, own_state, Phi=Phi
        )

    @cached_property
    def index(self) -> dict[Any, int]:
        """Position of each id."""
        return {task: position for position, task in enumerate(self.ids.tolist())}

    @cached_property
    def kinds(self) -> set:
        """The types of the ids."""
        return set(map(_kind, self.ids.tolist()))

    def refuse_twins(self, ids) -> None:
        """Say so when a new id differs from a known one by its type alone: 17 and "17"."""
        odd = [task for task in ids if _kind(task) not in self.kinds]
        mismatch = explain_mismatch(self.ids, odd) if odd else ""
        if mismatch:
            raise DataError(mismatch)

    def positions(self, ids) -> np.ndarray:
        """Return the position of each id, -1 where it is not known."""
        return np.fromiter(map(self.index.get, ids, repeat(-1)), np.int64, len(ids))

    def extend(self, inner, at, points: WeightedPoints, n_jobs) -> TaskStore:
        """Return a store in which the tasks at positions `at` have further points."""
        X, y, offsets, weight = points

        def go_on(theta, state):
            before = _rows(state, at)
            with naming_task(self.ids[at]):
                part = inner.solve_tasks(
                    theta, X, y, offsets, state=before, n_jobs=n_jobs, **weighted(weight)
                )
            return part, _put(state, at, part.state)

        part, state = go_on(self.theta[at], self.state)
        coef = _put_rows(self.coef, at, part.coef)
        own, own_state, zeros = self.own, self.own_state, np.zeros_like(self.theta[at])
        if own is not None and own_state is not None:
            alone, own_state = go_on(zeros, own_state)
            own = _put_rows(own, at, alone.coef)
        elif own is not None:
            own = _put_rows(own, at, inner.coef(part.state, zeros))
        sizes = _put_rows(self.sizes, at, self.sizes[at] + points.count)
        gap = None if self.gap is None else _put_rows(self.gap, at, part.gap)
        return TaskStore(
            self.ids, sizes, self.theta, coef, own, gap, state, own_state, self.sides, self.Phi
        )

    def concat(self, other: TaskStore) -> TaskStore:
        """Return a store with the tasks of another one behind these."""
        names = (
            "ids", "sizes", "theta", "coef", "own", "gap", "state", "own_state", "sides", "Phi",
        )  # fmt: skip
        return TaskStore(*(_join(getattr(self, name), getattr(other, name)) for name in names))

    def without_state(self) -> TaskStore:
        """Return a store that can predict but not be updated."""
        needed = self.state if getattr(self.state, "predicts", False) else None
        return TaskStore(
            self.ids, self.sizes, self.theta, self.coef, self.own, self.gap, needed,
            sides=self.sides, Phi=self.Phi,
        )  # fmt: skip


def _kind(task):
    return tuple(map(type, task)) if isinstance(task, tuple) else type(task)


def _rows(state, at):
    return type(state)(*(array[at] for array in state))


def _put_rows(array, at, values) -> np.ndarray:
    out = array.astype(np.result_type(array, values))  # counts are whole until weights come
    out[at] = values
    return out


def _put(state, at, part):
    return type(state)(*(_put_rows(a, at, b) for a, b in zip(state, part, strict=True)))


def _join(a, b):
    """Join arrays, or states part by part; None stays None."""
    if a is None or b is None:
        return None
    if isinstance(a, tuple):
        return type(a)(*map(_join, a, b))
    return np.concatenate([a, b])


def solve_named(inner, ids, theta, points: WeightedPoints, n_jobs=1, keep_state=True) -> Solved:
    """Solve tasks; name those whose pass diverges, or whose gap stays above the tolerance."""
    X, y, offsets, weight = points
    with naming_task(ids):
        solved = solve_tasks(inner, theta, X, y, offsets, n_jobs, keep_state, weight)
    if solved.unsolved is not None and len(solved.unsolved):
        first = show_ids(ids[solved.unsolved])
        warnings.warn(
            f"{len(solved.unsolved)} tasks were not solved to tol={inner.tol:g}: {first}. Their "
            "gap_ says how far they are; a larger lam or scale='standard' makes them easier.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return solved


@contextmanager
def naming_task(ids):
    """Put the task's id into the sentence of a pass that diverges."""
    try:
        yield
    except DivergenceError as error:
        position = getattr(error, "position", None)
        if position is None or ids[position] is None:  # None: the nameless task of adapt
            raise
        raise DivergenceError(f"Task {show_id(ids[position])}: {error}") from None
