r"""The choice of metric, noise and ridge for `meta.ridge`: on held-out tasks, or by the evidence.

Held-out tasks: every fold of tasks is held out in turn, and the prior is learned from the others.
The query half of a held-out task's points judges the prior twice, by the root mean square error of
the task: without any points, and adapted to the support half. Errors are averaged over tasks,
weighted by their query points; as with a mean absolute error, the noisiest tasks do not dominate.
The score is the geometric mean of the two, because new tasks come with points and without.

Ties: settings within a thousandth of the best score are equally good. Among these only settings
stay that make the labels of held-out tasks about as likely as any; the simplest of them is chosen.
The log density of all labels of a task is a sum of terms, each given the labels before it, so that
it judges a prior at every number of points, not at two.

Evidence, if there are too few tasks to hold out: with W integrated out,

    J + (k d / 2) log kappa + (1/2) logdet H - (1/2) logdet Lambda - (p / 2) log T,
    Lambda = sum_t phi_t phi_t^T (x) (I - A_t^-1) + kappa diag(1, .., 1, 0) (x) I,

with A_t as in `inner.posterior`, and p the number of free entries of H.
"""

from collections import defaultdict
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from condmeta.inner.posterior import Gaussian, posterior_of_statistics, precision
from condmeta.inner.squared import SquaredState
from condmeta.meta.ascent import Stopping
from condmeta.meta.prior import METRICS, SMALLEST, LearnedPrior, Prior
from condmeta.meta.ridge import learn_prior
from condmeta.meta.selection import EVIDENCE, Selection, close_to_best, select, task_rounds

KAPPAS = (np.inf, 100.0, 10.0, 1.0, 0.1)  # from no map to a free one: each starts the next
NOISES = ("shared", "per_task")
MIN_TASKS = 20  # with points to judge by; with fewer tasks the evidence chooses
ROUGH = Stopping(tol=0.05, max_evaluations=60)  # of fits that are only compared
TIE = 1e-3  # relative difference of two scores that counts as none
LOG_DENSITY_TIE = 3.0  # difference of two log densities that counts as none
MARGIN = 0.05  # a candidate further behind the best than this share drops out,
MARGIN_ERRORS = 4.0  # and so does a candidate behind it by this many standard errors


class RidgeSetting(NamedTuple):
    """One setting of the learner."""

    metric: str
    noise: str
    kappa: float


class SplitStatistics(NamedTuple):
    """Statistics of tasks: of all their points, and of the two halves apart."""

    whole: SquaredState
    support: SquaredState
    query: SquaredState


class HeldOutFeatures(NamedTuple):
    """Features (T, k) of held-out tasks: with their support points, and without any points."""

    with_support: np.ndarray
    without: np.ndarray


def choose(
    halves: SplitStatistics, Phi, shown: HeldOutFeatures, fold, metrics, noises, kappas, n_jobs=1
) -> Selection:
    """Choose among all combinations of metrics, noises and kappas.

    Phi (T, k), standardised; fold (T,) int: the round in which a task is held out. With no column
    in Phi only kappa = infinity is tried. `start` of the result is a fit of the chosen setting.
    """
    kappas = tuple(sorted(kappas, reverse=True)) if Phi.shape[1] else (np.inf,)
    candidates = [RidgeSetting(*parts) for parts in product(metrics, noises, kappas)]
    if len(candidates) == 1:
        return Selection.given(candidates[0])
    if np.sum(halves.query.count > 0) < MIN_TASKS:
        return choose_by_evidence(halves.whole, Phi, candidates, n_jobs)
    return _by_held_out(halves, Phi, shown, fold, candidates, n_jobs)


def _rank(candidate: RidgeSetting) -> int:
    return list(METRICS).index(candidate.metric)


def _simplest(candidates: list[RidgeSetting]) -> RidgeSetting:
    return min(candidates, key=lambda c: (-c.kappa, _rank(c), c.noise != "shared"))


