"""Choose settings and learn the prior of tasks with rows of one form: classes, counts, order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from condmeta.blas_threads import limit_threads
from condmeta.fitted.tau import LinearTau
from condmeta.inner.likelihoods import Likelihood, NegativeBinomial
from condmeta.inner.posterior import lower_root
from condmeta.learners.learn import Training
from condmeta.learners.parameters import jobs_of
from condmeta.meta import shared_rows
from condmeta.meta.ascent import Stopping
from condmeta.meta.logistic import learn_prior
from condmeta.meta.logistic_choice import SplitPoints, choose
from condmeta.meta.prior import METRICS
from condmeta.meta.ridge_choice import KAPPAS
from condmeta.meta.ridge_judge import ROUGH
from condmeta.meta.rotation import Rotation
from condmeta.meta.selection import Selection
from condmeta.meta.shared_rows import ColumnParts
from condmeta.tasks.points import Points
from condmeta.tasks.splits import fold_numbers, half_of

SAMPLE = 400  # tasks that settings are chosen on


class RowPrior(NamedTuple):
    """A learned prior: the map, L, the parameter of the likelihood, the learner's attributes."""

    tau: LinearTau
    factor: np.ndarray
    parameter: Any
    info: dict[str, Any]


def learn_row_prior(
    learner, data: Training, likelihood: type[Likelihood], parameter=None, alone=False
) -> RowPrior:
    """Choose on a sample of the tasks, then fit to all.

    The learner has `metric`, `kappa`, `tol` and `max_iter`. A `parameter` of the likelihood that is
    given is not learned. `alone`: held-out tasks judge a setting without their points as well.
    """
    rotation, jobs = Rotation.learn(data.Phi), jobs_of(learner)
    kind = {"likelihood": likelihood, "parameter": parameter}
    kept = data.scales.kept
    with limit_threads(1):  # the matrices are small: threads of BLAS would only wait
        reduce = partial(Points.columns, kept=kept)
        choice = choose_settings(learner, data, rotation, reduce, alone=alone, **kind)
        learned = learn_prior(
            reduce(data.rows), rotation.apply(data.Phi), *choice.chosen, choice.start,
            stopping=Stopping(learner.tol, learner.max_iter), n_jobs=jobs, **kind,
        )  # fmt: skip
    return settled(data, rotation, choice, learned, learned.prior.widen(kept))


def learn_shared_counts(learner, data: Training, columns, parameter=None) -> RowPrior:
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
        choice = choose_settings(learner, data, rotation, reduce, alone=True, **kind)
        stopping = Stopping(learner.tol, learner.max_iter)
        learned = fit(*choice.chosen, first, stopping=stopping, n_jobs=jobs)
    mask = np.isin(np.arange(data.scales.width), own)
    prior = learned.prior.own.widen(mask)
    prior.W[-1, parts.shared] = learned.prior.beta
    found = settled(data, rotation, choice, learned, prior)
    return found._replace(info=found.info | {"shared": ~mask})


def settled(data: Training, rotation: Rotation, choice: Selection, learned, prior) -> RowPrior:
    """Return what was learned, from a prior of all columns."""
    metric, kappa = choice.chosen
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
    learner, data: Training, rotation: Rotation, reduce: Callable[[Points], Points], alone, **kind
) -> Selection:
    """Choose on a sample of the tasks that does not depend on ids or orders.

    `reduce` keeps what the prior reads of points.
    """
    sample, points = data.by_content(SAMPLE)
    support, query = (half_of(points, half) for half in (True, False))
    Z = rotation.apply(data.Phi[sample])
    shown, without = Z, Z
    if data.features is not None:  # a task without points has the mean features, which are zero
        shown, without = rotation.apply(data.features(sample, support)), np.zeros_like(Z)
    return choose(
        SplitPoints(*map(reduce, (points, support, query))), Z, shown, fold_numbers(len(sample)),
        tuple(METRICS) if learner.metric == "auto" else (learner.metric,),
        KAPPAS if learner.kappa == "auto" else (float(learner.kappa),),
        jobs_of(learner), alone=without if alone else None, **kind,
    )  # fmt: skip
