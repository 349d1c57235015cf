"""Errors and densities of priors on held-out tasks (see `meta.ridge_choice`)."""

from collections import defaultdict
from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import NamedTuple, Self

import numpy as np

from condmeta.inner.context import Context
from condmeta.inner.posterior import Gaussian, posterior_of_statistics
from condmeta.inner.squared import SquaredState
from condmeta.meta.ascent import Stopping
from condmeta.meta.blocks import OneBlock
from condmeta.meta.context import learn_context, without_context
from condmeta.meta.pooled_map import PooledForm, held_out_maps
from condmeta.meta.prior import SMALLEST, LearnedPrior, Prior, maximise
from condmeta.meta.ridge import RidgeModel, learn_from_blocks, totals_of
from condmeta.meta.selection import task_rounds
from condmeta.meta.setting_path import path
from condmeta.meta.side_noise import fisher_steps, may_follow, noise_factors

ROUGH = Stopping(tol=0.3, max_evaluations=60)  # of fits that are only compared


BY_SIDE = "by_side"  # the noise that follows side information


class RidgeSetting(NamedTuple):
    """The settings of a prior."""

    metric: str
    noise: str
    kappa: float


class SplitStatistics(NamedTuple):
    """Statistics of tasks: of all their points, of some that are shown, and of those that judge.

    shown: at rising numbers of points, none of which judges.
    """

    whole: SquaredState
    shown: tuple[SquaredState, ...]
    query: SquaredState

    def take(self, at) -> Self:
        """Return the tasks at positions `at`."""
        shown = tuple(part.take(at) for part in self.shown)
        return type(self)(self.whole.take(at), shown, self.query.take(at))


class HeldOutFeatures(NamedTuple):
    """Features (T, k) of held-out tasks: with points, and without any."""

    with_support: np.ndarray
    without: np.ndarray


class PooledFolds(NamedTuple):
    """The best form of the pooled map, and for each fold the coefficients of held-out tasks."""

    form: PooledForm
    weights: list[np.ndarray]


