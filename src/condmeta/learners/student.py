"""`ConditionalRidge` with heavy tails: `noise="student"`, or "robust" where they pay.

Given the weights of rows (`inner.student`) the prior is that of normal noise with precisions, so
that a fit is a few fits to weighed rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.weighing import STUDENT, with_tails
from condmeta.inner.posterior import Gaussian
from condmeta.inner.student import StudentGaussian, bound_of_weights
from condmeta.learners.copies import altered
from condmeta.learners.form_choice import can_judge
from condmeta.learners.inputs import Inputs
from condmeta.learners.parameters import jobs_of
from condmeta.learners.student_judge import tails_pay
from condmeta.learners.student_trial import NoiseTrial, is_settled
from condmeta.meta.ridge_judge import BY_SIDE

ROUNDS = 5  # of weighing all rows and fitting the prior, at most
CLOSE = 1e-3  # change of the weights of rows at which they are close to their fixed point
Learn = Callable[[Any, Inputs], Fitted]


def learn_noise(learner: Any, given: Inputs, learn: Learn) -> Fitted:
    """Return what is learned with Student's noise, or with normal noise where it is as good.

    `learn(learner, given)` learns with normal noise. If nu = infinity is the likeliest of all nu,
    Student's noise is normal noise.
    """
    named = learner.noise == STUDENT
    first = learn(altered(learner, noise="shared" if named else "auto"), given)
    can_weigh = type(first.inner) is Gaussian and not first.reader.reads_points
    if named and not can_weigh:
        raise DataError(
            "noise='student' works with up to 64 columns, without drift and without a feature "
            "map of points: use noise='shared' or 'per_task' instead."
        )
    simple = can_weigh and given.form.base is None and first.info["noise_"] != BY_SIDE
    if not named and not (simple and can_judge(learner, given)):
        return first
    trial = NoiseTrial(learner, given, first)
    if not named and not tails_pay(trial):
        return first
    weighed = trial.likeliest()
    if weighed.nu == np.inf:
        return with_tails(first, np.inf)
    start = first.inner.s2 * weighed.prior.s2 / trial.normal.prior.s2
    return _learn_weighed(learner, given, first, start, weighed.nu, learn)


def _learn_weighed(
    learner: Any, given: Inputs, fitted: Fitted, s2: float, nu: float, learn: Learn
) -> Fitted:
    """Return a fit to rows that are weighed by the posteriors of their tasks.

    Rounds of weighing and fitting keep the settings of the fit with normal noise, and start with
    the squared scale s2; at the end the settings are chosen again.
    """
    names = "metric", "kappa", "context", "cold_start"
    chosen = {name: fitted.info[f"{name}_"] for name in names}
    learner = altered(learner, noise="shared")
    fixed, tasks = altered(learner, keep_tasks=False, **chosen), given.tasks
    for _ in range(ROUNDS):
        normal, data = fitted.inner, fitted.prepare(tasks, given.points)
        inner = StudentGaussian(normal.factor, s2, nu, normal.context)
        rows = inner.weighed(fitted.tau.theta(data.Phi), data.points, None, jobs_of(learner), CLOSE)
        weighed = given._replace(tasks=tasks.with_weight(rows.weight))
        fitted = learn(fixed, weighed)
        before, s2 = s2, fitted.inner.s2
        if is_settled(s2, before):
            break
    fitted = learn(learner, weighed)
    bound = fitted.info["objective_"] + bound_of_weights(rows, tasks.weight, nu)
    return with_tails(fitted._replace(info=fitted.info | {"objective_": bound}), nu)
