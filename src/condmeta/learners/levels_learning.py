"""How `ConditionalLevels` learns: as `ConditionalRidge` does, then the covariance of each level."""

from __future__ import annotations

from typing import Any

import numpy as np

from condmeta.blas_threads import limit_threads
from condmeta.errors import NoGroupsWarning
from condmeta.fitted.change_of_scale import ChangeOfScale
from condmeta.fitted.groups import group_codes, require_parts
from condmeta.fitted.scales import Scales
from condmeta.inner.nested import NestedGaussian
from condmeta.inner.posterior import Gaussian, lower_root
from condmeta.inner.tree import Tree
from condmeta.learners.parameters import jobs_of
from condmeta.learners.ridge_learning import RidgeSteps, choose_and_fit, gaussian_of
from condmeta.learners.shared_columns import SomeColumns
from condmeta.learners.training import Learned, Training
from condmeta.meta.ascent import Stopping
from condmeta.meta.cold_start import LearnedMaps
from condmeta.meta.levels import NONE, LevelsPrior, learn_levels
from condmeta.meta.levels_choice import LevelsSetting, choose_levels
from condmeta.meta.prior import carried_metrics
from condmeta.meta.task_statistics import scaled_statistics
from condmeta.tasks.messages import show_id
from condmeta.typing import Ids
from condmeta.warn import warn


def choose_and_fit_levels(learner: Any, tasks: Any, rotation: Any, overall: Scales) -> LearnedMaps:
    """Choose as without levels, then the form of each level; fit to all tasks."""
    state, order, Phi = tasks.state, tasks.order, tasks.Phi
    require_parts(state.ids.tolist())
    ids = state.ids[order]
    flat = choose_and_fit(learner, tasks, rotation, overall)
    setting = LevelsSetting(*flat.choice.selection.chosen, ())
    if not isinstance(ids[0], tuple):
        if len(ids) > 1:
            warn_no_groups(ids[0])
        return flat.with_setting(setting)
    whole = scaled_statistics(state.whole, overall, order).columns(overall.kept)
    Z, jobs, groups = rotation.apply(Phi[order]), jobs_of(learner), group_codes(ids.tolist())
    metrics = (NONE, *carried_metrics(whole.moment.shape[1], whole.count))
    metrics = metrics if learner.metric == "auto" else (learner.metric,)
    found = choose_levels(whole, Z, groups, metrics, setting, flat.learned.prior, jobs)
    flat = flat.with_setting(setting._replace(levels=found.metrics))
    if set(found.metrics) == {NONE}:
        return flat
    learned = learn_levels(
        whole, Z, Tree.of(groups), (*found.metrics, setting.metric), setting.kappa, found.start,
        stopping=Stopping(learner.tol, learner.max_iter), n_jobs=jobs,
    )  # fmt: skip
    return flat._replace(learned=learned)


def learn_some_columns_of_levels(learner: Any, data: Training, columns: np.ndarray) -> Learned:
    """Learn if only these columns have coefficients that differ, from the fit without levels.

    The settings and the first covariances are those of the labels less the shared part.
    """
    found = SomeColumns.learn(learner, data, columns)
    setting = LevelsSetting(*(found.choice.info[f"{name}_"] for name in LevelsSetting._fields))
    if not isinstance(found.choice.inner, NestedGaussian):
        return found.without_levels(data)
    parts, first, width = found.parts, found.learned.prior, found.overall.width
    used = np.sort(np.append(parts.shared, parts.own))  # without constant columns
    own, kept = np.isin(used, parts.own), np.isin(np.arange(width), used)
    near = found.choice.inner
    factors = np.zeros((len(near.factors), len(used), len(used)))
    factors[np.ix_(range(len(factors)), own, own)] = near.factors
    W = np.zeros((len(first.W), len(used)))
    W[:, own], W[-1, ~own] = first.W, found.beta
    groups = group_codes(data.statistics.ids[found.order].tolist())
    with limit_threads(1):
        prior, *rest = learn_levels(
            parts.stats.columns(kept), found.Z, Tree.of(groups), (*setting.levels, setting.metric),
            setting.kappa, LevelsPrior(W, factors, near.s2), own=own,
            stopping=Stopping(learner.tol, learner.max_iter), n_jobs=jobs_of(learner),
        )  # fmt: skip
    prior = prior.widen(kept)
    tau, info = found.tau_and_info(data, prior.W, prior.H, prior.s2, *rest)
    change = ChangeOfScale.between(found.overall, data.scales)
    return Learned(tau, nested_of(prior, change, setting.noise == "per_task"), info)


def nested_of(
    prior: Any, change: ChangeOfScale, own_noise: bool, context: Any = None, left_open: Any = None
) -> NestedGaussian | Gaussian:
    """Return the inner algorithm of a prior that was learned in other scales."""
    if not isinstance(prior, LevelsPrior):
        return gaussian_of(prior, change, own_noise, context, left_open)
    factors = [lower_root(change.covariance(L @ L.T)) for L in prior.factors]
    return NestedGaussian(np.array(factors), prior.s2, own_noise)


STEPS = RidgeSteps(choose_and_fit_levels, learn_some_columns_of_levels, nested_of)


def warn_no_groups(task: Ids) -> None:
    """Say that task ids name no groups."""
    warn(
        f"The task ids have one part, such as {show_id(task)}, so no task is in a group and the "
        "model is the same as ConditionalRidge. Give the columns of all levels, the largest "
        "group first: task=['region', 'store'].",
        NoGroupsWarning,
    )
