"""Learn from tasks that were read: scales and encodings, tau, then the model of every task.

`learn` calls a learner's one hook, `_learn(data: Training) -> Learned`, and puts the result into a
`Fitted`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from condmeta import engine
from condmeta.fitted.against_rest import REST, AgainstRest, coded_against_rest
from condmeta.fitted.at_times import drift_of
from condmeta.fitted.collect import collect, solve_statistics
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.groups import regroup
from condmeta.fitted.kept_rows import Gathered, KeptRows
from condmeta.fitted.predictor import LinearPredictor
from condmeta.fitted.prepared import prepare, raw_points, scaled_rows
from condmeta.fitted.scales import Scales
from condmeta.fitted.seen_ids import SeenIds
from condmeta.fitted.shared_model import OutOfTask, SharedModel
from condmeta.fitted.task_store import TaskStore, narrow
from condmeta.fitted.tau import KernelTau, LinearTau
from condmeta.fitted.weighing import TAILS, with_tails
from condmeta.inner.algorithms import can_resume
from condmeta.inner.nested import NestedGaussian
from condmeta.inner.row_posterior import RowPosterior
from condmeta.learners.checks import warn_memory
from condmeta.learners.copies import altered, with_fitted
from condmeta.learners.forgetting import history_rows, settle_drift, with_times
from condmeta.learners.inputs import Inputs
from condmeta.learners.labels import kind_of
from condmeta.learners.parameters import check_learner, jobs_of
from condmeta.learners.shared_base import shared_model_of
from condmeta.learners.side_inputs import side_reader
from condmeta.learners.student import learn_noise
from condmeta.learners.transforms import with_transforms
from condmeta.losses import get_loss
from condmeta.meta.task_statistics import TaskStatistics, scaled_statistics
from condmeta.meta.wide_tasks import WideTasks
from condmeta.tasks import TaskSet
from condmeta.tasks.points import Points
from condmeta.tasks.splits import first_halves, in_content_order, tasks_by_content
from condmeta.tasks.weights import masses


class Training(NamedTuple):
    """What a learner learns from: T tasks, all of which have rows.

    Attributes
    ----------
    tasks : TaskSet or None
        The tasks as the user gave them.
    given_points : TaskSet or None
        Separate conditioning points.
    ids : (T,) array
    rows : Points or None
        Their points in the learner's units.
    Phi : (T, k) array, or what a kernel reads of T tasks
    scales : Scales
    features : callable or None
        `features(at, points)` returns Phi of the tasks at positions `at` if they show these points
        only; None if Phi does not depend on the task's own points.
    kernel : kernel or None
        The kernel that reads Phi.
    statistics : TaskStatistics, WideTasks or None
        In place of `tasks` and `rows`, for a learner with `_by_statistics`; tasks without rows are
        among them.
    names : list of str
        Names of the columns of scaled rows, with `statistics`.
    """

    tasks: TaskSet | None
    given_points: TaskSet | None
    ids: np.ndarray
    rows: Points | None
    Phi: Any
    scales: Scales
    features: Callable[..., Any] | None = None
    kernel: Any = None
    statistics: TaskStatistics | WideTasks | None = None
    names: Sequence[str] = ()

    def by_content(self, most: int | None = None) -> tuple[np.ndarray, Points]:
        """Return the positions of at most `most` tasks, and their points, to choose settings on.

        Tasks and rows are in an order of the rows' numbers alone: neither ids nor the order of the
        input matter.
        """
        raw = self.tasks
        if len(raw.y) > len(self.rows.y):  # the first halves condition
            raw = raw.where(~first_halves(raw.offsets)[0])
        order = tasks_by_content(raw)[:most]
        return order, in_content_order(self.rows, raw).take(order)


class Learned(NamedTuple):
    """What a learner learns: the map, the inner algorithm, and the learner's own attributes.

    `state` is what a stream goes on from.
    """

    tau: LinearTau | KernelTau
    inner: Any
    info: dict[str, Any] = {}
    state: Any = None


def fit_inputs(learner: Any, given: Inputs, shared: OutOfTask | None = None) -> Any:
    """Return a copy of a learner, fitted to tasks that were read already."""
    check_learner(learner)
    return with_fitted(learner, learn(learner, given, shared))


def learn(learner: Any, given: Inputs, shared: OutOfTask | None = None) -> Fitted | AgainstRest:
    """Learn from the tasks of a call: scales and encodings, tau, then the model of every task.

    `shared` is a shared model that was fitted to these tasks already; else `learner.base` says it.
    """
    if learner._many_classes and given.classes is not None and len(given.classes) > 2:
        return _against_rest(learner, given)
    given = with_transforms(learner, given)
    if shared is None and given.form.base is not None:
        shared = given.shared or shared_model_of(learner, given.form.base, given.tasks, "squared")
    model = None if shared is None else shared.model
    if shared is not None:
        given = given._replace(tasks=shared.head_inputs(given.tasks), keys=None)
    engine.warn_if_slow(given.tasks.X.size)
    if getattr(learner, "noise", None) in TAILS and learner._heavy_tails:
        return learn_noise(learner, given, partial(_learn_tasks, shared=model))
    return _learn_tasks(learner, given, model)


def _learn_tasks(learner: Any, given: Inputs, shared: SharedModel | None) -> Fitted:
    """Learn from tasks with labels as the linear models see them."""
    tasks, start = given.tasks, begin(learner, given, shared)
    filled, empty = np.flatnonzero(tasks.sizes > 0), np.flatnonzero(tasks.sizes == 0)
    if learner._by_statistics:
        ordered, keys = tasks, given.keys
        if len(empty):
            at = np.append(filled, empty)
            ordered, keys = tasks.subset(at), None if keys is None else keys[at]
        kind = learner._kind_of_statistics(start.scales)
        if kind is TaskStatistics:
            warn_memory(len(ordered), len(start.scales.x_mean) + 1)
        start, timed = with_times(learner, start, ordered, kind)
        statistics = collect(start, ordered, given.points, kind, timed, keys)
        return conclude(learner, start._replace(state=statistics), tasks.side).without_history()
    trained = tasks.subset(filled) if len(empty) else tasks
    data = training(start, trained, given.points)
    fitted = settled(start, learner._learn(data))._replace(n_tasks=len(trained))
    if not learner.keep_tasks:
        seen = SeenIds(trained.ids.tolist()) if learner._streams else None
        return fitted._replace(seen=seen)
    store = fitted.solve(data.ids, data.Phi, data.rows, jobs_of(learner))
    if len(empty):
        spare = fitted.prepare(tasks.subset(empty), given.points)
        more = fitted.solve(spare.ids, spare.Phi, spare.points, jobs_of(learner))
        store = store.concat(more)
    if fitted.predictor.resumable and isinstance(fitted.inner, RowPosterior):
        rows = raw_points(tasks.subset(np.append(filled, empty)), fitted.scales)
        fitted = fitted._replace(state=KeptRows(*rows, tasks.side))
    return with_store(fitted, store, tasks.side)


def _against_rest(learner: Any, given: Inputs) -> AgainstRest:
    """Learn each of more than two classes against the rest."""
    tasks, points, parts = given.tasks, given.points, []
    for k, label in enumerate(given.classes):
        if points is not None and points.y is not None:
            points = given.points.with_target(1.0 * (given.points.y == label))
        own = tasks.with_target(coded_against_rest(tasks.y, k))
        parts.append(learn(learner, given._replace(tasks=own, points=points, classes=REST)))
    return AgainstRest(given.classes, tuple(parts))


def begin(learner: Any, given: Inputs, shared: Any = None, validate: bool = False) -> Fitted:
    """Learn scales and encodings from the tasks that have rows; tau is None.

    A learner by statistics learns the encodings of side tables later, from all its tasks; with
    `validate` they are learned here as well, so that a table that cannot be encoded fails now.
    """
    tasks, columns = given.tasks, given.columns
    scales = Scales.learn(
        tasks.X, tasks.y, learner.scale, learner.fit_intercept, _centre(learner),
        transformer=given.transformer, weight=masses(tasks.weight),
        n_inputs=columns.n_features, unit_free=learner._unit_free, follows_y=_follows_y(learner),
    )  # fmt: skip
    reader = side_reader(learner)
    if validate or reader.reads_points or not learner._by_statistics:
        reader = reader.fit(tasks, scales, columns.names)
    parts = given.classes, shared, columns.names, False, bool(learner._weighs), given.target
    predictor = LinearPredictor(type(learner).__name__, scales, None, *parts)
    info = {"constant": scales.constant & (learner.scale == "standard")}
    info |= given.chosen_form()
    return Fitted(predictor, reader, None, None, columns, 0, learner.conditioning, info)


def _centre(learner: Any):
    """Return the function that computes the offset of y: the location that the loss estimates."""
    if kind_of(learner) != "number":
        return None
    return np.mean if getattr(get_loss(learner.loss), "name", "") == "squared" else np.median


def _follows_y(learner: Any) -> bool:
    """Return whether predictions are multiplied by c if y is: then squares of y cannot overflow."""
    chosen = getattr(learner, "lam", None) == "auto"
    return kind_of(learner) == "number" and (
        _centre(learner) is np.mean or learner._unit_free or chosen
    )


def in_units_of_y(s2: float, objective: float, n_points: Any, y_scale: float) -> dict[str, float]:
    """Return the noise and the log likelihood of y, from those of y / y_scale."""
    with np.errstate(over="ignore"):
        s2 = float(np.square(y_scale) * s2)
    return {"s2_": s2, "objective_": float(objective - n_points * np.log(y_scale))}


def training(start: Fitted, tasks: TaskSet, points: TaskSet | None) -> Training:
    """Return tasks as a learner learns from them."""
    reader, scales, features = start.reader, start.scales, None
    conditioning = start.conditioning if reader.reads_points else None
    classes = start.predictor.classes
    data = prepare(tasks, points, scales, conditioning, reader.features, classes)
    if conditioning == "shared" and points is None and reader.kernel is None:
        mean = LinearTau(np.empty(0), data.Phi.mean(axis=0))

        def features(at: np.ndarray, shown: Points):
            rows = scales.for_maps(shown.X[:, : len(scales.x_mean)], shown.y)
            given = (*rows, shown.offsets, masses(shown.weight))
            return reader.features(tasks.ids[at], tasks.side, given, mean)

    parts = data.ids, data.points, data.Phi, scales, features, reader.kernel
    return Training(tasks, points, *parts)


def settled(start: Fitted, learned: Learned) -> Fitted:
    """Return the value with what was learned."""
    inner = learned.inner
    resumable = can_resume(inner) and not start.reader.reads_points
    predictor, info = start.predictor, start.info | learned.info
    target = predictor.target
    if target is not None and target.spread:
        target = target._replace(spread=float(np.sqrt(info["s2_"])))
    predictor = predictor._replace(inner=inner, resumable=resumable, target=target)
    return start._replace(predictor=predictor, tau=learned.tau, info=info, state=learned.state)


def conclude(learner: Any, collected: Fitted, table: Any = None) -> Fitted:
    """Learn from the statistics that were collected; `table` is what the shared model reads."""
    if getattr(learner, "noise", None) in TAILS and learner._heavy_tails:
        return _conclude_weighed(learner, collected, table)
    state, reader = collected.state, collected.reader
    if isinstance(state, Gathered):
        return _conclude_rows(learner, collected)
    order, trained, table_by_key = state.order(), state.whole.count > 0, None
    if state.table is not None:
        rows = state.table.positions(state.ids)[order]
        table_by_key = state.table.rows(rows[rows >= 0])
    if not reader.reads_points:
        reader = reader.refit(table_by_key)
    Phi = state.Phi
    if Phi is None:
        reader.find_rows(state.ids[trained], state.table)  # an error names tasks as they came
        Phi = np.empty((len(state.ids), len(reader.names)))
        Phi[order] = reader.features(state.ids[order], table_by_key, None)
        if not trained.all():
            mean = LinearTau(np.empty(0), Phi[order].mean(axis=0))
            Phi[~trained] = reader.features(state.ids[~trained], state.table, None, mean)
        table_by_key = None
    predictor = collected.predictor
    if isinstance(state, TaskStatistics) and not reader.reads_points:
        # Not the scales of the rows as they came: they have other bits in another order.
        overall = Scales.of_moments(*state.whole.overall(state.leaves(order)), predictor.scales)
        predictor = predictor._replace(scales=predictor.scales.moved_to(overall))
    start = collected._replace(predictor=predictor, reader=reader, tasks=None)
    names = start.scales.names(start.columns.names)
    data = Training(None, None, state.ids, None, Phi, start.scales, statistics=state, names=names)
    learned = learner._learn(data)._replace(state=state)
    fitted = settled(start, learned)._replace(n_tasks=len(order))
    if hasattr(learner, "drift"):

        def stay() -> Fitted:
            still = data._replace(statistics=state._replace(history=None))
            return settled(start, learner._learn(still))._replace(n_tasks=len(order))

        fitted = settle_drift(learner, fitted, Phi, stay)
    if not learner.keep_tasks and not isinstance(fitted.inner, NestedGaussian):
        return fitted
    if drift_of(fitted.inner) is not None:
        *points, clock = history_rows(fitted)
        parts = state.ids, Phi, Points(*points), jobs_of(learner), clock
        return with_store(fitted, fitted.solve(*parts), table)
    if isinstance(state, WideTasks):
        rows = scaled_rows(state.whole, fitted.scales)
        return with_store(fitted, fitted.solve(state.ids, Phi, rows, jobs_of(learner)), table)
    if not isinstance(fitted.inner, NestedGaussian):
        return with_store(fitted, solve_statistics(fitted, state, Phi, jobs_of(learner)), table)
    stats, base = scaled_statistics(state.whole, fitted.scales), fitted.tau.theta(Phi)
    found = regroup(state.ids, stats, base, narrow(Phi), fitted.inner, jobs_of(learner))
    fitted = fitted._replace(groups=found.groups)
    if not learner.keep_tasks:
        return fitted
    models = found.theta, found.coef
    store = TaskStore(state.ids, stats.count, *models, state=found.priors, Phi=narrow(Phi))
    return with_store(fitted, store, table)


def _conclude_weighed(learner: Any, collected: Fitted, table: Any) -> Fitted:
    """Learn from statistics of rows that have been weighed, if a fit has found heavy tails."""
    info = dict(collected.info)
    nu = info.pop("nu_", None)
    normal = altered(learner, noise="auto" if nu is None else "shared")
    fitted = conclude(normal, collected._replace(info=info), table)
    return fitted if nu is None else with_tails(fitted, nu)


def _conclude_rows(learner: Any, gathered: Fitted) -> Fitted | AgainstRest:
    """Learn from the rows that were gathered; that rows have an exposure stays known."""
    tasks, classes = gathered.state.tasks, gathered.predictor.classes
    fitted = learn(learner, Inputs(tasks, None, gathered.columns, classes))
    if "exposure" not in gathered.info or isinstance(fitted, AgainstRest):
        return fitted
    return fitted._replace(info=fitted.info | {"exposure": True})


def with_store(fitted: Fitted, store: TaskStore, table: Any) -> Fitted:
    """Return the value with task models, which keep what the shared model reads of their tasks."""
    return fitted._replace(tasks=replace(store, sides=fitted.shared_sides(store.ids, table)))
