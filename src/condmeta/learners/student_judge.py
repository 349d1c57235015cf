"""Do heavy tails pay? Normal and Student's noise on held-out tasks, with the settings of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from condmeta.inner.posterior import Gaussian
from condmeta.inner.scores import row_scores
from condmeta.inner.squared import SquaredState
from condmeta.inner.student import StudentGaussian
from condmeta.learners.form_choice import FEWEST_HELD_OUT
from condmeta.learners.student_trial import CLOSE, NoiseTrial, Weighed
from condmeta.meta.prior import SMALLEST
from condmeta.meta.ridge_choice import LOG_DENSITY_TIE, MARGIN_ERRORS
from condmeta.meta.ridge_judge import HeldOutFeatures, Judge, SplitStatistics
from condmeta.meta.task_statistics import FEW
from condmeta.tasks.points import Points
from condmeta.tasks.splits import first_points, fold_numbers, half_of
from condmeta.tasks.weights import repeats, row_sizes, task_sums

HEAVY = 3.5  # kurtosis of residuals, 3 if they are normal, above which tails may be heavy


def tails_pay(trial: NoiseTrial) -> bool:
    """Return whether Student's noise is clearly better than normal noise."""
    normal = trial.normal
    if kurtosis(trial) <= HEAVY or trial.heavy.bound <= normal.bound + LOG_DENSITY_TIE:
        return False
    return NoiseJudge(trial).prefers_heavy()


def kurtosis(trial: NoiseTrial) -> float:
    """Return the fourth moment of residuals by the square of the second."""
    _, rows, prior, _ = trial.normal
    theta, inner = prior.theta(trial.Phi), Gaussian(prior.L, prior.s2, False)
    mean = inner.posterior(SquaredState.of(*rows), theta, trial.n_jobs).mean
    codes = np.repeat(np.arange(len(theta)), rows.sizes)
    squares = (rows.y - row_scores(rows.X, mean, codes, trial.n_jobs)) ** 2 * trial.sizes
    return float((squares**2).mean() / squares.mean() ** 2)


class NoiseJudge:
    """Priors without a fold of the tasks, judged on this fold.

    Half of the points of a held-out task are predicted from none, 1, 2, 5 and all points of its
    other half.
    """

    def __init__(self, trial: NoiseTrial):
        support, self.query = half_of(trial.rows, True), half_of(trial.rows, False)
        self.trial, self.shown = trial, [*(first_points(support, n) for n in FEW), support]

    def prefers_heavy(self) -> bool:
        """Return whether labels of held-out tasks are clearly likelier, and errors not larger.

        The weights of the rows that priors are learned from stem from all tasks; those of the rows
        that a held-out task shows do not.
        """
        both = self.trial.normal, self.trial.heavy
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
            if gain.sum() < 0 or (len(gain) >= FEWEST_HELD_OUT and not smaller):
                return False
        least = max(LOG_DENSITY_TIE, MARGIN_ERRORS * np.sqrt(len(gain)) * gain.std())
        return bool(smaller and gain.sum() > least)

    def _judge(self, weighed: Weighed) -> Judge:
        """Return the priors of all tasks outside each fold."""
        whole, Phi = SquaredState.of(*weighed.rows), self.trial.Phi
        parts = SplitStatistics(whole, (), SquaredState.of(*half_of(weighed.rows, False)))
        features, folds = HeldOutFeatures(Phi, Phi), fold_numbers(len(Phi))
        return Judge(parts, Phi, features, folds, True, self.trial.n_jobs)

    def _judged(self, judge: Judge, number: int, nu: float) -> tuple[np.ndarray, np.ndarray]:
        """Return losses (views, T) of held-out tasks, and mean log densities of labels (T,)."""
        trial, held, normal = self.trial, judge.folds[number][1], nu == np.inf
        setting = trial.setting if normal else trial.setting._replace(noise="shared")
        prior, shift = judge.fitted(setting, number, trial.context)
        start = SquaredState.start(len(held), len(prior.L))
        inner = Gaussian(prior.L, prior.s2, setting.noise == "per_task", shift)
        theta = prior.theta(trial.Phi[held])
        views = [(judge.pooled.weights[number], start)]
        for part in self.shown:
            part = part.take(held)
            if not normal:
                tails = StudentGaussian.around(inner, nu)
                part = tails.weighed(theta, part, None, trial.n_jobs, CLOSE)
            known = start.extend(*part)
            views.append((inner.posterior(known, theta, trial.n_jobs).mean, known))
        return self._losses(self.query.take(held), inner, theta, views, nu)

    def _losses(
        self, rows: Points, inner: Gaussian, theta: np.ndarray, views: list[Any], nu: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return losses and log densities of rows, by coefficients and statistics of each view."""
        trial, codes = self.trial, np.repeat(np.arange(len(theta)), rows.sizes)
        repeat = 1.0 if rows.weight is None else repeats(rows.weight)
        sizes, labels = row_sizes(rows.weight, len(rows.y)), self._labels(rows.y)
        errors, density = [], np.zeros(len(theta))
        for coef, known in views:
            scores = row_scores(rows.X, coef, codes, trial.n_jobs)
            lost = trial.loss((self._labels(scores) - labels) / trial.unit)
            errors.append(task_sums(repeat * lost, rows.offsets))
            scale = inner.spread(known, theta, rows.X, codes, sizes)
            z = (rows.y - scores) / scale
            logs = norm.logpdf(z) if nu == np.inf else student.logpdf(z, nu)
            density += task_sums(repeat * (logs - np.log(scale)), rows.offsets) / len(views)
        return np.array(errors), density

    def _labels(self, scores: np.ndarray) -> np.ndarray:
        """Return labels in the units of y."""
        predictor = self.trial.predictor
        return predictor.decide(predictor.scales.answer(scores.copy()))
