"""Learn from tasks that were read: scales and encodings, tau, then the model of every task.

`learn` calls a learner's one hook, `_learn(data: Training) -> Learned`, and puts the result into a
`Fitted`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from condmeta import engine
from condmeta.fitted.against_rest import (
    REST,
    AgainstRest,
    coded_against_rest,
    points_against_rest,
)
from condmeta.fitted.collect import collect
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.kept_rows import Gathered, KeptRows
from condmeta.fitted.predictor import LinearPredictor
from condmeta.fitted.prepared import prepare, raw_points
from condmeta.fitted.scales import Scales
from condmeta.fitted.seen_ids import SeenIds
from condmeta.fitted.shared_model import OutOfTask, SharedModel
from condmeta.fitted.solve import solve_collected, solve_in_groups
from condmeta.fitted.task_store import TaskStore
from condmeta.fitted.tau import LinearTau
from condmeta.fitted.weighing import TAILS, with_tails
from condmeta.inner.algorithms import can_resume
from condmeta.inner.nested import NestedGaussian
from condmeta.inner.row_posterior import RowPosterior
from condmeta.learners.checks import warn_memory
from condmeta.learners.copies import altered, with_fitted
from condmeta.learners.forgetting import settle_drift, with_times
from condmeta.learners.inputs import Inputs
from condmeta.learners.labels import kind_of
from condmeta.learners.parameters import check_learner, jobs_of
from condmeta.learners.shared_base import shared_model_of
from condmeta.learners.side_inputs import side_reader
from condmeta.learners.student import learn_noise
from condmeta.learners.training import Learned, Training
from condmeta.learners.transforms import with_transforms
from condmeta.losses import get_loss
from condmeta.meta.task_statistics import TaskStatistics
from condmeta.meta.wide_tasks import WideTasks
from condmeta.tasks import TaskSet
from condmeta.tasks.points import Points
from condmeta.tasks.weights import masses


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
    if _weighs_rows(learner):
        return learn_noise(learner, given, partial(_learn_tasks, shared=model))
    return _learn_tasks(learner, given, model)


def _weighs_rows(learner: Any) -> bool:
    """Return whether noise may have heavy tails: a fit then gives outliers less weight."""
    return learner._heavy_tails and learner.noise in TAILS


def _learn_tasks(learner: Any, given: Inputs, shared: SharedModel | None) -> Fitted:
    """Learn from tasks with labels as the linear models see them."""
    start = begin(learner, given, shared)
    by = _learn_by_statistics if learner._by_statistics else _learn_by_rows
    return by(learner, given, start)


def _learn_by_statistics(learner: Any, given: Inputs, start: Fitted) -> Fitted:
    """Reduce tasks to statistics, and learn from these; tasks without rows come last."""
    tasks, keys = given.tasks, given.keys
    empty = tasks.sizes == 0
    if empty.any():
        at = np.argsort(empty, kind="stable")
        tasks, keys = tasks.subset(at), None if keys is None else keys[at]
    kind = learner._kind_of_statistics(start.scales)
    if kind is TaskStatistics:
        warn_memory(len(tasks), len(start.scales.x_mean) + 1)
    start, timed = with_times(learner, start, tasks, kind)
    statistics = collect(start, tasks, given.points, kind, timed, keys)
    start = start._replace(state=statistics)
    return conclude(learner, start, given.tasks.side).without_history()


def _learn_by_rows(learner: Any, given: Inputs, start: Fitted) -> Fitted:
    """Learn from the rows of tasks, then solve the tasks; those without rows come last."""
    tasks = given.tasks
    filled, empty = np.flatnonzero(tasks.sizes > 0), np.flatnonzero(tasks.sizes == 0)
    trained = tasks.subset(filled) if len(empty) else tasks
    data = training(start, trained, given.points)
    fitted = with_learned(start, learner._learn(data))._replace(n_tasks=len(trained))
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
    tasks, parts = given.tasks, []
    for k, label in enumerate(given.classes):
        own = tasks.with_target(coded_against_rest(tasks.y, k))
        points = points_against_rest(given.points, label)
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
    predictor = LinearPredictor(
        type(learner).__name__, scales, inner=None, classes=given.classes, shared=shared,
        feature_names=columns.names, weighs=bool(learner._weighs), target=given.target,
    )  # fmt: skip
    info = {"constant": scales.constant & (learner.scale == "standard")}
    info |= given.chosen_form()
    return Fitted(
        predictor, reader, tau=None, tasks=None, columns=columns, n_tasks=0,
        conditioning=learner.conditioning, info=info,
    )  # fmt: skip


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

    return Training(
        tasks, points, data.ids, data.points, data.Phi, scales, features, kernel=reader.kernel
    )


def with_learned(start: Fitted, learned: Learned) -> Fitted:
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
    if _weighs_rows(learner):
        return _conclude_weighed(learner, collected, table)
    if isinstance(collected.state, Gathered):
        return _conclude_rows(learner, collected)
    start, Phi = _encode_sides(collected)
    fitted = _learn_tau(learner, start, Phi)
    store = None
    if isinstance(fitted.inner, NestedGaussian):
        groups, store = solve_in_groups(fitted, Phi, jobs_of(learner))
        fitted = fitted._replace(groups=groups)
    elif learner.keep_tasks:
        store = solve_collected(fitted, Phi, jobs_of(learner))
    return with_store(fitted, store, table) if learner.keep_tasks else fitted


def _encode_sides(collected: Fitted) -> tuple[Fitted, np.ndarray]:
    """Learn the encodings of the side table; return the value with them, and Phi of all tasks.

    The encodings, and the scales of the rows, are learned from the tasks with rows in an order that
    does not depend on the input. Sums in another order would have other bits.
    """
    state, reader, predictor = collected.state, collected.reader, collected.predictor
    order, table = state.order(), None
    if state.table is not None:
        rows = state.table.positions(state.ids)[order]
        table = state.table.rows(rows[rows >= 0])
    if not reader.reads_points:
        reader = reader.refit(table)
        if isinstance(state, TaskStatistics):
            overall = Scales.of_moments(*state.whole.overall(state.leaves(order)), predictor.scales)
            predictor = predictor._replace(scales=predictor.scales.moved_to(overall))
    Phi = state.Phi
    if Phi is None:
        trained = state.whole.count > 0
        reader.find_rows(state.ids[trained], state.table)  # an error names tasks as they came
        Phi = np.empty((len(state.ids), len(reader.names)))
        Phi[order] = reader.features(state.ids[order], table, None)
        if not trained.all():
            mean = LinearTau(np.empty(0), Phi[order].mean(axis=0))
            Phi[~trained] = reader.features(state.ids[~trained], state.table, None, mean)
    start = collected._replace(predictor=predictor, reader=reader, tasks=None, n_tasks=len(order))
    return start, Phi


def _learn_tau(learner: Any, start: Fitted, Phi: np.ndarray) -> Fitted:
    """Learn tau from the statistics of all tasks, and the drift of tasks that change."""
    state, scales = start.state, start.scales
    names = scales.names(start.columns.names)

    def learned_from(statistics: TaskStatistics | WideTasks) -> Fitted:
        data = Training.of_statistics(statistics, Phi, scales, names)
        return with_learned(start, learner._learn(data)._replace(state=state))

    fitted = learned_from(state)
    if not hasattr(learner, "drift"):
        return fitted
    return settle_drift(learner, fitted, Phi, lambda: learned_from(state._replace(history=None)))


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
