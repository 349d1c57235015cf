r"""The choice of metric, noise and ridge for `meta.ridge`: on held-out tasks, or by the evidence.

Held-out tasks: every fold of tasks is left out in turn. The prior of the others is judged by one
half of a left-out task's points, by the root mean square error of the task: as it is, and adapted
to the other half. Errors are averaged over tasks, weighted by their judged points; like a mean
absolute error this is not ruled by the tasks that are noisiest. The score is the geometric mean of
the two, so that new tasks count whether they come with points or without. Of settings within a
thousandth of the best the simplest is taken among those that make the labels of left-out tasks as
likely as any: the product of their densities, each given those before it, judges a prior at every
number of points, not at two.

Evidence, where there are too few tasks: with W integrated out,

    J + (k d / 2) log kappa + (1/2) logdet H - (1/2) logdet Lambda - (p / 2) log T,
    Lambda = sum_t phi_t phi_t^T (x) (I - A_t^-1) + kappa diag(1, .., 1, 0) (x) I,

A_t as in `inner.posterior`, and p the free numbers of H.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from typing import NamedTuple

import numpy as np

from condmeta.inner.posterior import Gaussian, pass_of, precision
from condmeta.inner.squared import SquaredState
from condmeta.meta.ascent import End
from condmeta.meta.prior import METRICS, SMALLEST, Learned, Prior
from condmeta.meta.ridge import learn_prior

KAPPAS = (np.inf, 100.0, 10.0, 1.0, 0.1)  # from no map to a free one: each starts the next
NOISES = ("shared", "per_task")
FOLDS = 5
FEWEST = 20  # tasks with points to judge by, below which the evidence chooses
LOOSE = End(tol=0.05, most=60)  # of fits that are only compared
CLOSE = 1e-3  # of the best score: as good as it
LIKELY = 3.0  # below the greatest log density: as likely
MARGIN = 0.05  # what is further behind the best after a fold is dropped,
SURE = 4.0  # and what is behind it by so many standard errors


class Candidate(NamedTuple):
    """One setting of the learner."""

    metric: str
    noise: str
    kappa: float


class Choice(NamedTuple):
    """What was chosen and how, the scores (less is better), and a prior to go on from."""

    chosen: Candidate
    method: str
    scores: dict[Candidate, float]
    start: Prior | None


class Halves(NamedTuple):
    """Statistics of tasks: of all their points, and of the two halves apart."""

    whole: SquaredState
    support: SquaredState
    query: SquaredState


class Shown(NamedTuple):
    """Features (T, k) of tasks that are left out: with their support, and without any points."""

    with_support: np.ndarray
    without: np.ndarray


def choose(halves: Halves, Phi, shown: Shown, fold, metrics, noises, kappas, n_jobs=1) -> Choice:
    """Choose among all combinations of metrics, noises and kappas.

    Phi (T, k), standardised; fold (T,) int: when a task is left out. With no column in Phi only
    kappa = infinity is tried.
    """
    kappas = tuple(sorted(kappas, reverse=True)) if Phi.shape[1] else (np.inf,)
    candidates = [Candidate(*parts) for parts in product(metrics, noises, kappas)]
    if len(candidates) == 1:
        return Choice(candidates[0], "given", {}, None)
    if np.sum(halves.query.count > 0) < FEWEST:
        return _by_evidence(halves.whole, Phi, candidates, n_jobs)
    return _by_held_out(halves, Phi, shown, fold, candidates, n_jobs)


def _close(scores: dict[Candidate, float]) -> list[Candidate]:
    """Return the candidates within a thousandth of the best."""
    least = min(scores.values())
    return [c for c, score in scores.items() if score <= least + CLOSE * abs(least)]


def _rank(candidate: Candidate) -> int:
    return list(METRICS).index(candidate.metric)


def _simplest(candidates: list[Candidate]) -> Candidate:
    return min(candidates, key=lambda c: (-c.kappa, _rank(c), c.noise != "shared"))


def _by_held_out(halves: Halves, Phi, shown: Shown, fold, candidates, n_jobs) -> Choice:
    """Choose by the errors of the candidates that stay in the race to the last fold."""
    errors, points = {candidate: np.empty((2, 0)) for candidate in candidates}, 0
    density: dict[tuple[str, float], float] = defaultdict(float)
    for f in np.unique(fold):
        train = halves.whole.take(np.flatnonzero(fold != f))
        held = np.flatnonzero((fold == f) & (halves.query.count > 0))
        if not len(held) or not len(train.count):
            continue
        whole, support, query = (part.take(held) for part in halves)
        points += query.count.sum()
        learn = _learner(train, Phi[fold != f], n_jobs)
        for (metric, kappa), (prior, *_) in path(list(errors), learn):
            alone = _errors(query, prior.theta(shown.without[held]))
            theta = prior.theta(shown.with_support[held])
            density[metric, kappa] += _log_density(whole, theta, prior, n_jobs)
            for candidate in [c for c in errors if (c.metric, c.kappa) == (metric, kappa)]:
                inner = Gaussian(prior.L, prior.s2, candidate.noise == "per_task")
                adapted = _errors(query, inner.posterior(support, theta, n_jobs).mean)
                errors[candidate] = np.hstack([errors[candidate], [alone, adapted]])
        errors = _in_the_race(errors)
    scores = {candidate: _score(found) / points for candidate, found in errors.items()}
    close = _close(scores)
    least = max(density[c.metric, c.kappa] for c in close) - LIKELY
    chosen = _simplest([c for c in close if density[c.metric, c.kappa] >= least])
    # The way to it is that of the folds: J may have a higher place elsewhere, which was not judged.
    simpler = [c for c in candidates if c.kappa == chosen.kappa and _rank(c) <= _rank(chosen)]
    *_, (_, learned) = path(simpler, _learner(halves.whole, Phi, n_jobs))
    return Choice(chosen, "held-out tasks", scores, learned.prior)


def _errors(query: SquaredState, w) -> np.ndarray:
    """Return the root mean square errors of tasks, times their points (T,)."""
    return np.sqrt(query.squared_errors(w) * query.count)


def _log_density(stats: SquaredState, theta, prior: Prior, n_jobs) -> float:
    """Return the sum over tasks of the log density of all their labels."""
    return float(pass_of(stats, theta, prior.L, prior.s2, n_jobs, False)[3].sum())


def _score(errors: np.ndarray) -> float:
    """Return the geometric mean of the sums of errors (2, T): without points, and adapted."""
    return float(np.sqrt(np.prod(errors.sum(axis=1))))


def _in_the_race(errors: dict[Candidate, np.ndarray]) -> dict[Candidate, np.ndarray]:
    """Leave out the candidates that are clearly behind the best on the tasks judged so far."""
    best = min(errors.values(), key=_score)
    total = np.maximum(best.sum(axis=1, keepdims=True), SMALLEST)

    def stays(found: np.ndarray) -> bool:
        parts = ((found - best) / total).mean(axis=0)  # of the relative difference, task by task
        behind, T = parts.sum(), len(parts)
        spread = SURE * np.sqrt(T) * parts.std() if T >= FEWEST else np.inf
        return behind <= min(MARGIN, max(spread, CLOSE))

    return {candidate: found for candidate, found in errors.items() if stays(found)}


def _by_evidence(stats, Phi, candidates, n_jobs) -> Choice:
    """Choose by the evidence, which knows shared noise alone; scores are minus its logarithms.

    Of what is as good as the best the simplest is taken.
    """
    plain = "shared" if any(c.noise == "shared" for c in candidates) else candidates[0].noise
    scores, priors = {}, {}
    for (metric, kappa), learned in path(candidates, _learner(stats, Phi, n_jobs)):
        candidate = Candidate(metric, plain, kappa)
        scores[candidate] = -evidence(stats, Phi, metric, kappa, learned)
        priors[candidate] = learned.prior
    chosen = _simplest(_close(scores))
    return Choice(chosen, "evidence", scores, priors[chosen])


def path(candidates, learn):
    """Yield the fits of all pairs (metric, kappa), each from the one before it.

    The first kappa starts from that of the simpler metric; `learn(metric, kappa, start)` gives the
    fit of one pair.
    """
    metrics = [name for name in METRICS if any(c.metric == name for c in candidates)]
    kappas = sorted({c.kappa for c in candidates}, reverse=True)
    first: Prior | None = None
    for metric in metrics:
        start = first
        for kappa in kappas:
            learned = learn(metric, kappa, start)
            start = learned.prior
            first = start if kappa == kappas[0] else first
            yield (metric, kappa), learned


def _learner(stats, Phi, n_jobs):
    return lambda metric, kappa, start: learn_prior(
        stats, Phi, metric, kappa, start, end=LOOSE, n_jobs=n_jobs
    )


def evidence(stats: SquaredState, Phi, metric: str, kappa: float, learned: Learned) -> float:
    """Return the log evidence of a fit, up to a constant that all settings share."""
    d = stats.moment.shape[1]
    k = 0 if np.isinf(kappa) else Phi.shape[1]
    phi = np.column_stack([Phi[:, :k], np.ones(len(Phi))])
    # The limit of a singular H exists, but not its terms one by one.
    H = learned.prior.H
    L = np.linalg.cholesky(H + max(1e-10 * np.trace(H) / d, SMALLEST) * np.eye(d))
    A = precision(stats.gram, L, np.full(len(phi), learned.prior.s2))
    pull = np.eye(d) - np.linalg.inv(A)
    Lambda = np.einsum("ta,tb,tij->aibj", phi, phi, pull, optimize=True).reshape(-1, (k + 1) * d)
    ridge = np.repeat(np.append(np.full(k, kappa), 0.0), d) if k else np.zeros(d)
    Lambda[np.arange(len(ridge)), np.arange(len(ridge))] += ridge + SMALLEST
    free = {"identity": 1, "diagonal": d, "full": d * (d + 1) // 2}[metric]
    return float(
        learned.objective
        + (k * d / 2 * np.log(kappa) if k else 0.0)
        + np.log(np.diag(L)).sum()
        - np.linalg.slogdet(Lambda)[1] / 2
        - free / 2 * np.log(len(phi))
    )
