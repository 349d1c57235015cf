"""Do heavy tails pay? Normal and Student's noise on held-out tasks, with the settings of a fit."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from condmeta.fitted.fitted import Fitted
from condmeta.inner.posterior import Gaussian
from condmeta.inner.scores import row_scores
from condmeta.inner.squared import SquaredState
from condmeta.inner.student import StudentGaussian, bound_terms
from condmeta.learners.inputs import Inputs
from condmeta.learners.parameters import jobs_of
from condmeta.learners.transform_trial import LOSSES
from condmeta.learners.transforms import FEWEST_TASKS
from condmeta.meta.prior import SMALLEST, LearnedPrior, Prior
from condmeta.meta.ridge import learn_prior
from condmeta.meta.ridge_choice import LOG_DENSITY_TIE, MARGIN_ERRORS
from condmeta.meta.ridge_judge import (
    ROUGH,
    HeldOutFeatures,
    Judge,
    RidgeSetting,
    SplitStatistics,
)
from condmeta.meta.rotation import Rotation
from condmeta.meta.task_statistics import FEW
from condmeta.tasks.numbers import power_of_two
from condmeta.tasks.points import Points
from condmeta.tasks.splits import (
    first_points,
    fold_numbers,
    half_of,
    in_content_order,
    tasks_by_content,
)
from condmeta.tasks.weights import repeats, row_sizes, task_sums

MOST_TASKS, MOST_POINTS = 250, 50  # tasks, and points of each, that noises are compared on
DEGREES = 5.0, 3.0, 10.0  # nu, beside infinity; the first one says whether tails are heavy
HEAVY = 3.5  # kurtosis of residuals, 3 if they are normal, above which tails may be heavy
ROUNDS = 8  # of weighing rows and fitting the prior, at most
SETTLED = 0.02  # relative change of s2 at which they end
CLOSE = 0.01  # change of the weights of rows at which they are close to their fixed point


class Weighed(NamedTuple):
    """Rows weighed for nu degrees of freedom, their prior, and a bound of log p(y) from below."""

    nu: float
    rows: Points
    prior: Prior
    bound: float


class NoiseTrial:
    """A sample of the tasks of a fit with normal noise: their rows in the learner's units."""

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

    # Priors and weights of all rows.

    def _fit(self, rows: Points, start: Prior | None = None) -> LearnedPrior:
        metric, _, kappa = self.setting
        how = {"stopping": ROUGH, "n_jobs": self.n_jobs}
        return learn_prior(SquaredState.of(*rows), self.Phi, metric, kappa, start, **how)

    def _bound(self, objective: float, sizes: np.ndarray) -> float:
        return objective + float((self.repeat * np.log(sizes)).sum()) / 2

    @cached_property
    def normal(self) -> Weighed:
        """The rows as they are, with normal noise."""
        found = self._fit(self.rows)
        return Weighed(np.inf, self.rows, found.prior, self._bound(found.objective, self.sizes))

    def weigh(self, nu: float, prior: Prior) -> Weighed:
        """Weigh rows and fit the prior in turn."""
        found = None
        for _ in range(ROUNDS):
            inner = StudentGaussian(prior.L, prior.s2, nu)
            rows = inner.weighed(prior.theta(self.Phi), self.rows, None, self.n_jobs, CLOSE)
            before, found = prior.s2, self._fit(rows, None if found is None else found.prior)
            prior = found.prior
            if abs(prior.s2 - before) <= SETTLED * before:
                break
        sizes = rows.weight[:, 1]
        terms = self.repeat * bound_terms(sizes / self.sizes, nu)
        bound = self._bound(found.objective, sizes) + float(terms.sum())
        return Weighed(nu, rows, prior, bound)

    @cached_property
    def heavy(self) -> Weighed:
        """The rows weighed for the first of the degrees of freedom."""
        return self.weigh(DEGREES[0], self.normal.prior)

    def likeliest(self) -> Weighed:
        """Return the rows weighed for the nu that makes labels most likely."""
        others = [self.weigh(nu, self.heavy.prior) for nu in DEGREES[1:]]
        return max([self.normal, self.heavy, *others], key=lambda each: each.bound)

    # What noise="robust" asks.

    def chosen(self) -> Weighed | None:
        """Return rows weighed for heavy tails, or None if normal noise is as good."""
        if self.kurtosis() <= HEAVY or self.heavy.bound <= self.normal.bound + LOG_DENSITY_TIE:
            return None
        return self.likeliest() if self.pays() else None

    def kurtosis(self) -> float:
        """Return the fourth moment of residuals by the square of the second."""
        _, rows, prior, _ = self.normal
        theta, inner = prior.theta(self.Phi), Gaussian(prior.L, prior.s2, False)
        mean = inner.posterior(SquaredState.of(*rows), theta, self.n_jobs).mean
        codes = np.repeat(np.arange(len(theta)), rows.sizes)
        squares = (rows.y - row_scores(rows.X, mean, codes, self.n_jobs)) ** 2 * self.sizes
        return float((squares**2).mean() / squares.mean() ** 2)

    def pays(self) -> bool:
        """Return whether labels of held-out tasks are clearly likelier, and errors not larger.

        The weights of the rows that priors are learned from stem from all tasks; those of the rows
        that a held-out task shows do not.
        """
        both = self.normal, self.heavy
        judges = [self._judge(each) for each in both]
        totals, gain, smaller = np.zeros((2, len(FEW) + 2)), np.empty(0), False
        for number in range(len(judges[0].folds)):
            (normal, logs), (heavy, likelier) = (
                self._judged(judge, number, each.nu)
                for each, judge in zip(both, judges, strict=True)
            )
            totals += normal.sum(axis=1), heavy.sum(axis=1)
            gain = np.append(gain, likelier - logs)
            smaller = np.mean(totals[1] / np.maximum(totals[0], SMALLEST)) < 1
            if gain.sum() < 0 or (len(gain) >= FEWEST_TASKS and not smaller):
                return False
        least = max(LOG_DENSITY_TIE, MARGIN_ERRORS * np.sqrt(len(gain)) * gain.std())
        return bool(smaller and gain.sum() > least)

    @cached_property
    def _halves(self) -> tuple[list[Points], Points]:
        support, query = half_of(self.rows, True), half_of(self.rows, False)
        return [*(first_points(support, n) for n in FEW), support], query

    def _judge(self, weighed: Weighed) -> Judge:
        """Return the priors of all tasks outside each fold."""
        whole = SquaredState.of(*weighed.rows)
        parts = SplitStatistics(whole, (), SquaredState.of(*half_of(weighed.rows, False)))
        features, folds = HeldOutFeatures(self.Phi, self.Phi), fold_numbers(len(self.Phi))
        return Judge(parts, self.Phi, features, folds, True, self.n_jobs)

    def _judged(self, judge: Judge, number: int, nu: float) -> tuple[np.ndarray, np.ndarray]:
        """Return losses (views, T) of held-out tasks, and mean log densities of their labels (T,).

        Half of the points of a task are predicted from none, 1, 2, 5 and all points of its other
        half.
        """
        held, normal = judge.folds[number][1], nu == np.inf
        setting = self.setting if normal else self.setting._replace(noise="shared")
        prior, shift = judge.fitted(setting, number, self.context)
        start = SquaredState.start(len(held), len(prior.L))
        inner = Gaussian(prior.L, prior.s2, setting.noise == "per_task", shift)
        theta, (shown, query) = prior.theta(self.Phi[held]), self._halves
        views = [(judge.pooled.weights[number], start)]
        for part in shown:
            part = part.take(held)
            if not normal:
                tails = StudentGaussian.around(inner, nu)
                part = tails.weighed(theta, part, None, self.n_jobs, CLOSE)
            known = start.extend(*part)
            views.append((inner.posterior(known, theta, self.n_jobs).mean, known))
        return self._losses(query.take(held), inner, theta, views, nu)

    def _losses(
        self, rows: Points, inner: Gaussian, theta: np.ndarray, views: list[Any], nu: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return losses and log densities of rows, by coefficients and statistics of each view."""
        codes = np.repeat(np.arange(len(theta)), rows.sizes)
        repeat = 1.0 if rows.weight is None else repeats(rows.weight)
        sizes, labels = row_sizes(rows.weight, len(rows.y)), self._labels(rows.y)
        errors, density = [], np.zeros(len(theta))
        for coef, known in views:
            scores = row_scores(rows.X, coef, codes, self.n_jobs)
            lost = self.loss((self._labels(scores) - labels) / self.unit)
            errors.append(task_sums(repeat * lost, rows.offsets))
            scale = inner.spread(known, theta, rows.X, codes, sizes)
            z = (rows.y - scores) / scale
            logs = norm.logpdf(z) if nu == np.inf else student.logpdf(z, nu)
            density += task_sums(repeat * (logs - np.log(scale)), rows.offsets) / len(views)
        return np.array(errors), density

    def _labels(self, scores: np.ndarray) -> np.ndarray:
        """Return labels in the units of y."""
        return self.predictor.decide(self.predictor.scales.answer(scores.copy()))