def _by_held_out(halves, Phi, shown, fold, candidates, n_jobs) -> Selection:
    """Choose by the errors of the candidates that stay in the race to the last fold."""
    density: dict[tuple[str, float], float] = defaultdict(float)  # sum of log densities of tasks
    rough_fit = partial(learn_prior, stopping=ROUGH, n_jobs=n_jobs)

    def judge(train, held, left):
        whole, support, query = (part.take(held) for part in halves)
        learn = partial(rough_fit, halves.whole.take(train), Phi[train])
        for (metric, kappa), (prior, *_) in path(left, learn):
            alone = _errors(query, prior.theta(shown.without[held]))
            theta = prior.theta(shown.with_support[held])
            found = posterior_of_statistics(whole, theta, prior.L, prior.s2, n_jobs, False)
            density[metric, kappa] += float(found[3].sum())
            for candidate in [c for c in left if (c.metric, c.kappa) == (metric, kappa)]:
                inner = Gaussian(prior.L, prior.s2, candidate.noise == "per_task")
                adapted = _errors(query, inner.posterior(support, theta, n_jobs).mean)
                yield candidate, [alone, adapted]

    def decide(losses, scores):
        close = close_to_best(scores, TIE)
        least = max(density[c.metric, c.kappa] for c in close) - LOG_DENSITY_TIE
        return _simplest([c for c in close if density[c.metric, c.kappa] >= least])

    folds = list(task_rounds(fold, halves.query.count > 0))
    points = sum(halves.query.count[held].sum() for _, held in folds)
    selection = select(
        candidates, [partial(judge, *parts) for parts in folds], decide,
        score=lambda errors: _mean_error(errors) / points, drop=_drop_behind,
        initial=np.empty((2, 0)), join=lambda before, errors: np.hstack([before, errors]),
    )  # fmt: skip
    # Fit along the same path as the folds did: J may have a higher maximum that was not judged.
    chosen = selection.chosen
    simpler = [c for c in candidates if c.kappa == chosen.kappa and _rank(c) <= _rank(chosen)]
    *_, (_, learned) = path(simpler, partial(rough_fit, halves.whole, Phi))
    return selection._replace(start=learned.prior)


def _errors(query: SquaredState, w) -> np.ndarray:
    """Return the root mean square errors of tasks, times their points (T,)."""
    return np.sqrt(query.squared_errors(w) * query.count)


def _mean_error(errors: np.ndarray) -> float:
    """Return the geometric mean of the sums of errors (2, T): without points, and adapted."""
    return float(np.sqrt(np.prod(errors.sum(axis=1))))


def _drop_behind(errors: dict[RidgeSetting, np.ndarray]) -> dict[RidgeSetting, np.ndarray]:
    """Drop the candidates that are clearly behind the best one on the tasks judged so far."""
    best = min(errors.values(), key=_mean_error)
    total = np.maximum(best.sum(axis=1, keepdims=True), SMALLEST)

    def stays(found: np.ndarray) -> bool:
        parts = ((found - best) / total).mean(axis=0)  # of the relative difference, task by task
        behind, T = parts.sum(), len(parts)
        spread = MARGIN_ERRORS * np.sqrt(T) * parts.std() if T >= MIN_TASKS else np.inf
        return behind <= min(MARGIN, max(spread, TIE))

    return {candidate: found for candidate, found in errors.items() if stays(found)}


def choose_by_evidence(stats: SquaredState, Phi, candidates, n_jobs, s2=None) -> Selection:
    """Choose by the evidence, which assumes shared noise; scores are minus its logarithms.

    Of settings as good as the best the simplest is taken. `s2` is the noise where it is known.
    """
    noise = "shared" if any(c.noise == "shared" for c in candidates) else candidates[0].noise
    fit = partial(learn_prior, noise=s2, stopping=ROUGH, n_jobs=n_jobs)
    priors, rough_fit = {}, partial(fit, stats, Phi)

    def judge(left):
        for (metric, kappa), learned in path(left, rough_fit):
            candidate = RidgeSetting(metric, noise, kappa)
            priors[candidate] = learned.prior
            yield candidate, -evidence(stats, Phi, metric, kappa, learned)

    def decide(losses, scores):
        return _simplest(close_to_best(scores, TIE))

    plain = [candidate for candidate in candidates if candidate.noise == noise]
    selection = select(plain, [judge], decide, method=EVIDENCE)
    return selection._replace(start=priors[selection.chosen])


def path(candidates, learn):
    """Yield the fits of all pairs (metric, kappa), each from the one before it.

    The first kappa of a metric starts from the first kappa of the simpler metric;
    `learn(metric, kappa, start)` fits one pair.
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


def evidence(stats: SquaredState, Phi, metric: str, kappa: float, learned: LearnedPrior) -> float:
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
    Lambda[np.arange(len(ridge)), np.arange(len(ridge))] += ridge
    # b is integrated over the directions that some row has: the likelihood is flat in the others.
    sizes, directions = np.linalg.eigh(stats.gram.sum(axis=0))
    flat = L.T @ directions[:, sizes <= d * np.finfo(float).eps * sizes[-1]]
    Lambda[-d:, -d:] += flat @ flat.T
    logdet = np.log(np.maximum(np.linalg.eigvalsh(Lambda), SMALLEST)).sum()
    free = {"identity": 1, "diagonal": d, "full": d * (d + 1) // 2}[metric]
    value = learned.objective + (k * d / 2 * np.log(kappa) if k else 0.0)
    value = value + np.log(np.diag(L)).sum() - logdet / 2
    return float(value - free / 2 * np.log(len(phi)))
