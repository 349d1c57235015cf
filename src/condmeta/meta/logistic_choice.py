r"""The choice of metric and ridge for `meta.logistic`: on held-out tasks, or by the evidence.

Held-out tasks: every fold of tasks is left out in turn. The prior of the others is adapted to one
half of a left-out task's points and judged by the other half, by the log loss of the probabilities
that average over what the first half leaves open. Evidence, where there are too few tasks: that of
`meta.ridge_choice`, with this J and the weights of the points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.inner.averaged import averaged_logistic
from condmeta.inner.bernoulli import Bernoulli, find_posteriors, weighted_statistics
from condmeta.inner.scores import row_scores
from condmeta.meta.logistic import learn_prior
from condmeta.meta.points import WeightedPoints
from condmeta.meta.prior import Learned, Prior
from condmeta.meta.ridge_choice import FEWEST, LOOSE, evidence, path

MARGIN = 1.02  # what is further behind the best after a fold is dropped


class Candidate(NamedTuple):
    """One setting of the learner."""

    metric: str
    kappa: float


class Choice(NamedTuple):
    """What was chosen and how, the scores (less is better), and a prior to go on from."""

    chosen: Candidate
    method: str
    scores: dict[Candidate, float]
    start: Prior | None


class Halves(NamedTuple):
    """Tasks: all their points, and the two halves apart."""

    whole: WeightedPoints
    support: WeightedPoints
    query: WeightedPoints


def choose(halves: Halves, Phi, Phi_held, fold, metrics, kappas, n_jobs=1) -> Choice:
    """Choose kappa with the first, simplest metric, then the metric with that kappa.

    The parameters are those of `meta.ridge_choice.choose`. A fit costs much more than there, which
    is why not all pairs are compared.
    """
    kappas = tuple(sorted(kappas, reverse=True)) if Phi.shape[1] else (np.inf,)
    if len(metrics) == len(kappas) == 1:
        return Choice(Candidate(metrics[0], kappas[0]), "given", {}, None)
    by_tasks = (halves.query.count > 0).sum() >= FEWEST
    scores, priors = {}, {}

    def compare(candidates) -> Candidate:
        if by_tasks:
            scores.update(_held_out(halves, Phi, Phi_held, fold, candidates, n_jobs))
        elif candidates:
            _by_evidence(halves.whole, Phi, candidates, n_jobs, scores, priors)
        return min(scores, key=scores.__getitem__)

    best = compare([Candidate(metrics[0], kappa) for kappa in kappas])
    best = compare([Candidate(metric, best.kappa) for metric in metrics[1:]])
    method = "held-out tasks" if by_tasks else "evidence"
    return Choice(best, method, scores, priors.get(best))


def _held_out(halves: Halves, Phi, Phi_held, fold, candidates, n_jobs) -> dict[Candidate, float]:
    """Return the log loss of the candidates that stayed in the race to the last fold."""
    total, points = dict.fromkeys(candidates, 0.0), 0
    for f in np.unique(fold):
        train = halves.whole.take(np.flatnonzero(fold != f))
        held = np.flatnonzero((fold == f) & (halves.query.count > 0))
        if not len(held) or not len(train.y):
            continue
        support, query = halves.support.take(held), halves.query.take(held)
        points += query.count.sum()
        learn = _learner(train, Phi[fold != f], n_jobs)
        for pair, learned in path(list(total), learn):
            theta = learned.prior.theta(Phi_held[held])
            total[Candidate(*pair)] += log_loss(learned.prior.L, theta, support, query, n_jobs)
        limit = MARGIN * min(total.values(), default=0.0)
        total = {candidate: error for candidate, error in total.items() if error <= limit}
    return {candidate: error / points for candidate, error in total.items()}


def log_loss(factor, theta, support: WeightedPoints, query: WeightedPoints, n_jobs=1) -> float:
    """Return the sum of -log P(y) over the query points of tasks adapted to their support."""
    inner = Bernoulli(factor)
    X, y, offsets, weight = support
    solved = inner.solve_tasks(theta, X, y, offsets, n_jobs=n_jobs, weight=weight)
    codes = np.repeat(np.arange(len(theta)), query.sizes)
    scores = row_scores(query.X, solved.coef, codes, n_jobs)
    variance = inner.variances(solved.state, query.X, codes)
    lost = -np.log(averaged_logistic(query.y * scores, variance))
    return float(np.sum(lost if query.weight is None else query.weight * lost))


def _by_evidence(points: WeightedPoints, Phi, candidates, n_jobs, scores, priors) -> None:
    """Add minus the log evidence of the candidates to `scores`, and their fits to `priors`."""
    for pair, learned in path(candidates, _learner(points, Phi, n_jobs)):
        scores[Candidate(*pair)] = -bound_evidence(points, Phi, *pair, learned)
        priors[Candidate(*pair)] = learned.prior


def bound_evidence(
    points: WeightedPoints, Phi, metric: str, kappa: float, learned: Learned
) -> float:
    """Return the log evidence of a fit, up to a constant that all settings share."""
    prior = learned.prior
    X, y, offsets, times = points
    weight = find_posteriors(X, y, offsets, prior.theta(Phi), prior.L, times=times).weight
    stats = weighted_statistics(X, offsets, weight)
    return evidence(stats, Phi, metric, kappa, learned)


def _learner(points: WeightedPoints, Phi, n_jobs):
    return lambda metric, kappa, start: learn_prior(
        points, Phi, metric, kappa, start, accuracy=1e-4, n_jobs=n_jobs, end=LOOSE
    )