class Judge:
    """Held-out tasks, fold by fold, and the priors that were fitted without them.

    fold (T,) int: the round in which a task is held out. Phi (T, k). intercept: rows end with a
    one, so that there can be a pooled map and a context.
    """

    def __init__(
        self, parts: SplitStatistics, Phi, features: HeldOutFeatures, fold, intercept: bool,
        n_jobs=1,
    ):  # fmt: skip
        self.parts, self.Phi, self.features = parts, Phi, features
        self.intercept, self.n_jobs = intercept, n_jobs
        self.folds = list(task_rounds(fold, parts.query.count > 0))
        self.held = [parts.take(held) for _, held in self.folds]
        self.points = sum(part.query.count.sum() for part in self.held)
        self.no_errors = np.empty((1 + len(parts.shown), 0))
        self._fits: dict[int, Callable[..., LearnedPrior]] = {}  # of the last fold alone
        self._priors: dict[tuple[int, str, float], Prior] = {}
        self._contexts: dict[tuple[int, str, float], tuple[Prior, Context | None]] = {}
        self._errors: dict[tuple[RidgeSetting, int, bool], np.ndarray] = {}
        self._side_noises: dict[tuple[int, str, float, bool], tuple[Prior, np.ndarray]] = {}

    # Priors.

    def fit_path(self, number: int, settings: list[RidgeSetting]):
        """Fit the settings to the tasks outside a fold, and yield each as it is done."""
        by_pair = defaultdict(list)
        for setting in settings:
            by_pair[setting.metric, setting.kappa].append(setting)
        for pair, learned in path(settings, self._fit(number)):
            self._priors[number, *pair] = learned.prior
            yield from by_pair[pair]

    def _fit(self, number: int) -> Callable[..., LearnedPrior]:
        """Return a function that fits a pair, from a start or None, without a fold of tasks."""
        if number not in self._fits:
            blocks = self._train(number)
            model = cache(partial(RidgeModel, blocks, totals=totals_of(blocks)))

            def fit(metric: str, kappa: float, start: Prior | None = None) -> LearnedPrior:
                return maximise(model(kappa), metric, start, ROUGH)

            self._fits = {number: fit}
        return self._fits[number]

    def _train(self, number: int) -> OneBlock:
        """Return the tasks outside a fold."""
        train, _ = self.folds[number]
        return OneBlock.of(self.parts.whole.take(train), self.Phi[train], self.n_jobs)

    def prior(self, setting: RidgeSetting, number: int) -> Prior:
        """Return the prior of the tasks outside a fold."""
        key = number, setting.metric, setting.kappa
        if key not in self._priors:
            self._priors[key] = self._fit(number)(*key[1:], self._near(*key)).prior
        return self._priors[key]

    def _near(self, number: int, metric: str, kappa: float) -> Prior | None:
        """Return a prior to start from: of the same pair without another fold, or of this fold."""
        same = (prior for (_, *pair), prior in self._priors.items() if pair == [metric, kappa])
        own = (prior for (fold, *_), prior in self._priors.items() if fold == number)
        return next(same, next(own, None))

    def with_context(self, setting: RidgeSetting, number: int) -> tuple[Prior, Context | None]:
        """Return the prior and the context of the tasks outside a fold."""
        key = number, setting.metric, setting.kappa
        if key not in self._contexts:
            prior, how = self.prior(setting, number), (setting.metric, setting.kappa)

            def learn(blocks, start):
                return learn_from_blocks(blocks, *how, start, stopping=ROUGH)

            learned, context = learn_context(self._train(number), prior, learn)
            self._contexts[key] = (prior if learned is None else learned.prior), context
        return self._contexts[key]

    # Errors.

    def score(self, setting: RidgeSetting, context: bool = False) -> float:
        """Return the mean error of a setting on all folds."""
        numbers = range(len(self.folds))
        return self.mean_error(np.hstack([self.errors(setting, f, context) for f in numbers]))

    def mean_error(self, errors: np.ndarray) -> float:
        """Return the geometric mean over views of the mean errors, for errors of all folds."""
        return geometric_mean(errors) / self.points

    def errors(self, setting: RidgeSetting, number: int, context: bool = False) -> np.ndarray:
        """Return the errors (views, T) of the held-out tasks of a fold.

        The views are: without points, then as more are shown. An error is the root mean square
        error of a task, times its points. Without points it is that of the pooled map if this map
        has smaller errors.
        """
        key = setting, number, context
        if key not in self._errors:
            w = self.coefficients(setting, number, context)
            errors = _errors(self.held[number].query, w)
            if self.intercept:
                errors[0] = min(errors[0], self.pooled_errors[number], key=np.sum)
            self._errors[key] = errors
        return self._errors[key]

    def coefficients(self, setting: RidgeSetting, number: int, context: bool) -> np.ndarray:
        """Return the coefficients (views, T, d) of the held-out tasks of a fold."""
        prior, shift = self.fitted(setting, number, context)
        Phi, n_shown = self.features.with_support[self.folds[number][1]], len(self.parts.shown)
        factors = None
        if setting.noise == BY_SIDE:
            prior, delta = self.with_side_noise(setting, number, context)
            factors = np.tile(noise_factors(Phi, delta), n_shown)
        inner = Gaussian(prior.L, prior.s2, setting.noise == "per_task", shift)
        theta = np.tile(prior.theta(Phi), (n_shown, 1))
        shown = SquaredState.stack(self.held[number].shown)  # one view after the other
        means = inner.posterior(shown, theta, self.n_jobs, factors).mean
        start = self.starts(setting, number, context)
        return np.concatenate([start, means]).reshape(-1, *start.shape)

    def starts(self, setting: RidgeSetting, number: int, context: bool) -> np.ndarray:
        """Return the coefficients (T, d) of the held-out tasks of a fold without their points."""
        prior, shift = self.fitted(setting, number, context)
        start = prior.theta(self.features.without[self.folds[number][1]])
        return start if shift is None else start + shift.start()

    def fitted(
        self, setting: RidgeSetting, number: int, context: bool
    ) -> tuple[Prior, Context | None]:
        """Return the prior of the tasks outside a fold, and their context if there is one."""
        if context:
            return self.with_context(setting, number)
        return self.prior(setting, number), None

    def density(self, setting: RidgeSetting, number: int) -> float:
        """Return the log density of all labels of the held-out tasks of a fold."""
        return float(self._labels(self.prior(setting, number), number)[1].sum())

    def _labels(
        self, prior: Prior, number: int, delta=None, shift: Context | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return expected residuals and log densities (T,) of all labels of held-out tasks."""
        Phi = self.features.with_support[self.folds[number][1]]
        factors = noise_factors(Phi, delta)
        s2 = prior.s2 if factors is None else prior.s2 * factors
        how = prior.theta(Phi), prior.L, s2, self.n_jobs, False
        whole = _left(self.held[number].whole, shift)
        _, _, rss, loglik, _ = posterior_of_statistics(whole, *how)
        return rss, loglik

    # Noise that follows side information.

    def with_side_noise(
        self, setting: RidgeSetting, number: int, context: bool
    ) -> tuple[Prior, np.ndarray]:
        """Return the prior of the tasks outside a fold with its s2 anew, and delta."""
        key = number, setting.metric, setting.kappa, context
        if key not in self._side_noises:
            (train, _), (prior, shift) = self.folds[number], self.fitted(setting, number, context)
            whole = _left(self.parts.whole.take(train), shift)
            blocks = OneBlock.of(whole, self.Phi[train], self.n_jobs)
            self._side_noises[key] = fisher_steps(blocks, prior, None)[:2]
        return self._side_noises[key]

    def noise_may_follow(self, setting: RidgeSetting, context: bool) -> bool:
        """Return whether the noise of held-out tasks may follow their side information."""
        scores, held = [], [held for _, held in self.folds]
        for number, part in enumerate(self.held):
            prior, shift = self.fitted(setting, number, context)
            rss, _ = self._labels(prior, number, None, shift)
            scores.append((rss / prior.s2 - part.whole.count) / 2)
        at = np.concatenate(held)
        count = np.concatenate([part.whole.count for part in self.held])
        return may_follow(np.concatenate(scores), self.features.with_support[at], count)

    def gain_of_side_noise(self, setting: RidgeSetting, number: int, context: bool) -> np.ndarray:
        """Return by how much the labels of each held-out task (T,) become more likely."""
        shared, shift = self.fitted(setting, number, context)
        prior, delta = self.with_side_noise(setting, number, context)
        before = self._labels(shared, number, None, shift)[1]
        return self._labels(prior, number, delta, shift)[1] - before

    # Tasks without points.

    @cached_property
    def pooled(self) -> PooledFolds:
        """The pooled map with the least error."""
        forms, maps = held_out_maps(self.parts.whole, self.Phi, self.folds)
        weights, errors = [], np.zeros(len(forms))
        for number, (_, held) in enumerate(self.folds):
            W = maps[:, number]
            weights.append(self.features.without[held] @ W[:, :-1] + W[:, -1:])
            errors += _errors(self.held[number].query, weights[-1]).sum(axis=-1)
        best = int(np.argmin(errors))
        return PooledFolds(forms[best], [w[best] for w in weights])

    @cached_property
    def pooled_errors(self) -> list[np.ndarray]:
        """The errors (T,) of the pooled map on each fold."""
        pairs = zip(self.held, self.pooled.weights, strict=True)
        return [_errors(part.query, w) for part, w in pairs]

    def cold_score(self, setting: RidgeSetting, context: bool, share: float) -> float:
        """Return the mean error without points, with this share of the pooled map."""
        total = 0.0
        for number, part in enumerate(self.held):
            start = self.starts(setting, number, context)
            w = (1 - share) * start + share * self.pooled.weights[number]
            total += _errors(part.query, w).sum()
        return total / self.points


def _left(stats: SquaredState, shift: Context | None) -> SquaredState:
    """Return statistics of labels less the levels that a context explains."""
    return stats if shift is None else without_context(stats, shift)


def geometric_mean(errors: np.ndarray) -> float:
    """Return the geometric mean of the sums of errors (views, T)."""
    return float(np.exp(np.mean(np.log(np.maximum(errors.sum(axis=1), SMALLEST)))))


def _errors(query: SquaredState, w) -> np.ndarray:
    """Return the root mean square errors (..., T) of tasks, times their points, w (..., T, d)."""
    return np.sqrt(query.squared_errors(w) * query.count)
