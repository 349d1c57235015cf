"""Choose settings and learn the prior of tasks with rows of one form: classes, counts, order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from condmeta.blas_threads import limit_threads
from condmeta.fitted.task_store import MOST_FEATURES
from condmeta.fitted.tau import LinearTau
from condmeta.inner.likelihoods import Likelihood, NegativeBinomial
from condmeta.inner.posterior import lower_root
from condmeta.inner.prior_covariance import PriorCovariance
from condmeta.learners.learn import Training
from condmeta.learners.parameters import jobs_of
from condmeta.meta import shared_rows
from condmeta.meta.ascent import Stopping
from condmeta.meta.logistic import learn_prior
from condmeta.meta.logistic_choice import ShownPoints, choose
from condmeta.meta.prior import METRICS
from condmeta.meta.prior_mixture import mix
from condmeta.meta.ridge_choice import KAPPAS
from condmeta.meta.ridge_judge import ROUGH
from condmeta.meta.rotation import Rotation
from condmeta.meta.selection import Selection
from condmeta.meta.shared_rows import ColumnParts
from condmeta.meta.unseen_map import of_features, open_prior
from condmeta.tasks.points import Points
from condmeta.tasks.splits import first_points, fold_numbers, half_of

SAMPLE = 400  # tasks that settings are chosen on
FEW = 1, 3  # points that a held-out task shows, beside none and half of them


class RowPrior(NamedTuple):
    """A learned prior: the map, L, the parameter of the likelihood, the learner's attributes.

    spread : the covariance of weights by the features of a task, if it differs between tasks.
    """

    tau: LinearTau
    factor: np.ndarray
    parameter: Any
    info: dict[str, Any]
    spread: PriorCovariance | None = None


def learn_row_prior(
    learner: Any,
    data: Training,
    likelihood: type[Likelihood],
    parameter: Any = None,
) -> RowPrior:
    """Choose on a sample of the tasks, then fit to all.

    The learner has `metric`, `kappa`, `tol` and `max_iter`. A `parameter` of the likelihood that is
    given is not learned. Settings about as good as the best are averaged, and the prior of new
    tasks counts the covariance of the map.
    """
    rotation, jobs = Rotation.learn(data.Phi), jobs_of(learner)
    kind = {"likelihood": likelihood, "parameter": parameter}
    kept, stopping = data.scales.kept, Stopping(learner.tol, learner.max_iter)
    with limit_threads(1):  # the matrices are small: threads of BLAS would only wait
        reduce = partial(Points.columns, kept=kept)
        choice = choose_settings(learner, data, rotation, reduce, **kind)
        points, Z = reduce(data.rows), rotation.apply(data.Phi)
        weights = choice.weights or {choice.chosen: 1.0}
        fit = partial(learn_prior, points, Z, stopping=stopping, n_jobs=jobs, **kind)
        fits = {
            setting: fit(*setting, choice.start if setting == choice.chosen else None)
            for setting in weights
        }
        prior = mix([learned.prior for learned in fits.values()], weights.values(), Z)
        main = max(weights, key=weights.__getitem__)
        found = settled(data, rotation, choice, fits[main], prior.widen(kept), main)
        spread = open_prior(points, Z, likelihood(prior.s2), prior, main.kappa)
        mean = np.einsum("tij,tkj->ik", *2 * spread.factors(Z)) / len(Z)
    factor = prior._replace(L=lower_root(mean)).widen(kept).L
    spread = of_features(spread, rotation).widen(kept)
    few = data.Phi.shape[1] <= MOST_FEATURES  # else the features of a task are not kept
    return found._replace(factor=factor, spread=spread if few else None)


def learn_shared_counts(
    learner: Any, data: Training, columns: Any, parameter: Any = None
) -> RowPrior:
    """Learn counts if only the coefficients of these columns differ between tasks.

    The settings are chosen around a first fit of the shared coefficients.
    """
    rotation, jobs = Rotation.learn(data.Phi), jobs_of(learner)
    kept, d = np.flatnonzero(data.scales.kept), len(data.scales.x_mean)
    own = np.intersect1d(np.append(columns, d), kept)  # d: the intercept, if there is one
    parts = ColumnParts(own, np.setdiff1d(kept, own))
    Z = rotation.apply(data.Phi)
    fit = partial(shared_rows.learn_shared_counts, data.rows, parts, Z, parameter=parameter)
    with limit_threads(1):
        kappa = 1.0 if Z.shape[1] else np.inf
        first = fit("diagonal", kappa, stopping=ROUGH, n_jobs=jobs).prior
        reduce = partial(parts.reduce, beta=first.beta)
        kind = {"likelihood": NegativeBinomial, "parameter": parameter}
        choice = choose_settings(learner, data, rotation, reduce, **kind)
        choice = choice._replace(weights={})  # shared coefficients are not averaged
        stopping = Stopping(learner.tol, learner.max_iter)
        learned = fit(*choice.chosen, first, stopping=stopping, n_jobs=jobs)
    mask = np.isin(np.arange(data.scales.width), own)
    prior = learned.prior.own.widen(mask)
    prior.W[-1, parts.shared] = learned.prior.beta
    found = settled(data, rotation, choice, learned, prior, choice.chosen)
    return found._replace(info=found.info | {"shared": ~mask})


def settled(
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


def choose_settings(
    learner: Any,
    data: Training,
    rotation: Rotation,
    reduce: Callable[[Points], Points],
    **kind: str,
) -> Selection:
    """Choose on a sample of the tasks that does not depend on ids or orders.

    `reduce` keeps what the prior reads of points.
    """
    sample, points = data.by_content(SAMPLE)
    Z = rotation.apply(data.Phi[sample])
    halves = [half_of(points, half) for half in (True, False)]

    def trial(shown: Points, query: Points, n: int | None) -> ShownPoints:
        shown, seen = shown if n is None else first_points(shown, n), Z
        if data.features is not None:  # a task without points has the mean features, which are zero
            read = n != 0
            seen = rotation.apply(data.features(sample, shown)) if read else np.zeros_like(Z)
        return ShownPoints(reduce(shown), reduce(query), seen)

    pairs = (halves, halves[::-1])
    trials = [trial(*pair, n) for n in (None, *FEW) for pair in pairs] + [trial(points, points, 0)]
    return choose(
        reduce(points), Z, trials, fold_numbers(len(sample)),
        tuple(METRICS) if learner.metric == "auto" else (learner.metric,),
        KAPPAS if learner.kappa == "auto" else (float(learner.kappa),),
        jobs_of(learner), **kind,
    )  # fmt: skip
