"""Weigh a sample of the tasks for some degrees of freedom: how likely does each make the labels?"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from condmeta.fitted.fitted import Fitted
from condmeta.inner.squared import SquaredState
from condmeta.inner.student import StudentGaussian, bound_of_weights
from condmeta.learners.form_trial import LOSSES
from condmeta.learners.inputs import Inputs
from condmeta.learners.parameters import jobs_of
from condmeta.meta.prior import LearnedPrior, Prior
from condmeta.meta.ridge import learn_prior
from condmeta.meta.ridge_judge import ROUGH, RidgeSetting
from condmeta.meta.rotation import Rotation
from condmeta.tasks.numbers import power_of_two
from condmeta.tasks.points import Points
from condmeta.tasks.splits import first_points, in_content_order, tasks_by_content
from condmeta.tasks.weights import repeats, row_sizes

MOST_TASKS, MOST_POINTS = 250, 50  # tasks, and points of each, that noises are compared on
DEGREES = 5.0, 3.0, 10.0  # nu, beside infinity; the first one says whether tails are heavy
ROUNDS = 8  # of weighing rows and fitting the prior, at most
SETTLED = 0.02  # relative change of s2 at which they end
CLOSE = 0.01  # change of the weights of rows at which they are close to their fixed point


def is_settled(s2: float, before: float) -> bool:
    """Return whether rounds of weighing rows and fitting the prior may end."""
    return abs(s2 - before) <= SETTLED * before


class Weighed(NamedTuple):
    """Rows weighed for nu degrees of freedom, their prior, and a lower bound of log p(y)."""

    nu: float
    rows: Points
    prior: Prior
    bound: float


class NoiseTrial:
    """A sample of the tasks of a fit with normal noise: their rows in the learner's units.

    Priors have the settings of that fit.
    """

    def __init__(self, learner: Any, given: Inputs, first: Fitted):
        every = given.tasks.subset(np.flatnonzero(given.tasks.sizes > 0))
        tasks = every.subset(tasks_by_content(every)[:MOST_TASKS])
        data, info = first.prepare(tasks, None), first.info
        rows = first_points(in_content_order(data.points, tasks), MOST_POINTS)
        varies = np.ones(first.scales.width, bool)
        varies[: len(info["constant"])] = ~info["constant"]
        self.rows, self.Phi = rows.columns(varies), Rotation.learn(data.Phi).apply(data.Phi)
        self.predictor, self.n_jobs = first.predictor, jobs_of(learner)
        self.loss, self.unit = LOSSES[learner.criterion], power_of_two(np.abs(tasks.y).max())
        self.setting = RidgeSetting(info["metric_"], info["noise_"], info["kappa_"])
        self.context = info["context_"]
        self.repeat = 1.0 if rows.weight is None else repeats(rows.weight)
        self.sizes = row_sizes(rows.weight, len(rows.y))

    @cached_property
    def normal(self) -> Weighed:
        """The rows as they are, with normal noise."""
        found = self._fit(self.rows)
        return Weighed(np.inf, self.rows, found.prior, self._bound(found.objective, self.sizes))

    @cached_property
    def heavy(self) -> Weighed:
        """The rows weighed for the first of the degrees of freedom."""
        return self._weigh(DEGREES[0], self.normal.prior)

    def likeliest(self) -> Weighed:
        """Return the rows weighed for the nu that makes labels most likely."""
        others = [self._weigh(nu, self.heavy.prior) for nu in DEGREES[1:]]
        return max([self.normal, self.heavy, *others], key=lambda each: each.bound)

    def _weigh(self, nu: float, prior: Prior) -> Weighed:
        """Weigh rows and fit the prior in turn."""
        found = None
        for _ in range(ROUNDS):
            inner = StudentGaussian(prior.L, prior.s2, nu)
            rows = inner.weighed(prior.theta(self.Phi), self.rows, None, self.n_jobs, CLOSE)
            before, found = prior.s2, self._fit(rows, None if found is None else found.prior)
            prior = found.prior
            if is_settled(prior.s2, before):
                break
        bound = self._bound(found.objective, rows.weight[:, 1])
        return Weighed(nu, rows, prior, bound + bound_of_weights(rows, self.rows.weight, nu))

    def _fit(self, rows: Points, start: Prior | None = None) -> LearnedPrior:
        metric, _, kappa = self.setting
        how = {"stopping": ROUGH, "n_jobs": self.n_jobs}
        return learn_prior(SquaredState.of(*rows), self.Phi, metric, kappa, start, **how)

    def _bound(self, objective: float, sizes: np.ndarray) -> float:
        return objective + float((self.repeat * np.log(sizes)).sum()) / 2
