"""Choose settings and learn the prior of tasks with rows of one form: classes, counts, order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from condmeta.blas_threads import limit_threads
from condmeta.fitted.task_store import MOST_FEATURES
from condmeta.fitted.tau import LinearTau
from condmeta.inner.likelihoods import Likelihood
from condmeta.inner.posterior import lower_root
from condmeta.inner.prior_covariance import PriorCovariance
from condmeta.learners.parameters import jobs_of
from condmeta.learners.shared_columns import differing_columns, divide_columns
from condmeta.learners.training import Training
from condmeta.meta.ascent import Stopping
from condmeta.meta.logistic import learn_prior
from condmeta.meta.logistic_choice import COLD_STARTS, choose, choose_cold_start
from condmeta.meta.pooled_rows import pooled_priors
from condmeta.meta.prior import METRICS, Prior
from condmeta.meta.prior_mixture import mix
from condmeta.meta.ridge_choice import KAPPAS
from condmeta.meta.rotation import Rotation
from condmeta.meta.row_judge import ROUGH, SAMPLE, RowJudge, held_out_views
from condmeta.meta.selection import Selection
from condmeta.meta.shared_rows import ColumnParts, learn_shared_rows
from condmeta.meta.unseen_map import of_features, open_prior
from condmeta.tasks.points import Points
from condmeta.tasks.splits import fold_numbers


class RowPrior(NamedTuple):
    """A learned prior: the map, L, the parameter of the likelihood, the learner's attributes.

    spread : the covariance of weights by the features of a task, if it differs between tasks;
    cold_spread : the same for tasks without points, if they are predicted by a pooled model.
    """

    tau: LinearTau
    factor: np.ndarray
    parameter: Any
    info: dict[str, Any]
    spread: PriorCovariance | None = None
    cold_spread: PriorCovariance | None = None


def learn_row_prior(
    learner: Any,
    data: Training,
    likelihood: type[Likelihood],
    parameter: Any = None,
) -> RowPrior:
    """Choose on a sample of the tasks, then fit to all.

    The learner has `random`, `metric`, `kappa`, `tol` and `max_iter`. A `parameter` of the
    likelihood that is given is not learned.
    """
    kind = {"likelihood": likelihood, "parameter": parameter}
    names = data.scales.names(data.tasks.feature_names)
    columns = differing_columns(learner.random, names, learner.fit_intercept)
    if columns is None or len(columns) == len(names):
        return _learn_all_columns(learner, data, kind)
    return _learn_some_columns(learner, data, kind, columns)


def _learn_all_columns(learner: Any, data: Training, kind: dict[str, Any]) -> RowPrior:
    """Learn the prior if all coefficients may differ between tasks.

    Settings about as good as the best are averaged, and the prior of new tasks counts the
    covariance of the map.
    """
    rotation, jobs = Rotation.learn(data.Phi), jobs_of(learner)
    kept, stopping = data.scales.kept, Stopping(learner.tol, learner.max_iter)
    with limit_threads(1):  # the matrices are small: threads of BLAS would only wait
        reduce = partial(Points.columns, kept=kept)
        judge = judge_of(learner, data, rotation, reduce, **kind)
        choice = choose_settings(learner, judge)
        points, Z = reduce(data.rows), rotation.apply(data.Phi)
        weights = choice.weights or {choice.chosen: 1.0}
        fit = partial(learn_prior, points, Z, stopping=stopping, n_jobs=jobs, **kind)
        fits = {
            setting: fit(*setting, choice.start if setting == choice.chosen else None)
            for setting in weights
        }
        prior = mix([learned.prior for learned in fits.values()], weights.values(), Z)
        main = max(weights, key=weights.__getitem__)
        found = _row_prior(data, rotation, choice, fits[main], prior.widen(kept), main)
        law = kind["likelihood"](prior.s2)
        found = _with_open_map(found, rotation, kept, points, Z, law, prior, main.kappa)
        ridge = None if found.spread is None else _pooled_ridge(learner, judge, main)
        if ridge is None:
            return found
        ((_, cold),) = pooled_priors(points, Z, (ridge,), prior.s2, stopping, jobs)
        spread = open_prior(points, Z, law, cold, ridge)
    return found._replace(
        tau=found.tau._replace(cold=rotation.undo(cold.widen(kept).W)),
        cold_spread=of_features(spread, rotation).widen(kept),
    )


def _with_open_map(
    found: RowPrior, rotation: Rotation, kept: np.ndarray, points: Points, Z: np.ndarray,
    law: Likelihood, prior: Prior, kappa: float,
) -> RowPrior:  # fmt: skip
    """Return the prior with the covariance of the map, from a prior of the kept columns."""
    spread = open_prior(points, Z, law, prior, kappa)
    mean = np.einsum("tij,tkj->ik", *2 * (spread.factors(Z),)) / len(Z)
    found = found._replace(factor=prior._replace(L=lower_root(mean)).widen(kept).L)
    if len(rotation.mean) > MOST_FEATURES:  # the features of a task are not kept
        return found
    return found._replace(spread=of_features(spread, rotation).widen(kept))


def _pooled_ridge(learner: Any, judge: RowJudge, setting: Any) -> float | None:
    """Return the ridge of the pooled model for tasks without points; None: they have the prior."""
    cold_start = getattr(learner, "cold_start", "prior")
    if cold_start == "prior" or not learner.fit_intercept:
        return None
    names = COLD_STARTS if cold_start == "auto" else (cold_start,)
    return choose_cold_start(judge, setting, names, learner.kappa != np.inf)


def _learn_some_columns(
    learner: Any, data: Training, kind: dict[str, Any], columns: np.ndarray
) -> RowPrior:
    """Learn the prior if only the coefficients of these columns differ between tasks.

    The settings are chosen around a first fit of the shared coefficients.
    """
    rotation, jobs = Rotation.learn(data.Phi), jobs_of(learner)
    parts = ColumnParts(*divide_columns(columns, data.scales))
    Z = rotation.apply(data.Phi)
    fit = partial(learn_shared_rows, data.rows, parts, Z, n_jobs=jobs, **kind)
    with limit_threads(1):
        kappa = 1.0 if Z.shape[1] else np.inf
        first = fit("diagonal", kappa, stopping=ROUGH).prior
        reduce = partial(parts.reduce, beta=first.beta)
        judge = judge_of(learner, data, rotation, reduce, **kind)
        choice = choose_settings(learner, judge)
        choice = choice._replace(weights={})  # shared coefficients are not averaged
        stopping = Stopping(learner.tol, learner.max_iter)
        learned = fit(*choice.chosen, first, stopping=stopping)
        own, beta = learned.prior.own, learned.prior.beta
        kept = np.isin(np.arange(data.scales.width), parts.own)
        prior = own.widen(kept)
        prior.W[-1, parts.shared] = beta
        found = _row_prior(data, rotation, choice, learned, prior, choice.chosen)
        found = found._replace(info=found.info | {"shared": ~kept})
        law, points = kind["likelihood"](own.s2), parts.reduce(data.rows, beta)
        return _with_open_map(found, rotation, kept, points, Z, law, own, choice.chosen.kappa)


def _row_prior(
    data: Training, rotation: Rotation, choice: Selection, learned: Any, prior: Any, setting: Any
) -> RowPrior:
    """Return what was learned with a setting, from a prior of all columns."""
    metric, kappa = setting
    H = prior.H
    info = {
        "metric_": metric,
        "kappa_": kappa,
        "choice_": choice.rows(),
        "H_": H,
        "n_iter_": learned.passes,
        "objective_": learned.objective,
        "constant": data.scales.constant,
    }
    tau = LinearTau(rotation.undo(prior.W), data.Phi.mean(axis=0))
    return RowPrior(tau, lower_root(H), prior.s2, info)


def judge_of(
    learner: Any,
    data: Training,
    rotation: Rotation,
    reduce: Callable[[Points], Points],
    **kind: Any,
) -> RowJudge:
    """Return tasks to hold out: a sample that does not depend on ids or orders.

    `reduce` keeps what the prior reads of points.
    """
    sample, points = data.by_content(SAMPLE)
    Z = rotation.apply(data.Phi[sample])

    def read(shown: Points, n: int | None) -> np.ndarray:
        if data.features is None:
            return Z
        if n == 0:  # a task without points has the mean features, which are zero
            return np.zeros_like(Z)
        return rotation.apply(data.features(sample, shown))

    views, fold = held_out_views(points, read, reduce), fold_numbers(len(sample))
    return RowJudge(reduce(points), Z, views, fold, jobs_of(learner), **kind)


def choose_settings(learner: Any, judge: RowJudge) -> Selection:
    """Choose metric and kappa, if they are not given."""
    metrics = tuple(METRICS) if learner.metric == "auto" else (learner.metric,)
    kappas = KAPPAS if learner.kappa == "auto" else (float(learner.kappa),)
    return choose(judge, metrics, kappas)
