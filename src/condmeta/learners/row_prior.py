"""Choose settings and learn the prior of tasks with rows of one form: classes, counts, order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from condmeta.fitted.tau import LinearTau
from condmeta.inner.likelihoods import Likelihood
from condmeta.inner.posterior import lower_root
from condmeta.learners.learn import Training
from condmeta.learners.parameters import jobs_of
from condmeta.meta.ascent import Stopping
from condmeta.meta.logistic import learn_prior
from condmeta.meta.logistic_choice import SplitPoints, choose
from condmeta.meta.prior import METRICS
from condmeta.meta.ridge_choice import KAPPAS
from condmeta.meta.rotation import Rotation
from condmeta.meta.selection import Selection
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
    with threadpool_limits(1):  # the matrices are small: threads of BLAS would only wait
        choice = _choose(learner, data, rotation, jobs, kind | {"alone": alone})
        kept = data.scales.kept
        learned = learn_prior(
            data.rows.columns(kept), rotation.apply(data.Phi), *choice.chosen, choice.start,
            stopping=Stopping(learner.tol, learner.max_iter), n_jobs=jobs, **kind,
        )  # fmt: skip
    metric, kappa = choice.chosen
    prior = learned.prior.widen(kept)
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


def _choose(learner, data: Training, rotation: Rotation, jobs: int, how: dict) -> Selection:
    """Choose on a sample of the tasks that does not depend on ids or orders."""
    sample, points = data.by_content(SAMPLE)
    support, query = (half_of(points, half) for half in (True, False))
    Z = rotation.apply(data.Phi[sample])
    shown, without = Z, Z
    if data.features is not None:  # a task without points has the mean features, which are zero
        shown, without = rotation.apply(data.features(sample, support)), np.zeros_like(Z)
    parts = points, support, query
    how["alone"] = without if how["alone"] else None
    return choose(
        SplitPoints(*(part.columns(data.scales.kept) for part in parts)), Z, shown,
        fold_numbers(len(sample)),
        tuple(METRICS) if learner.metric == "auto" else (learner.metric,),
        KAPPAS if learner.kappa == "auto" else (float(learner.kappa),),
        jobs, **how,
    )  # fmt: skip
