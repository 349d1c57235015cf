"""How `ConditionalRidge` learns: choose settings and fit the prior; take in further tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from condmeta.blas_threads import limit_threads
from condmeta.errors import DataError
from condmeta.fitted.change_of_scale import ChangeOfScale, in_units_of_y
from condmeta.fitted.collect import collect
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.scales import Scales
from condmeta.fitted.task_store import MOST_FEATURES
from condmeta.fitted.tau import LinearTau
from condmeta.fitted.weighing import weighed
from condmeta.inner.posterior import Gaussian, lower_root
from condmeta.inner.squared import SquaredState
from condmeta.learners.checks import refuse_weighing, warn_far_values
from condmeta.learners.forgetting import context_of, noises_of, require_history, with_times
from condmeta.learners.gathered import free_id, refuse_base, refuse_far
from condmeta.learners.inputs import read_tasks, read_training
from condmeta.learners.learn import begin
from condmeta.learners.parameters import check_learner, jobs_of
from condmeta.learners.shared_columns import differing_columns, learn_some_columns
from condmeta.learners.training import Learned, Training
from condmeta.learners.transforms import with_transforms
from condmeta.learners.wide import learn_wide_tasks
from condmeta.meta.ascent import Stopping
from condmeta.meta.blocks import OneBlock
from condmeta.meta.cold_start import LearnedMaps, learn_maps
from condmeta.meta.estimated_prior import open_covariance
from condmeta.meta.prior import Prior, inverse_curvature, metrics_for
from condmeta.meta.ridge import RidgeModel, learn_from_blocks, learn_prior
from condmeta.meta.ridge_choice import RidgeOptions, choose
from condmeta.meta.ridge_judge import ROUGH, HeldOutFeatures, SplitStatistics
from condmeta.meta.side_noise import LARGEST_LOG
from condmeta.meta.task_statistics import TaskStatistics
from condmeta.meta.trained_tasks import InMemory, Scaling, TrainedTasks, count_points
from condmeta.meta.wide_tasks import WideTasks
from condmeta.typing import Ids, Matrix, SideInfo, Values

CURVATURE_PASSES = 4  # what curvature may cost at most, in passes over all tasks


def learn_ridge(learner: Any, data: Training, steps: RidgeSteps | None = None) -> Learned:
    """Choose settings and learn the prior, in the scales of all rows.

    The scales that `data` has are those of the first call; the result is in these.
    """
    steps = RidgeSteps() if steps is None else steps
    state, Phi = data.statistics, data.Phi
    if isinstance(state, WideTasks):
        return learn_wide_tasks(learner, data)
    columns = differing_columns(learner.random, data.names, learner.fit_intercept)
    if columns is not None and len(columns) < len(data.names):
        return steps.learn_some(learner, data, columns)
    tasks = InMemory(state, Phi) if isinstance(state, TaskStatistics) else state
    rotation, overall = tasks.rotation(), Scales.of_moments(*tasks.moments, data.scales)
    with limit_threads(1):  # the matrices are small: threads of BLAS would only wait
        found = steps.learn_prior(learner, tasks, rotation, overall)
    choice, learned, context, cold, left_open, delta = found
    change = ChangeOfScale.between(overall, data.scales)
    prior = learned.prior.widen(overall.kept)
    selection = choice.selection
    (n, log_precision, _), y_scale = tasks.map_sum(count_points, 0), data.scales.y_scale
    info = {
        **{f"{name}_": value for name, value in selection.chosen._asdict().items()},
        "context_": context is not None,
        "cold_start_": choice.cold_start,
        "choice_": selection.rows(),
        "H_": change.covariance(prior.H),
        "n_iter_": learned.passes,
        **in_units_of_y(prior.s2, learned.objective + log_precision / 2, n, y_scale),
        "constant": overall.constant,
    }

    def in_given_scales(W: np.ndarray) -> np.ndarray:
        wide = np.zeros((len(W), len(overall.kept)))
        wide[:, overall.kept] = W
        return change.map(rotation.undo(wide))

    W, cold = in_given_scales(learned.prior.W), None if cold is None else in_given_scales(cold)
    context = None if context is None else change.context(context.widen(overall.kept))
    if left_open is not None:
        wide = np.zeros_like(prior.H)
        wide[np.ix_(overall.kept, overall.kept)] = left_open
        left_open = lower_root(change.covariance(wide))
    own_noise = selection.chosen.noise == "per_task"
    inner = steps.inner_of(prior, change, own_noise, context, left_open)
    noise = None if delta is None else rotation.undo(np.append(delta, 0.0)[:, None])[:, 0]
    if noise is None:
        return Learned(LinearTau(W, rotation.mean, cold), inner, info)
    logs = np.clip(rotation.apply(tasks.sample.Phi) @ delta, -LARGEST_LOG, LARGEST_LOG)
    limits = np.array([logs.min(), logs.max()])
    return Learned(LinearTau(W, rotation.mean, cold, noise, limits), inner, info)


def choose_and_fit(learner: Any, tasks: TrainedTasks, rotation: Any, overall: Any) -> LearnedMaps:
    """Choose on the sample, then fit to all tasks."""
    jobs, sample = jobs_of(learner), tasks.sample
    # With an infinite kappa no map reads side information, the pooled one neither.
    scaling = Scaling(overall, rotation, learner.kappa != np.inf)
    Z = scaling.features(sample.Phi)
    shown = HeldOutFeatures(Z, Z)
    if sample.Phi_support is not None:  # a task without points has the mean features: zero
        shown = HeldOutFeatures(scaling.features(sample.Phi_support), np.zeros_like(Z))
    d = int(overall.kept.sum())
    carried = metrics_for(d, float(tasks.map_sum(count_points, d)[2]))
    context = context_of(learner, tasks.has_history)
    follows = scaling.reads_side and 0 < sample.Phi.shape[1] <= MOST_FEATURES
    noises = noises_of(learner, tasks.has_history or not follows)
    given = learner.metric, "auto", learner.kappa, context, learner.cold_start
    options = RidgeOptions(*(
        every if value == "auto" else (value,)
        for value, every in zip(given, RidgeOptions(carried, noises), strict=True)
    ))  # fmt: skip
    whole, query = scaling.statistics(sample.whole), scaling.statistics(sample.query)
    few = tuple(scaling.statistics(part) for part in (*sample.few, sample.support))
    parts = SplitStatistics(whole, few, query)
    choice = choose(parts, Z, shown, sample.fold, options, learner.fit_intercept, jobs)
    metric, _, kappa = choice.selection.chosen
    blocks, start, inverse = tasks.blocks(scaling, jobs), choice.selection.start, None
    if len(Z) < len(tasks):  # fit ever more tasks, each time from the fit before
        start = learn_prior(whole, Z, metric, kappa, start, stopping=ROUGH, n_jobs=jobs).prior
        for some in blocks.heads():
            how = metric, kappa, start
            start = learn_from_blocks(some, *how, stopping=ROUGH, inverse=inverse).prior
            if inverse is None:
                inverse = curvature_of_sample(whole, Z, metric, kappa, start, len(tasks))

    def learn(blocks: Any, start: Any, delta: Any = None):
        stopping = Stopping(learner.tol, learner.max_iter)
        how = {"stopping": stopping, "inverse": inverse, "delta": delta}
        return learn_from_blocks(blocks, metric, kappa, start, **how)

    found = learn_maps(choice, blocks, learn, start)
    left_open = open_covariance(whole, Z.shape[1], found.learned.prior, kappa, len(tasks))
    return found._replace(open=left_open)


def gaussian_of(
    prior: Prior, change: ChangeOfScale, own_noise: bool, context: Any, left_open: Any
) -> Gaussian:
    """Return the inner algorithm of a prior that was learned in other scales."""
    factor = lower_root(change.covariance(prior.H))
    return Gaussian(factor, prior.s2, own_noise, context, left_open)


class RidgeSteps(NamedTuple):
    """The steps of `learn_ridge` in which learners differ."""

    learn_prior: Callable[..., LearnedMaps] = choose_and_fit
    learn_some: Callable[..., Learned] = learn_some_columns  # only some columns differ by task
    inner_of: Callable[..., Any] = gaussian_of


def curvature_of_sample(
    stats: SquaredState, Z: np.ndarray, metric: str, kappa: float, prior: Prior, n_tasks: int
) -> np.ndarray | None:
    """Return `inverse_curvature` from the sample, or None where it would cost too much.

    The penalty on the map has the weight that it has beside all tasks.
    """
    model = RidgeModel(OneBlock.of(stats, Z), kappa * len(Z) / n_tasks)
    if model.frame(model.adopt(prior, metric), metric).size * len(Z) > CURVATURE_PASSES * n_tasks:
        return None
    return inverse_curvature(model, prior, metric)


def collect_more(
    learner: Any, before: Fitted | None, X: Matrix, y: Values, task: Ids, side_info: SideInfo,
    weight: Any,
) -> Fitted:  # fmt: skip
    """Return the value with the statistics of further tasks; tau is None until it is needed."""
    refuse_base(learner)
    if before is not None and "nu_" in before.info:
        before = learner.fitted_  # it weighs the rows of further tasks
    if before is None:
        check_learner(learner)
        refuse_weighing(learner)
        given = read_training(learner, X, y, task, side_info, weight)
        given = with_transforms(learner, given, choose=False)
        start = begin(learner, given, validate=True)
        kind = learner._kind_of_statistics(start.scales)
        start, timed = with_times(learner, start, given.tasks, kind)
        warn_far_values(learner, given.tasks)
        return start._replace(state=collect(start, given.tasks, given.points, kind, timed))
    if before.state is None:
        raise DataError(
            "This model was saved without the statistics that partial_fit needs. Save it with "
            "tasks=True and resume=True, or fit it again with all tasks."
        )
    task = free_id(learner, before.state.ids, X, task)
    tasks, points = read_tasks(learner, before, X, y, task, side_info, weight)
    require_history(learner, before, "partial_fit")
    known = "Use update to add points to tasks that are known."
    before.state.refuse_known(tasks.ids, known)
    tasks = before.past_shared_model(weighed(before, tasks, points, jobs_of(learner)))
    refuse_far(before, tasks)
    more = collect(before, tasks, points, type(before.state), before.keeps_history)
    return before._replace(state=before.state.join(more), tau=None)
