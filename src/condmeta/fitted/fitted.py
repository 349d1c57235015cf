"""One fitted value: everything that answers a question about a fit, and nothing that changes.

A learner's `fit` makes a `Fitted`; `adapt`, `predict` and tables read it; `update` and
`partial_fit` return a new one. A call that fails leaves the old value in place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.at_times import Models, clock_of, drift_of, required_clock
from condmeta.fitted.count_distribution import CountDistribution
from condmeta.fitted.groups import Groups, regroup, same_top
from condmeta.fitted.predictor import LinearPredictor
from condmeta.fitted.prepared import (
    Prepared,
    align_points,
    no_points,
    prepare,
    raw_points,
    scaled_tasks,
    user_points,
)
from condmeta.fitted.seen_ids import SeenIds
from condmeta.fitted.side_reader import SideReader
from condmeta.fitted.target import TargetScale
from condmeta.fitted.task_model import TaskModels, require_resumable
from condmeta.fitted.task_store import TaskStore, narrow, solve_named
from condmeta.fitted.tau import KernelTau, LinearTau
from condmeta.inner.drifting import TimedState
from condmeta.inner.nested import NestedGaussian, NestedState, TaskPriors
from condmeta.inner.row_posterior import Covariances
from condmeta.inner.squared import SquaredState
from condmeta.meta.task_statistics import TaskStatistics, scaled_statistics
from condmeta.meta.wide_tasks import WideTasks
from condmeta.persistence.fields import (
    ANY,
    TEXT,
    InvalidFieldError,
    instance,
    mapping,
    maybe,
    number,
    one_of,
    optional,
    sequence,
)
from condmeta.persistence.registry import register_tuple
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.points import Points
from condmeta.tasks.splits import first_halves
from condmeta.tasks.timed import Timed
from condmeta.tasks.weights import masses

COLLECTED = TaskStatistics, WideTasks  # what a learner by statistics keeps of its tasks


def _n_features(state: dict, sizes: dict[str, int]) -> None:
    sizes["n"] = state["n_features"]
    if state["names"] is not None and len(state["names"]) != sizes["n"]:
        raise InvalidFieldError("names", f"must be {sizes['n']} names")


@register_tuple(
    name="InputColumns",
    fields={
        "n_features": number(low=0, whole=True), "names": maybe(sequence(TEXT)), "task_name": ANY,
        "backend": maybe(one_of("pandas", "polars", "pyarrow")),
    },
    rule=_n_features,
)  # fmt: skip
class Columns(NamedTuple):
    """The columns that `fit` saw: features of X, the task column, and the kind of table."""

    n_features: int
    names: tuple[str, ...] | None = None
    task_name: Any = None
    backend: str | None = None

    @property
    def feature_names(self) -> np.ndarray:
        """The names (d,) as scikit-learn keeps them; an AttributeError if X had none."""
        if self.names is None:
            raise AttributeError("X had no feature names in fit.")
        return np.array(self.names, dtype=object)


class Rows(NamedTuple):
    """Rows to predict: X (N, d), and the task of each row by its position in `ids`.

    `codes` is None if all rows belong to one task without an id, which is then the only entry of
    `ids`. `side` and `points` are the side rows and conditioning points that came with the call.
    `restore` puts answers into the order of the call; `time` (N,) is when the rows are.
    """

    X: np.ndarray
    codes: np.ndarray | None
    ids: np.ndarray
    side: TaskTable | None = None
    points: TaskSet | None = None
    restore: Callable = np.asarray
    time: np.ndarray | None = None


def _held_once(cls, parts: dict) -> dict:
    """Return the parts of a file in which the store repeats the statistics of `state`."""
    store = parts.get("tasks")
    if isinstance(parts.get("state"), TaskStatistics) and isinstance(store, TaskStore):
        if isinstance(store.state, TaskPriors | TimedState):
            return parts
        parts = parts | {"tasks": replace(store, state=None)}
    return parts


@register_tuple(
    fields={
        "predictor": instance("LinearPredictor", w="w", d="d", n="n", s="s"),
        "reader": instance("SideReader", k="k"),
        "tau": instance("LinearTau", "KernelTau", k="k", w="w"),
        "tasks": maybe(instance("TaskStore", w="w", k="k", s="s")),
        "columns": instance("InputColumns", n="n"),
        "n_tasks": number(low=0, whole=True), "conditioning": one_of("shared", "split"),
        "info": mapping(ANY), "state": maybe(instance(k="k")), "seen": maybe(instance("SeenIds")),
        "groups": optional(maybe(instance("Groups", w="w"))),
    },
    upgrade=_held_once,
)  # fmt: skip
class Fitted(NamedTuple):
    """What a fit leaves.

    Attributes
    ----------
    predictor : LinearPredictor
        Scales, inner algorithm, classes and shared model: from weights and rows to predictions.
    reader : SideReader
        From side information to Phi.
    tau : LinearTau or KernelTau, or None
        From Phi to theta. None while statistics are collected and nothing is learned yet.
    tasks : TaskStore or None
        The models of known tasks; None with keep_tasks=False.
    columns : Columns
    n_tasks : int
        Tasks that tau was learned from.
    conditioning : "shared" or "split"
    info : dict of name -> value
        The learner's own attributes, such as `lam_` or `H_`.
    state : named tuple or None
        What further tasks need: the state of a stream, or the statistics of all tasks.
    seen : SeenIds or None
        The tasks of a stream, where `tasks` does not hold them.
    groups : Groups or None
        What is known of groups of tasks, if tasks are in groups.
    """

    predictor: LinearPredictor
    reader: SideReader
    tau: LinearTau | KernelTau | None
    tasks: TaskStore | None
    columns: Columns
    n_tasks: int
    conditioning: str = "shared"
    info: dict[str, Any] = {}
    state: Any = None
    seen: SeenIds | None = None
    groups: Groups | None = None

    # Scales and inner algorithm, where most callers look for them.

    @property
    def scales(self):
        """The scales of rows and targets."""
        return self.predictor.scales

    @property
    def target(self) -> TargetScale | None:
        """The scale of the labels."""
        return self.predictor.target

    @property
    def inner(self):
        """The inner algorithm A(theta, Z)."""
        return self.predictor.inner

    # From side information to theta.

    def features(self, ids, table: TaskTable | None, points: TaskSet | None = None):
        """Return Phi of tasks from their side rows and conditioning points alone."""
        given = None
        if self.reader.reads_points:
            given = no_points(len(ids), len(self.scales.x_mean))
            if points is not None:
                given = align_points(points, ids, self.scales, self.predictor.classes)
        return self._features(ids, self._aligned(table), given)

    def _aligned(self, table: TaskTable | None) -> TaskTable | None:
        columns = self.reader.columns
        return table if table is None or columns is None else table.align(columns)

    def _features(self, ids, table, given):
        """Return Phi; a known task without a side row has the Phi that it is known by.

        With missing_side="mean", another task without one has the mean Phi of its group.
        """
        read, store = self.reader.features, self.tasks
        linear = isinstance(self.tau, LinearTau) and not self.reader.reads_points
        nameless = len(ids) == 1 and ids[0] is None
        has = np.zeros(len(ids), bool) if table is None else table.has(ids)
        if self.groups is not None and self.reader.missing_side == "mean" and not has.all():

            def read(ids, table, given, tau):
                Phi = self.reader.features(ids, table, given, tau)
                lacking = np.ones(len(ids), bool) if table is None else ~table.has(ids)
                Phi[lacking] = self.groups.fill(ids[lacking], Phi[lacking])
                return Phi

        if store is None or store.Phi is None or not linear or nameless:
            return read(ids, table, given, self.tau)
        at = np.where(has, -1, store.positions(ids.tolist()))
        if not (at >= 0).any():
            return read(ids, table, given, self.tau)
        Phi = np.empty((len(ids), len(self.reader.names)))
        Phi[at >= 0] = store.Phi[at[at >= 0]]
        if (at < 0).any():
            Phi[at < 0] = read(ids[at < 0], table, given, self.tau)
        return Phi

    def theta(self, ids, table, points=None, n_jobs: int = 1) -> np.ndarray:
        """Return where tasks start (T, width), in the learner's units: tau(s), and their groups."""
        return self.start(ids, self.features(ids, table, points), n_jobs)[0]

    def start(self, ids, Phi, n_jobs: int = 1) -> tuple[np.ndarray, NestedState | None]:
        """Return where tasks start (T, width) from features, and their priors if these differ.

        A known task starts from the other tasks of its groups: its own points count once.
        """
        theta, store = self.tau.theta(Phi, n_jobs), self.tasks
        if not isinstance(self.inner, NestedGaussian):
            return theta, None
        if self.groups is None:
            return theta, self.inner.start(theta)
        theta, state = self.groups.prior(ids, theta, self.inner)
        if store is not None and isinstance(store.state, TaskPriors):
            at = store.positions(ids.tolist())
            known, at = at >= 0, at[at >= 0]
            theta[known] = state.base[known] + store.theta[at] - store.state.base[at]
            state.covariance[known] = store.state.covariance[at]
        return theta, state

    # New points: adapt and update.

    def prepare(self, tasks: TaskSet, points: TaskSet | None) -> Prepared:
        """Return tasks in the learner's units; `tasks` have passed the shared model."""
        conditioning = self.conditioning if self.reader.reads_points else None
        how = self.scales, conditioning, self._features, self.predictor.classes
        return prepare(tasks, points, *how)

    def past_shared_model(self, tasks: TaskSet) -> TaskSet:
        """Return tasks as the per-task models see them: labels on their scale, then residuals."""
        if self.target is not None:
            tasks = tasks.with_target(self.target.apply(tasks.y))
        if self.predictor.shared is None:
            return tasks
        by_row = np.repeat(np.arange(len(tasks)), tasks.sizes)
        sides = self.shared_sides(tasks.ids, tasks.side)[by_row]
        return tasks.with_rows(*self.predictor.shared.head_inputs(tasks.X, tasks.y, sides))

    def shared_sides(self, ids, table) -> np.ndarray | None:
        """Return what the shared model reads of tasks (T, k): from side rows, or as it is known."""
        if self.predictor.shared is None:
            return None
        sides = self.predictor.shared.sides(ids, table)
        if self.tasks is not None:
            found = self.tasks.positions(ids.tolist())
            known = (found >= 0) & ~(np.zeros(len(ids), bool) if table is None else table.has(ids))
            sides[known] = self.tasks.sides[found[known]]
        return sides

    def adapt(self, tasks: TaskSet, points: TaskSet | None, n_jobs=1, keep_state=False):
        """Return the models of tasks (`TaskModels`), solved from their points."""
        data = self.prepare(self.past_shared_model(tasks), points)
        (theta, start), rows = self.start(data.ids, data.Phi, n_jobs), data.points
        clock = self.clock(tasks)
        keeps = keep_state or clock is not None
        solved = solve_named(self.inner, data.ids, theta, rows, n_jobs, keeps, start, clock)
        solved = solved._replace(coef=self.with_cold_start(solved.coef, data.Phi, rows.sizes))
        sides = self.shared_sides(tasks.ids, tasks.side)
        n = rows.count
        if keep_state:  # of one task, all its points, though some may only condition
            n = Points(tasks.X, tasks.y, tasks.offsets, tasks.weight).count
        return TaskModels(self.predictor, data.ids, theta, solved, rows, n, sides, start)

    def solve(self, ids, Phi, points: Points, n_jobs: int, clock=None) -> TaskStore:
        """Return the models of tasks, from points in the learner's units, as a store."""
        theta, start = self.start(ids, Phi, n_jobs)
        keep_own = self.predictor.label_kind == "number" and clock is None
        options = keep_own, start, clock
        store = TaskStore.solve(self.inner, ids, theta, points, n_jobs, Phi, *options)
        return replace(store, coef=self.with_cold_start(store.coef, Phi, points.sizes))

    @property
    def keeps_history(self) -> bool:
        """Whether the rows of all tasks are kept with their times, so that drift can be learned."""
        return isinstance(self.state, TaskStatistics) and self.state.history is not None

    def without_history(self) -> Fitted:
        """Return the value without the rows that drift was learned from."""
        if not self.keeps_history:
            return self
        return self._replace(state=self.state._replace(history=None))

    def clock(self, tasks: TaskSet) -> np.ndarray | None:
        """Return the times of rows that tasks take in (N,), if they matter; else None."""
        if drift_of(self.inner) is None and not self.keeps_history:
            return None
        return required_clock(tasks.time, len(tasks.X), self.info.get("time"))

    def solve_statistics(self, state: TaskStatistics, Phi, n_jobs: int = 1) -> TaskStore:
        """Return the models of all tasks of `state`, leaf after leaf.

        A task's model depends on the tasks of its leaf by rounding; so it has the same bits for any
        order of the tasks. The statistics stay in `state` alone.
        """
        theta = np.empty((len(state.ids), self.scales.width))
        coef = np.empty_like(theta)
        for at in state.leaves():
            theta[at] = self.tau.theta(Phi[at])
            stats = scaled_statistics(state.whole, self.scales, at)
            coef[at] = self.inner.posterior(stats, theta[at], n_jobs).mean
        coef = self.with_cold_start(coef, Phi, state.whole.count)
        return TaskStore(state.ids, state.whole.count, theta, coef, Phi=narrow(Phi))

    def with_cold_start(self, coef: np.ndarray, Phi, sizes) -> np.ndarray:
        """Return the models of tasks (T, width), those without points by `tau.cold_start`."""
        empty = np.flatnonzero(sizes == 0)
        if not len(empty) or getattr(self.tau, "cold", None) is None:
            return coef
        coef = coef.copy()
        coef[empty] = self.tau.cold_start(Phi[empty])
        return coef

    def update(self, tasks: TaskSet, points: TaskSet | None, n_jobs: int = 1) -> Fitted:
        """Return a value in which known tasks have further points, and new tasks are added."""
        store = self.tasks
        if store is None:
            raise DataError("The model keeps no task models to update: fit with keep_tasks=True.")
        state, by_statistics = self.state, isinstance(self.state, TaskStatistics)
        drifts = drift_of(self.inner) is not None
        require_resumable(self.predictor, state if by_statistics else store.state)
        found = store.positions(tasks.ids.tolist())
        known, new = np.flatnonzero(found >= 0), np.flatnonzero(found < 0)
        store.refuse_lookalikes(tasks.ids[new].tolist())
        tasks, side = self.past_shared_model(tasks), tasks.side
        if len(known):
            part, at = tasks.subset(known), found[known]
            clock = self.clock(part)
            if isinstance(state, COLLECTED):
                raw = raw_points(part, self.scales)
                state = state.extend(at, raw)
                if isinstance(state, TaskStatistics):
                    state = state.remember(at, raw, clock)
            if by_statistics and not drifts:
                stats = scaled_statistics(state.whole, self.scales, at)
                store = store.resolved(self.inner, at, self._with_priors(stats, at), n_jobs)
            else:
                scaled, y = scaled_tasks(part, self.scales)
                rows = Points(self.scales.with_ones(scaled), y, part.offsets, part.weight)
                store = store.extend(self.inner, at, rows, n_jobs, clock if drifts else None)
        if len(new):
            part = tasks.subset(new)
            data = self.prepare(part, points)
            clock = self.clock(part) if drifts else None
            more = self.solve(data.ids, data.Phi, data.points, n_jobs, clock)
            if by_statistics and not drifts:
                more = replace(more, state=getattr(more.state, "priors", None))
            store = store.concat(replace(more, sides=self.shared_sides(more.ids, side)))
            if isinstance(state, COLLECTED):
                more = self.collect(part, points, type(state), self.keeps_history)
                state = state.join(more)
        updated = self._replace(tasks=store, state=state)
        if self.groups is None:
            return updated
        changed = np.append(found[known], np.arange(len(store) - len(new), len(store)))
        return updated._regrouped(changed, n_jobs)

    def _regrouped(self, changed, n_jobs: int) -> Fitted:
        """Return a value in which the tasks that share a group with changed ones have moved."""
        store = self.tasks
        at = same_top(store.ids.tolist(), changed)
        stats = scaled_statistics(self.state.whole, self.scales, at)
        Phi = None if store.Phi is None else store.Phi[at]
        found = regroup(store.ids[at], stats, store.state.base[at], Phi, self.inner, n_jobs)
        store = store.put(at, found.theta, found.coef, found.priors)
        return self._replace(tasks=store, groups=self.groups.put(found.groups))

    def collect(
        self, tasks: TaskSet, points: TaskSet | None, kind: Any = TaskStatistics, timed=False
    ) -> Any:
        """Return the statistics of tasks, of one `kind`, and their side rows or features.

        With `timed`, also their rows with their times.
        """
        raw = raw_points(tasks, self.scales)
        if not self.reader.reads_points:
            table = tasks.side
            if table is not None:
                table = table.take(tasks.ids[table.has(tasks.ids)])
            found = kind.of(tasks.ids, raw, table)
            if not timed:
                return found
            clock = required_clock(tasks.time, len(tasks.X), self.info.get("time"))
            return found._replace(history=Timed(*raw, clock))
        data, features = self.prepare(tasks, points), None
        if points is None and self.conditioning == "shared":

            def features(at, shown: Points):
                X, y, *_ = user_points(shown, self.scales)
                X, y = self.scales.rescaled(X), self.scales.target(y)
                own = (*self.scales.for_maps(X, y), shown.offsets, masses(shown.weight))
                return self._features(tasks.ids[at], tasks.side, own)

        elif points is None:  # the first half of a task's points only conditions
            raw = raw.where(~first_halves(tasks.offsets)[0])
        return kind.of(tasks.ids, raw, None, data.Phi, features)

    # Predictions.

    def weights(self, rows: Rows, n_jobs: int = 1) -> np.ndarray:
        """Return the weight vectors (T, width) of the tasks of a call: their models, or tau."""
        ids, store = rows.ids, self.tasks
        weights = np.empty((len(ids), self.scales.width))
        found = np.full(len(ids), -1)
        if store is not None:
            found = store.positions(ids.tolist())
            weights[found >= 0] = store.coef[found[found >= 0]]
        new = found < 0
        if store is not None:
            store.refuse_lookalikes(ids[new].tolist())
        if (rows.side is not None or rows.points is not None) and not new.all():
            # A known task without points starts, and stays, at tau of the side row given now.
            given = rows.points is not None and np.isin(ids, rows.points.ids)
            given |= rows.side is not None and rows.side.has(ids)
            empty = np.zeros(len(ids), bool)
            empty[~new] = store.sizes[found[~new]] == 0
            new |= empty & given
        if new.any():
            Phi = self.features(ids[new], rows.side, rows.points)
            theta, _ = self.start(ids[new], Phi, n_jobs)
            weights[new] = self.with_cold_start(theta, Phi, np.zeros(len(theta)))
        return weights

    def _row_clock(self, rows: Rows) -> np.ndarray | None:
        """Return the times of rows to predict (N,), if tasks change with time; else None."""
        if rows.time is None or drift_of(self.inner) is None:
            return None
        return clock_of(rows.time, self.info.get("time"))

    def _call(self, rows: Rows, n_jobs: int) -> tuple:
        """Return the arguments of `LinearPredictor.scores` for the rows of a call."""
        coef, clock = self.weights(rows, n_jobs), self._row_clock(rows)
        theta, stats = (coef, None) if clock is None else self.statistics(rows.ids)
        models = Models(coef, theta, stats, self.shared_sides(rows.ids, rows.side), rows.codes)
        models = models.at(self.inner, clock)
        return rows.X, models.coef, models.codes, n_jobs, models.sides

    def scores(self, rows: Rows, n_jobs: int = 1) -> np.ndarray:
        """Return <row, w> of rows (N,), each with the weights of its task."""
        return rows.restore(self.predictor.scores(*self._call(rows, n_jobs)))

    def predict(self, rows: Rows, n_jobs: int = 1) -> np.ndarray:
        """Return numbers, classes or mean counts (N,), in the order of the call."""
        state = self.covariances(rows.ids) if self.predictor.averages else None
        return rows.restore(self.predictor.predict(*self._call(rows, n_jobs), state))

    def predict_proba(self, rows: Rows, n_jobs: int = 1) -> np.ndarray:
        """Return the probabilities of the classes (N, K)."""
        call, state = self._call(rows, n_jobs), None
        if hasattr(self.inner, "variances"):
            state = self.covariances(rows.ids)
        return rows.restore(self.predictor.probabilities(*call, state))

    def count_distribution(self, rows: Rows, n_jobs: int = 1) -> CountDistribution:
        """Return the distribution of counts at rows, for an exposure of 1."""
        X, W, codes, *_ = self._call(rows, n_jobs)
        found = self.predictor.count_distribution(X, W, codes, n_jobs, self.covariances(rows.ids))
        return CountDistribution(*map(rows.restore, found[:2]), found.alpha)

    def std(self, rows: Rows, precision=None) -> np.ndarray:
        """Return the standard deviation of a new label at each row (N,).

        `precision` (N,) of the labels is in the order of `rows`.
        """
        theta, stats = self.statistics(rows.ids)
        models = Models(theta, theta, stats, None, rows.codes)
        _, theta, stats, _, codes = models.at(self.inner, self._row_clock(rows))
        std = rows.restore(self.predictor.std(rows.X, theta, stats, codes, precision))
        if self.target is None:
            return std
        return self.predictor.label_std(self.predictor.decide(self.scores(rows)), std)

    def n_points(self, rows: Rows) -> np.ndarray:
        """Return how many points of its task the model knows, for each row (N,)."""
        store = self.tasks
        sizes = np.zeros(len(rows.ids), np.int64 if store is None else store.sizes.dtype)
        if store is not None:
            at = store.positions(rows.ids.tolist())
            sizes[at >= 0] = store.sizes[at[at >= 0]]
        codes = np.zeros(len(rows.X), np.int64) if rows.codes is None else rows.codes
        return rows.restore(sizes[codes])

    def statistics(self, ids) -> tuple[np.ndarray, Any]:
        """Return theta (T, width) and statistics of tasks: zero for unknown, None if not kept."""
        store, width = self.tasks, self.scales.width
        columns, theta = getattr(self.inner, "state_width", width), np.zeros((len(ids), width))
        stats: Any = SquaredState.start(len(ids), columns)
        if isinstance(self.inner, NestedGaussian):
            stats = self._without_features(ids)
        elif drift_of(self.inner) is not None:
            stats = TimedState.start(len(ids), columns)
        at = np.full(len(ids), -1) if store is None else store.positions(ids.tolist())
        if not (at >= 0).any():
            return theta, stats
        found = self.known_statistics(at[at >= 0])
        if found is None:
            return theta, None
        stats = stats._replace(count=stats.count.astype(float))  # sums of weights are no integers
        theta[at >= 0] = store.theta[at[at >= 0]]
        for mine, theirs in zip(stats, found, strict=True):
            mine[at >= 0] = theirs
        return theta, stats

    def known_statistics(self, at=None) -> Any:
        """Return the statistics of the known tasks at positions `at`; None if they are not kept.

        A learner by statistics keeps them once, in `state`; others in `tasks`. Tasks that drift
        have two: in `state` those of all rows alike, in `tasks` what is not forgotten of them.
        """
        if isinstance(self.state, TaskStatistics) and drift_of(self.inner) is None:
            stats = scaled_statistics(self.state.whole, self.scales, at)
            return self._with_priors(stats, at)
        state = None if self.tasks is None else self.tasks.state
        return state if state is None or at is None else state.take(at)

    def _with_priors(self, stats: SquaredState, at=None) -> SquaredState | NestedState:
        """Return statistics of the known tasks at `at`, with their priors if these differ."""
        priors = None if self.tasks is None else self.tasks.state
        if not isinstance(priors, TaskPriors):
            return stats
        return NestedState(*stats, *(priors if at is None else priors.take(at)))

    def _without_features(self, ids) -> NestedState:
        """Return the priors of tasks without points; their covariances do not depend on Phi."""
        zero = np.zeros((len(ids), self.scales.width))
        if self.groups is None:
            return self.inner.start(zero)
        return self.groups.prior(ids, zero, self.inner)[1]

    def own_estimates(self) -> np.ndarray:
        """Return each known task's own least-squares estimate (T, width), in the user's units."""
        return self.tasks.own_estimates(self.scales, self.own_statistics())

    def own_statistics(self) -> Any:
        """Return the statistics of all rows of the known tasks; None if they are not kept."""
        if isinstance(self.state, TaskStatistics):
            return scaled_statistics(self.state.whole, self.scales)
        stats = self.known_statistics()
        return stats.squared if isinstance(stats, NestedState) else stats

    def covariances(self, ids) -> Covariances:
        """Return the covariances of the weights of tasks; H for those without points."""
        covariance = np.repeat(self.info["H_"][None], len(ids), axis=0)
        if self.tasks is not None:
            at = self.tasks.positions(ids.tolist())
            covariance[at >= 0] = self.tasks.state.covariance[at[at >= 0]]
        return Covariances(covariance)

    def which_task(self) -> DataError:
        """Return the error of a call that does not name the task of its rows."""
        count = self.n_tasks if self.tasks is None else len(self.tasks)
        new = "For a new task give its row as side_info."
        if not self.reader.columns and not self.reader.reads_points:
            new = "For a new task give an id that the model does not know."
        return DataError(
            f"The model knows {count} tasks: say which one each row belongs to by task=, or by "
            f"task_column= in the constructor. {new}"
        )

    # Files.

    def slim(self, tasks: bool, resume: bool) -> Fitted:
        """Return the value without task models, or without what `update` and `partial_fit` need."""
        store, state, seen = self.tasks, self.state, self.seen
        if not tasks:
            store, seen = None, None if seen is None else SeenIds()
        elif store is not None and not resume:
            store = store.without_state(self.scales, self.own_statistics())
        if isinstance(state, COLLECTED) and not (tasks and resume):
            state = None  # statistics of every task
        tau = self.tau
        if isinstance(tau, KernelTau) and not resume:
            tau = tau.without_gradients()
        groups = self.groups if tasks else None
        return self._replace(tasks=store, state=state, seen=seen, tau=tau, groups=groups)
