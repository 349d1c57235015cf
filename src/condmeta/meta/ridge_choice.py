r"""The choice of settings for `meta.ridge`: on held-out tasks, or by the evidence.

Held-out tasks: every fold of tasks is held out in turn, and the prior is learned from the others.
The query half of a held-out task's points judges the prior several times, by the root mean square
error of the task: without any points, and adapted to 1, 2, 5 and all points of the support half.
Errors are averaged over tasks, weighted by their query points; as with a mean absolute error, the
noisiest tasks do not dominate. The score is the geometric mean of these views. A task without
points may be answered by the pooled map of `meta.pooled_map` instead, so that this view counts at
most the error of that map.

The settings are chosen one after the other, with the same fits: metric and kappa, then the noise,
then whether levels go with inputs (`meta.context`), then the answer for tasks without points. That
the noise follows side information (`meta.side_noise`) is tried where a test says that it may, and
kept if it makes the labels of held-out tasks clearly more likely.

Ties: pairs of metric and kappa within a hundredth of the best score are equally good. Among these
only pairs stay that make the labels of held-out tasks about as likely as any; the simplest is
chosen. The log density of all labels of a task is a sum of terms, each given the labels before it,
so that it judges a prior at every number of points.

With too few tasks to hold out, the evidence (`meta.setting_path`) chooses metric and kappa.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from condmeta.inner.squared import SquaredState
from condmeta.meta.ascent import Stopping
from condmeta.meta.pooled_map import PooledForm
from condmeta.meta.prior import METRICS, SMALLEST
from condmeta.meta.ridge import learn_prior
from condmeta.meta.ridge_judge import (
    BY_SIDE,
    ROUGH,
    HeldOutFeatures,
    Judge,
    RidgeSetting,
    SplitStatistics,
    geometric_mean,
)
from condmeta.meta.selection import EVIDENCE, Selection, close_to_best, select
from condmeta.meta.setting_path import evidence, path

CLOSE = Stopping(tol=0.03, max_evaluations=300)  # of fits whose evidence is compared
KAPPAS = (np.inf, 100.0, 10.0, 1.0, 0.1)  # from no map to a free one: each starts the next
NOISES = ("shared", "per_task", BY_SIDE)
CONTEXTS = False, True
COLD_STARTS = {"prior": 0.0, "mixture": 0.5, "pooled": 1.0}  # the share of the pooled map
MIN_TASKS = 20  # with points to judge by; with fewer tasks the evidence chooses
BAND = 1e-2  # relative difference of two scores within which the density decides
TIE = 1e-3  # relative difference of two scores that counts as none
LOG_DENSITY_TIE = 1.0  # difference of two log densities that counts as none
MARGIN = 0.1  # a candidate further behind than this share may drop out on a few tasks
MARGIN_ERRORS = 2.0  # standard errors behind the best at which a candidate drops out


class RidgeChoice(NamedTuple):
    """The chosen settings.

    `selection` is that of a `RidgeSetting`, `cold_start` a name of `COLD_STARTS`, and `pooled` the
    form of the pooled map, None if it is not used.
    """

    selection: Selection
    context: bool
    cold_start: str
    pooled: PooledForm | None


class RidgeOptions(NamedTuple):
    """The values of each setting to choose among."""

    metrics: Sequence[str] = tuple(METRICS)
    noises: Sequence[str] = NOISES
    kappas: Sequence[float] = KAPPAS
    contexts: Sequence[bool] = CONTEXTS
    cold_starts: Sequence[str] = tuple(COLD_STARTS)


def choose(
    parts: SplitStatistics, Phi, features: HeldOutFeatures, fold, options: RidgeOptions,
    intercept=True, n_jobs=1,
) -> RidgeChoice:  # fmt: skip
    """Choose among the options, the first of which is the simplest.

    Phi (T, k), standardised; fold (T,) int: the round in which a task is held out. With no column
    in Phi only kappa = infinity is tried. Contexts and pooled maps need an intercept.
    """
    kappas = sorted(options.kappas, reverse=True) if Phi.shape[1] else [np.inf]
    pairs = [
        RidgeSetting(metric, options.noises[0], kappa)
        for metric, kappa in product(options.metrics, kappas)
    ]
    enough = int(np.sum(parts.query.count > 0)) >= MIN_TASKS
    judge = Judge(parts, Phi, features, fold, intercept, n_jobs)
    selection = Selection.given(pairs[0])
    if len(pairs) > 1 and enough:
        selection = _on_held_out_tasks(judge, pairs)
    elif len(pairs) > 1:
        selection = choose_by_evidence(parts.whole, Phi, pairs, n_jobs)
    plain = [noise for noise in options.noises if noise != BY_SIDE]
    if enough and len(plain) > 1:
        selection = _with_best_noise(judge, selection, plain)
    may_follow = enough and plain and BY_SIDE in options.noises and Phi.shape[1] > 0
    if not (intercept and judge.folds):
        selection = _with_side_noise(judge, selection, False) if may_follow else selection
        return RidgeChoice(selection, False, "prior", None)
    context, cold_start = options.contexts[0], options.cold_starts[0]
    if enough and len(options.contexts) > 1:
        scores = {which: judge.score(selection.chosen, which) for which in options.contexts}
        context = close_to_best(scores, TIE)[0]
    if may_follow:
        selection = _with_side_noise(judge, selection, context)
    if len(options.cold_starts) > 1:
        share = COLD_STARTS.__getitem__
        scores = {
            name: judge.cold_score(selection.chosen, context, share(name))
            for name in options.cold_starts
        }
        cold_start = close_to_best(scores, TIE)[0]
    form = judge.pooled.form if cold_start != "prior" else None
    return RidgeChoice(selection, context, cold_start, form)


def _rank(candidate: RidgeSetting) -> int:
    return list(METRICS).index(candidate.metric)


def _simplest(candidates: list[RidgeSetting]) -> RidgeSetting:
    return min(candidates, key=lambda c: (-c.kappa, _rank(c), c.noise != "shared"))


def _on_held_out_tasks(judge: Judge, pairs: list[RidgeSetting]) -> Selection:
    """Choose by the errors of the pairs that stay in the race to the last fold."""
    density: dict[RidgeSetting, float] = defaultdict(float)  # sum of those of tasks

    def compare(number, left):
        for candidate in judge.fit_path(number, left):
            density[candidate] += judge.density(candidate, number)
            yield candidate, judge.errors(candidate, number)

    def decide(losses, scores):
        close = close_to_best(scores, BAND)
        least = max(density[c] for c in close) - LOG_DENSITY_TIE
        return _simplest([c for c in close if density[c] >= least])

    selection = select(
        pairs, [partial(compare, number) for number in range(len(judge.folds))], decide,
        score=judge.mean_error, drop=_drop_behind, initial=judge.no_errors,
        join=lambda *errors: np.hstack(errors),
    )  # fmt: skip
    # Fit along the same path as the folds did: J may have a higher maximum that was not judged.
    chosen = selection.chosen
    simpler = [c for c in pairs if c.kappa == chosen.kappa and _rank(c) <= _rank(chosen)]
    fit = partial(learn_prior, judge.parts.whole, judge.Phi, stopping=ROUGH, n_jobs=judge.n_jobs)
    *_, (_, learned) = path(simpler, fit)
    return selection._replace(start=learned.prior)


def _with_best_noise(judge: Judge, selection: Selection, noises) -> Selection:
    """Choose the noise of the chosen pair."""
    settings = [selection.chosen._replace(noise=noise) for noise in noises]
    scores = {setting: judge.score(setting) for setting in settings}
    chosen = _simplest(close_to_best(scores, TIE))
    return selection._replace(chosen=chosen, scores=selection.scores | scores)


def _with_side_noise(judge: Judge, selection: Selection, context: bool) -> Selection:
    """Let the noise follow side information if held-out labels are clearly more likely then.

    It takes the place of a noise of each task's own only if errors are as small.
    """
    before = selection.chosen
    if not judge.noise_may_follow(before, context):
        return selection
    setting = before._replace(noise=BY_SIDE)
    numbers = range(len(judge.folds))
    gain = np.concatenate([judge.gain_of_side_noise(setting, n, context) for n in numbers])
    if gain.sum() <= max(LOG_DENSITY_TIE, MARGIN_ERRORS * np.sqrt(len(gain)) * gain.std()):
        return selection
    scores = {each: judge.score(each, context) for each in (before, setting)}
    if before.noise == "per_task" and setting not in close_to_best(scores, TIE):
        return selection
    return selection._replace(chosen=setting, scores=selection.scores | scores)


def _drop_behind(errors: dict[RidgeSetting, np.ndarray]) -> dict[RidgeSetting, np.ndarray]:
    """Drop the candidates that are clearly behind the best one on the tasks judged so far."""
    best = min(errors.values(), key=geometric_mean)
    total = np.maximum(best.sum(axis=1, keepdims=True), SMALLEST)

    def stays(found: np.ndarray) -> bool:
        parts = ((found - best) / total).mean(axis=0)  # of the relative difference, task by task
        behind, T = parts.sum(), len(parts)
        margin = BAND if T >= MIN_TASKS else MARGIN
        return behind <= max(margin, MARGIN_ERRORS * np.sqrt(T) * parts.std())

    return {candidate: found for candidate, found in errors.items() if stays(found)}


def choose_by_evidence(stats: SquaredState, Phi, pairs, n_jobs, s2=None) -> Selection:
    """Choose by the evidence; scores are minus its logarithms.

    Of settings as good as the best the simplest is taken. `s2` is the noise where it is known.
    """
    fit = partial(learn_prior, noise=s2, stopping=CLOSE, n_jobs=n_jobs)
    priors, rough_fit = {}, partial(fit, stats, Phi)

    def judge(left):
        for (metric, kappa), learned in path(left, rough_fit):
            candidate = RidgeSetting(metric, pairs[0].noise, kappa)
            priors[candidate] = learned.prior
            yield candidate, -evidence(stats, Phi, metric, kappa, learned)

    def decide(losses, scores):
        return _simplest(close_to_best(scores, TIE))

    selection = select(pairs, [judge], decide, method=EVIDENCE)
    return selection._replace(start=priors[selection.chosen])
