"""One fitted value: everything that answers a question about a fit, and nothing that changes.

A learner's `fit` makes a `Fitted`; `adapt`, `predict` and tables read it; `update` and
`partial_fit` return a new one. A call that fails leaves the old value in place.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.at_times import Models, clock_of, drift_of, required_clock
from condmeta.fitted.collect import COLLECTED
from condmeta.fitted.columns import Columns
from condmeta.fitted.count_distribution import CountDistribution
from condmeta.fitted.groups import Groups
from condmeta.fitted.held_once import held_once
from condmeta.fitted.kept_rows import KeptRows
from condmeta.fitted.known_statistics import covariances, own_statistics, statistics
from condmeta.fitted.predictor import LinearPredictor
from condmeta.fitted.prepared import Prepared, prepare
from condmeta.fitted.rows import Rows
from condmeta.fitted.scales import FARTHEST
from condmeta.fitted.seen_ids import SeenIds
from condmeta.fitted.side_reader import SideReader
from condmeta.fitted.starts import aligned_features, features, read_anew, start, with_cold_start
from condmeta.fitted.target import TargetScale
from condmeta.fitted.task_model import TaskModels
from condmeta.fitted.task_store import TaskStore, solve_named
from condmeta.fitted.tau import KernelTau, LinearTau
from condmeta.fitted.update import updated
from condmeta.meta.task_statistics import TaskStatistics
from condmeta.persistence.fields import (
    ANY,
    instance,
    mapping,
    maybe,
    number,
    one_of,
    optional,
)
from condmeta.persistence.registry import register_tuple
from condmeta.tasks import TaskSet
from condmeta.tasks.points import Points


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
    upgrade=held_once,
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

    def theta(self, ids, table, points=None, n_jobs: int = 1) -> np.ndarray:
        """Return where tasks start (T, width), in the learner's units: tau(s), and their groups."""
        return start(self, ids, features(self, ids, table, points), n_jobs)[0]

    # New points.

    def prepare(self, tasks: TaskSet, points: TaskSet | None) -> Prepared:
        """Return tasks in the learner's units; `tasks` have passed the shared model."""
        return prepare(
            tasks, points, self.scales, self.conditioning if self.reader.reads_points else None,
            features=partial(aligned_features, self), classes=self.predictor.classes,
            farthest=FARTHEST,
        )  # fmt: skip

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
        theta, prior_state = start(self, data.ids, data.Phi, n_jobs)
        rows, clock = data.points, self.clock(tasks)
        keeps = keep_state or clock is not None
        solved = solve_named(
            self.inner, data.ids, theta, rows, n_jobs, keeps, start=prior_state, time=clock
        )
        solved = solved._replace(coef=with_cold_start(self, solved.coef, data.Phi, rows.sizes))
        sides = self.shared_sides(tasks.ids, tasks.side)
        n = rows.count
        if keep_state:  # of one task, all its points, though some may only condition
            n = Points(tasks.X, tasks.y, tasks.offsets, tasks.weight).count
        return TaskModels(self.predictor, data.ids, theta, solved, rows, n, sides, prior_state)

    def solve(self, ids, Phi, points: Points, n_jobs: int, clock=None) -> TaskStore:
        """Return the models of tasks, from points in the learner's units, as a store."""
        theta, prior_state = start(self, ids, Phi, n_jobs)
        store = TaskStore.solve(
            self.inner, ids, theta, points, n_jobs, Phi, start=prior_state, time=clock,
            keep_own=self.predictor.label_kind == "number" and clock is None,
        )  # fmt: skip
        return replace(store, coef=with_cold_start(self, store.coef, Phi, points.sizes))

    def update(self, tasks: TaskSet, points: TaskSet | None, n_jobs: int = 1) -> Fitted:
        """Return a value in which known tasks have further points, and new tasks are added."""
        return updated(self, tasks, points, n_jobs)

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

    # Predictions.

    def weights(self, rows: Rows, n_jobs: int = 1) -> np.ndarray:
        """Return the weight vectors (T, width) of the tasks of a call: their models, or tau."""
        ids, store, new = rows.ids, self.tasks, read_anew(self, rows)
        weights = np.empty((len(ids), self.scales.width))
        if store is not None:
            weights[~new] = store.coef[store.positions(ids[~new].tolist())]
        if new.any():
            Phi = features(self, ids[new], rows.side, rows.points)
            theta, _ = start(self, ids[new], Phi, n_jobs)
            weights[new] = with_cold_start(self, theta, Phi, np.zeros(len(theta)))
        return weights

    def _row_clock(self, rows: Rows) -> np.ndarray | None:
        """Return the times of rows to predict (N,), if tasks change with time; else None."""
        if rows.time is None or drift_of(self.inner) is None:
            return None
        return clock_of(rows.time, self.info.get("time"))

    def _call(self, rows: Rows, n_jobs: int) -> tuple:
        """Return the arguments of `LinearPredictor.scores` for the rows of a call."""
        coef, clock = self.weights(rows, n_jobs), self._row_clock(rows)
        theta, stats = (coef, None) if clock is None else statistics(self, rows.ids)
        models = Models(coef, theta, stats, self.shared_sides(rows.ids, rows.side), rows.codes)
        models = models.at(self.inner, clock)
        return rows.X, models.coef, models.codes, n_jobs, models.sides

    def scores(self, rows: Rows, n_jobs: int = 1) -> np.ndarray:
        """Return <row, w> of rows (N,), each with the weights of its task."""
        return rows.restore(self.predictor.scores(*self._call(rows, n_jobs)))

    def predict(self, rows: Rows, n_jobs: int = 1) -> np.ndarray:
        """Return numbers, classes or mean counts (N,), in the order of the call."""
        state = covariances(self, rows) if self.predictor.averages else None
        return rows.restore(self.predictor.predict(*self._call(rows, n_jobs), state))

    def predict_proba(self, rows: Rows, n_jobs: int = 1) -> np.ndarray:
        """Return the probabilities of the classes (N, K)."""
        call, state = self._call(rows, n_jobs), None
        if hasattr(self.inner, "variances"):
            state = covariances(self, rows)
        return rows.restore(self.predictor.probabilities(*call, state))

    def count_distribution(self, rows: Rows, n_jobs: int = 1) -> CountDistribution:
        """Return the distribution of counts at rows, for an exposure of 1."""
        X, W, codes, *_ = self._call(rows, n_jobs)
        found = self.predictor.count_distribution(X, W, codes, n_jobs, covariances(self, rows))
        return CountDistribution(*map(rows.restore, found[:2]), found.alpha)

    def std(self, rows: Rows, precision=None) -> np.ndarray:
        """Return the standard deviation of a new label at each row (N,).

        `precision` (N,) of the labels is in the order of `rows`.
        """
        theta, stats = statistics(self, rows.ids, rows.side, rows.points)
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
            store = store.without_state(self.scales, own_statistics(self))
        if isinstance(state, (*COLLECTED, KeptRows)) and not (tasks and resume):
            state = None  # statistics or rows of every task
        tau = self.tau
        if isinstance(tau, KernelTau) and not resume:
            tau = tau.without_gradients()
        groups = self.groups if tasks else None
        return self._replace(tasks=store, state=state, seen=seen, tau=tau, groups=groups)
