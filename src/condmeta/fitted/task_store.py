"""The models of the tasks that a learner keeps, in flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np

from condmeta.errors import ConvergenceWarning, DataError, DivergenceError
from condmeta.fitted.scales import Scales
from condmeta.inner.algorithms import Solved, row_options, solve_tasks
from condmeta.inner.coin import CoinTasks
from condmeta.inner.least_squares import least_squares
from condmeta.inner.no_adaptation import PointCount
from condmeta.inner.online import OnlineState
from condmeta.inner.row_posterior import Covariances
from condmeta.inner.squared import SquaredState
from condmeta.persistence import register
from condmeta.persistence.fields import counts, floats, ids, instance, maybe
from condmeta.persistence.registry import construct
from condmeta.tasks.arrays import is_sparse
from condmeta.tasks.messages import explain_mismatch, show_id, show_ids
from condmeta.tasks.numbers import put_rows, take_rows
from condmeta.tasks.points import Points
from condmeta.warn import warn

MOST_FEATURES = 128  # of Phi, kept for each task
MOST_STATISTICS = 1 << 21  # numbers that are kept for own estimates alone: 16 MB
FIRST_FORMAT = {  # names of states in files of the first format
    "online": OnlineState, "squared": SquaredState, "counted": PointCount, "coin": CoinTasks,
    "covariances": Covariances,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class TaskStore:
    """Models of T tasks, in the learner's units.

    Parameters
    ----------
    ids : (T,) object array
    sizes : (T,) array
        Points of each task, or the sum of their weights; 0 for a task known from its side
        information alone.
    theta, coef : (T, width) arrays
        Where each task starts, and its model.
    own : (T, width) array or None
        Least-squares estimates in the user's units, of a store without statistics.
    gap : (T,) array or None
        Duality gaps of batch solves.
    state : named tuple of arrays with T rows, or None
        What `update` needs, or `predict_proba`.
    sides : (T, k) array or None
        What the shared model reads of each task.
    Phi : (T, k) array or None
        Features of each task; not kept if k is large.
    own_statistics : SquaredState or None
        What own estimates follow from, if `state` does not hold it; not kept if it is large.
    """

    ids: np.ndarray
    sizes: np.ndarray
    theta: np.ndarray
    coef: np.ndarray
    own: np.ndarray | None = None
    gap: np.ndarray | None = None
    state: Any = None
    sides: np.ndarray | None = None
    Phi: Any = None
    own_statistics: SquaredState | None = None

    @classmethod
    def solve(
        cls, inner, ids, theta, points: Points, n_jobs, Phi=None, keep_own=True, start=None,
        time=None,
    ) -> TaskStore:  # fmt: skip
        """Solve tasks from their theta; with `keep_own`, own estimates can be asked for."""
        solved = solve_named(inner, ids, theta, points, n_jobs, start=start, time=time)
        keep_own &= theta.size * theta.shape[1] <= MOST_STATISTICS and not is_sparse(points.X)
        statistics = None
        if keep_own and start is None and not _is_full(solved.state, theta):
            statistics = SquaredState.of(*points)
        return cls(
            ids, points.count, theta, solved.coef, gap=solved.gap, state=solved.state,
            Phi=narrow(Phi), own_statistics=statistics,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def index(self) -> dict[Any, int]:
        """Position of each id."""
        return {task: position for position, task in enumerate(self.ids.tolist())}

    @cached_property
    def kinds(self) -> set:
        """The types of the ids."""
        return set(map(_kind, self.ids.tolist()))

    def _changed(self, **parts) -> TaskStore:
        """Return a store with other parts of the same tasks; it shares what is read off the ids."""
        store = replace(self, **parts)
        for name in vars(self).keys() & {"index", "kinds"}:
            vars(store)[name] = vars(self)[name]
        return store

    def refuse_lookalikes(self, ids) -> None:
        """Raise if a new id differs from a known one by its type alone: 17 and "17"."""
        other = [task for task in ids if _kind(task) not in self.kinds and task is not None]
        mismatch = explain_mismatch(self.ids, other) if other else ""
        if mismatch:
            raise DataError(mismatch)

    def positions(self, ids) -> np.ndarray:
        """Return the position of each id, -1 where it is not known."""
        return np.fromiter(map(self.index.get, ids, repeat(-1)), np.int64, len(ids))

    def own_estimates(self, scales: Scales, statistics=None) -> np.ndarray:
        """Return each task's own least-squares estimate (T, width), in the user's units.

        NaN for a coefficient that the task's points do not determine; for all coefficients where
        neither the statistics nor the estimates are kept.
        """
        statistics = statistics if _is_full(statistics, self.theta) else self.own_statistics
        if statistics is None:
            return np.full_like(self.coef, np.nan) if self.own is None else self.own
        w, determined = least_squares(statistics, scales.user_matrix())
        return np.where(determined, scales.user_vector(w), np.nan)

    def extend(self, inner, at, points: Points, n_jobs, time=None) -> TaskStore:
        """Return a store in which the tasks at positions `at` have further points.

        `time` (N,) of these, if tasks change with time.
        """
        X, y, offsets, weight = points
        before = type(self.state)(*(take_rows(array, at) for array in self.state))
        with naming_task(self.ids[at]):
            part = inner.solve_tasks(
                self.theta[at], X, y, offsets, state=before, n_jobs=n_jobs,
                **row_options(weight, time),
            )  # fmt: skip
            require_finite(part)
        own = self.own_statistics
        if own is not None:
            own = _put_state(own, at, own.take(at).extend(X, y, offsets, weight))
        return self._changed(
            sizes=put_rows(self.sizes, at, self.sizes[at] + points.count),
            coef=put_rows(self.coef, at, part.coef),
            own=None if self.own is None else put_rows(self.own, at, np.nan),
            gap=None if self.gap is None else put_rows(self.gap, at, part.gap),
            state=_put_state(self.state, at, part.state),
            own_statistics=own,
        )

    def resolved(self, inner, at, stats: SquaredState, n_jobs) -> TaskStore:
        """Return a store in which the tasks at positions `at` have these statistics."""
        coef = inner.posterior(stats, self.theta[at], n_jobs).mean
        with naming_task(self.ids[at]):
            require_finite(Solved(coef, np.zeros(len(coef)), None))
        sizes = put_rows(self.sizes, at, stats.count)
        return self._changed(sizes=sizes, coef=put_rows(self.coef, at, coef))

    def solved_again(self, inner, at, points: Points, n_jobs) -> TaskStore:
        """Return a store in which the tasks at positions `at` have these points, and no others."""
        start = None if self.Phi is None else inner.priors(self.Phi[at])
        found = solve_named(inner, self.ids[at], self.theta[at], points, n_jobs, start=start)
        after = self.put(at, self.theta[at], found.coef, found.state)
        return replace(after, sizes=put_rows(self.sizes, at, points.count))

    def put(self, at, theta, coef, state) -> TaskStore:
        """Return a store with other models and states of the tasks at positions `at`."""
        return self._changed(
            theta=put_rows(self.theta, at, theta),
            coef=put_rows(self.coef, at, coef),
            state=_put_state(self.state, at, state),
        )

    def concat(self, other: TaskStore) -> TaskStore:
        """Return a store with the tasks of another one appended."""
        return TaskStore.joined([self, other])

    @classmethod
    def joined(cls, parts: Sequence[TaskStore]) -> TaskStore:
        """Return the tasks of all parts; each array is made once."""
        names = [field.name for field in fields(cls)]
        return cls(*(_join([getattr(part, name) for part in parts]) for name in names))

    def without_state(self, scales: Scales, statistics=None) -> TaskStore:
        """Return a store that can predict but not be updated; own estimates stay."""
        if getattr(self.state, "predicts", False):
            return self
        few = self.coef.size * self.coef.shape[1] <= MOST_STATISTICS
        own = self.own_estimates(scales, statistics) if few else self.own
        return replace(self, state=None, own=own, own_statistics=None)


def _export(store: TaskStore) -> dict:
    return {field.name: getattr(store, field.name) for field in fields(store)}


def _upgrade(cls, parts: dict) -> dict:
    if "own_state" in parts:  # the first format: `own` had another meaning, states were dicts
        parts = {name: part for name, part in parts.items() if not name.startswith("own")}
        parts |= {"own": None, "own_statistics": None}
        if parts["state"] is not None:
            state = dict(parts["state"])
            parts["state"] = FIRST_FORMAT[state.pop("kind")](**state)
    return parts


register(
    TaskStore,
    export=_export,
    restore=construct,
    upgrade=_upgrade,
    fields={
        "ids": ids("T"), "sizes": counts("T"), "theta": floats("T w"), "coef": floats("T w"),
        "own": maybe(floats("T w", nan=True)), "gap": maybe(floats("T", nan=True)),
        "state": maybe(instance(T="T")), "sides": maybe(floats("T s")),
        "Phi": maybe(floats("T k")),
        "own_statistics": maybe(instance("SquaredState", T="T", d="w")),
    },
    by_task={field.name: "rows" for field in fields(TaskStore)},
)  # fmt: skip


def narrow(Phi):
    """Return features that are few enough to be kept, or None."""
    return Phi if isinstance(Phi, np.ndarray) and Phi.shape[1] <= MOST_FEATURES else None


def _is_full(state, theta) -> bool:
    """Return whether a state is the statistics of all columns, not of a few directions."""
    return isinstance(state, SquaredState) and state.moment.shape[1] == theta.shape[1]


def _kind(task):
    return tuple(map(type, task)) if isinstance(task, tuple) else type(task)


def _put_state(state, at, part):
    return type(state)(*(put_rows(a, at, b) for a, b in zip(state, part, strict=True)))


def _join(parts):
    """Join arrays, or states part by part; None if one is None."""
    if any(part is None for part in parts):
        return None
    if isinstance(parts[0], tuple):
        return type(parts[0])(*map(_join, zip(*parts, strict=True)))
    return np.concatenate(parts)


def solve_named(
    inner, ids, theta, points: Points, n_jobs=1, keep_state=True, start=None, time=None
) -> Solved:
    """Solve tasks; name those whose pass diverges, or whose gap stays above the tolerance.

    `start` is the state of tasks without points, where they have priors of their own.
    """
    X, y, offsets, weight = points
    with naming_task(ids):
        solved = solve_tasks(inner, theta, X, y, offsets, n_jobs, keep_state, weight, start, time)
        require_finite(solved)
    if solved.unsolved is not None and len(solved.unsolved):
        count, first = len(solved.unsolved), show_ids(ids[solved.unsolved])
        some = "1 task was" if count == 1 else f"{count} tasks were"
        warn(
            f"{some} not solved to tol={inner.tol:g}: {first}. gap_ bounds the error. A larger lam "
            "or scale='standard' makes a task easier to solve.",
            ConvergenceWarning,
        )
    return solved


def require_finite(solved: Solved) -> None:
    """Raise if the coefficients of a task are not finite."""
    fine = np.isfinite(solved.coef).all(axis=1)
    if not fine.all():
        error = DivergenceError(
            "Its coefficients leave the range of floating-point numbers. Divide X and y by their "
            "sizes."
        )
        error.position = int(np.argmin(fine))
        raise error


@contextmanager
def naming_task(ids):
    """Put the task's id into the message of a pass that diverges."""
    try:
        yield
    except DivergenceError as error:
        position = getattr(error, "position", None)
        if position is None or ids[position] is None:  # None: the nameless task of adapt
            raise
        raise DivergenceError(f"Task {show_id(ids[position])}: {error}") from None
