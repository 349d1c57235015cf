r"""The choice of metric and ridge for `meta.logistic`: on held-out tasks, or by the evidence.

Held-out tasks: every fold of tasks is held out in turn, and the prior is learned from the others.
Each half of a held-out task's points judges it, adapted to the other half and without any points:
by the log loss of probabilities that average over the posterior of the task's weights. Evidence, if
there are too few tasks to hold out: that of `meta.setting_path`, with this J and the points'
weights D. Settings that are about as good as the best get a weight (`meta.prior_mixture`).
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from condmeta.inner.likelihoods import Binomial, Likelihood
from condmeta.inner.row_posterior import find_posteriors, solve_rows, weighted_statistics
from condmeta.inner.scores import row_scores
from condmeta.meta.logistic import learn_prior
from condmeta.meta.prior_mixture import bootstrap_weights, evidence_weights
from condmeta.meta.ridge_choice import MIN_TASKS
from condmeta.meta.ridge_judge import ROUGH
from condmeta.meta.selection import EVIDENCE, HELD_OUT, Selection, drop_behind, select, task_rounds
from condmeta.meta.setting_path import evidence, path
from condmeta.tasks.points import Points
from condmeta.tasks.weights import repeats

MARGIN = 1.2  # a candidate with a log loss above this many times the least drops out


class LogisticSetting(NamedTuple):
    """One setting of the learner."""

    metric: str
    kappa: float


class SplitPoints(NamedTuple):
    """Tasks: all their points, and two halves of them."""

    whole: Points
    first: Points
    second: Points


class HeldOutByHalf(NamedTuple):
    """Features (T, k) of held-out tasks: with the points of either half, and without any."""

    with_first: np.ndarray
    with_second: np.ndarray
    without: np.ndarray


def choose(
    halves: SplitPoints, Phi, features: HeldOutByHalf, fold, metrics, kappas, n_jobs=1,
    likelihood: type[Likelihood] = Binomial, parameter=None,
) -> Selection:  # fmt: skip
    """Choose kappa with the first, simplest metric, then the metric with that kappa.

    The parameters are those of `meta.ridge_choice.choose`. A fit takes much longer than there, so
    that not all pairs are compared.
    """
    kappas = tuple(sorted(kappas, reverse=True)) if Phi.shape[1] else (np.inf,)
    if len(metrics) == len(kappas) == 1:
        return Selection.given(LogisticSetting(metrics[0], kappas[0]))
    judged, priors = halves.second.count > 0, {}
    kind = {"likelihood": likelihood, "parameter": parameter}
    rough_fit = partial(learn_prior, **kind, accuracy=1e-4, n_jobs=n_jobs, stopping=ROUGH)

    def log_losses(train, held, left):
        first, second = halves.first.take(held), halves.second.take(held)
        for pair, learned in path(left, partial(rough_fit, halves.whole.take(train), Phi[train])):
            prior, law = learned.prior, likelihood(learned.prior.s2)
            lost = np.zeros(len(held))
            for support, query, seen in (
                (first, second, features.with_first),
                (second, first, features.with_second),
            ):
                theta = prior.theta(seen[held])
                lost += task_losses(law, theta, prior.L, support, query, n_jobs)
            both, none = halves.whole.take(held), first.where(np.zeros(len(first.y), bool))
            theta = prior.theta(features.without[held])
            lost += task_losses(law, theta, prior.L, none, both, n_jobs)
            yield LogisticSetting(*pair), lost

    def minus_evidence(left):
        for pair, learned in path(left, partial(rough_fit, halves.whole, Phi)):
            prior = priors[LogisticSetting(*pair)] = learned.prior
            law = likelihood(prior.s2)
            rows, theta = law.rows(halves.whole), prior.theta(Phi)
            found = find_posteriors(law, halves.whole, theta, prior.L)
            stats = weighted_statistics(rows.X, rows.offsets, found.weight)
            unit = learned._replace(prior=prior._replace(s2=1.0))  # D is in the statistics
            yield LogisticSetting(*pair), -evidence(stats, Phi, *pair, unit)

    if judged.sum() >= MIN_TASKS:
        method, drop = HELD_OUT, partial(drop_behind, margin=MARGIN)
        folds = list(task_rounds(fold, judged))
        rounds = [partial(log_losses, *parts) for parts in folds]
        points = sum(halves.whole.count[held].sum() for _, held in folds)
    else:
        method, drop, points, rounds = EVIDENCE, None, 1, [minus_evidence]

    def compare(candidates) -> dict[LogisticSetting, np.ndarray]:
        """Return the losses (T,) of the candidates that stay to the end; (1,) of evidences."""
        found = {}

        def keep(losses, scores):
            found.update(losses)
            return next(iter(losses))

        join, none = lambda *losses: np.hstack(losses), np.empty(0)
        select(candidates, rounds, keep, score=np.sum, drop=drop, join=join, initial=none)
        return found

    losses = compare([LogisticSetting(metrics[0], kappa) for kappa in kappas])
    kappa = _best(losses).kappa
    if metrics[1:]:
        losses |= compare([LogisticSetting(metric, kappa) for metric in metrics[1:]])
    scores = {setting: float(lost.sum() / points) for setting, lost in losses.items()}
    weigh, by = (bootstrap_weights, losses) if method == HELD_OUT else (evidence_weights, scores)
    chosen = _best(losses)
    return Selection(chosen, method, scores, priors.get(chosen), weigh(by))


def _best(losses: dict[LogisticSetting, np.ndarray]) -> LogisticSetting:
    return min(losses, key=lambda setting: losses[setting].sum())


def task_losses(
    law: Likelihood, theta, factor, support: Points, query: Points, n_jobs=1
) -> np.ndarray:
    """Return the sums of -log P(y) over the query points of tasks adapted to their support (T,)."""
    solved = solve_rows(law, support, theta, factor, n_jobs)
    codes = np.repeat(np.arange(len(theta)), query.sizes)
    mean = row_scores(query.X, solved.coef, codes, n_jobs)
    lost = -law.log_density(query, mean, solved.state.of_rows(query.X, codes))
    lost = lost if query.weight is None else repeats(query.weight) * lost
    return np.bincount(codes, lost, minlength=len(theta))
