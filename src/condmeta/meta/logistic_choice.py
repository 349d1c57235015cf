r"""The choice of metric and ridge for `meta.logistic`: on held-out tasks, or by the evidence.

Held-out tasks: every fold of tasks is held out in turn, and the prior is learned from the others.
It is judged by the query half of a held-out task's points, adapted to the support half and without
any points: by the log loss of probabilities that average over the posterior of the task's weights.
Evidence, if there are too few tasks to hold out: that of `meta.setting_path`, with this J and the
points' weights D.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from condmeta.inner.likelihoods import Binomial, Likelihood
from condmeta.inner.row_posterior import find_posteriors, solve_rows, weighted_statistics
from condmeta.inner.scores import row_scores
from condmeta.meta.logistic import learn_prior
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
    """Tasks: all their points, and the two halves apart."""

    whole: Points
    support: Points
    query: Points


def choose(
    halves: SplitPoints, Phi, Phi_held, fold, metrics, kappas, n_jobs=1,
    likelihood: type[Likelihood] = Binomial, parameter=None, alone=None,
) -> Selection:  # fmt: skip
    """Choose kappa with the first, simplest metric, then the metric with that kappa.

    The parameters are those of `meta.ridge_choice.choose`; `Phi_held` (T, k) are the features of
    held-out tasks. With `alone` (T, k), their features without points, settings are judged without
    points as well. A fit takes much longer than there, so that not all pairs are compared.
    """
    kappas = tuple(sorted(kappas, reverse=True)) if Phi.shape[1] else (np.inf,)
    if len(metrics) == len(kappas) == 1:
        return Selection.given(LogisticSetting(metrics[0], kappas[0]))
    judged, priors = halves.query.count > 0, {}
    kind = {"likelihood": likelihood, "parameter": parameter}
    rough_fit = partial(learn_prior, **kind, accuracy=1e-4, n_jobs=n_jobs, stopping=ROUGH)

    def log_losses(train, held, left):
        support, query = halves.support.take(held), halves.query.take(held)
        for pair, learned in path(left, partial(rough_fit, halves.whole.take(train), Phi[train])):
            prior, law = learned.prior, likelihood(learned.prior.s2)
            theta = prior.theta(Phi_held[held])
            lost = log_loss(law, theta, prior.L, support, query, n_jobs)
            if alone is not None:
                none = support.where(np.zeros(len(support.y), bool))
                lost += log_loss(law, prior.theta(alone[held]), prior.L, none, query, n_jobs)
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
        points = sum(halves.query.count[held].sum() for _, held in folds)
        rounds = [partial(log_losses, *parts) for parts in folds]
    else:
        method, drop, points, rounds = EVIDENCE, None, 1, [minus_evidence]

    def compare(candidates) -> dict[LogisticSetting, float]:
        return select(candidates, rounds, _best, score=lambda lost: lost / points, drop=drop).scores

    scores = compare([LogisticSetting(metrics[0], kappa) for kappa in kappas])
    kappa = _best(None, scores).kappa
    if metrics[1:]:
        scores |= compare([LogisticSetting(metric, kappa) for metric in metrics[1:]])
    chosen = _best(None, scores)
    return Selection(chosen, method, scores, priors.get(chosen))


def _best(_, scores: dict[LogisticSetting, float]) -> LogisticSetting:
    return min(scores, key=scores.__getitem__)


def log_loss(law: Likelihood, theta, factor, support: Points, query: Points, n_jobs=1) -> float:
    """Return the sum of -log P(y) over the query points of tasks adapted to their support."""
    solved = solve_rows(law, support, theta, factor, n_jobs)
    codes = np.repeat(np.arange(len(theta)), query.sizes)
    mean = row_scores(query.X, solved.coef, codes, n_jobs)
    lost = -law.log_density(query, mean, solved.state.of_rows(query.X, codes))
    return float(np.sum(lost if query.weight is None else repeats(query.weight) * lost))
