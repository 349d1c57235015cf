"""Learn the context of `inner.context`: how the levels of tasks go with the means of their inputs.

Given the prior, the effect is a generalised least-squares estimate from the levels that the prior
leaves; prior and effect are learned in turn, the prior from labels without the levels that the
inputs explain.
"""

import numpy as np

from condmeta.inner.context import Context
from condmeta.inner.posterior import information_of_level, posterior_of_statistics
from condmeta.inner.squared import SquaredState
from condmeta.meta.prior import Prior

SMALLEST_SHARE = 1e-8  # of the largest variance: a direction with less is left out
RIDGE = 10.0  # on the effect, in tasks
TURNS = 2  # in which prior and effect are learned


def axes_of_inputs(stats: SquaredState) -> Context | None:
    """Return a context without effect, from the inputs of tasks whose rows end with a one.

    The covariances between and within tasks are estimated by moments. None if there is no degree of
    freedom for one of them.
    """
    stats = stats.take(np.flatnonzero(stats.count > 0))
    n = stats.gram[:, -1, -1]
    T, p, N = len(n), stats.gram.shape[1] - 1, n.sum()
    if p == 0 or T < 3 or N <= T:
        return None
    means = stats.gram[:, -1, :-1] / n[:, None]
    center = means.mean(axis=0)
    scatter = stats.gram[:, :-1, :-1].sum(axis=0) - (means * n[:, None]).T @ means
    within = scatter / (N - T)
    between = np.cov(means, rowvar=False, ddof=1).reshape(p, p) - within * np.mean(1 / n)
    values, vectors = np.linalg.eigh(between)
    between = (vectors * np.maximum(values, 0.0)) @ vectors.T
    total, turn = np.linalg.eigh(between + within)
    kept = total > SMALLEST_SHARE * total[-1]
    if not kept.any():
        return None
    half = (turn[:, kept] / np.sqrt(total[kept])).T  # whitens the inputs
    shares, axes = np.linalg.eigh(half @ between @ half.T)
    return Context(center, axes.T @ half, np.clip(shares, 0.0, 1.0), np.zeros(len(shares)))


def learn_context(stats: SquaredState, prior: Prior, Phi, learn, n_jobs=1):
    """Learn prior and context in turn; return what `learn` does, and the context, or None.

    Phi (T, k); `learn(stats, start)` fits a prior to other labels and returns a `LearnedPrior`. Its
    H has the levels that the inputs of the training tasks do not explain; `Context.variances` adds
    what fewer inputs leave open.
    """
    context = axes_of_inputs(stats)
    if context is None:
        return None, None
    learned, context = None, improve_context(stats, prior.theta(Phi), prior, context, n_jobs)
    for _ in range(TURNS):
        learned = learn(without_context(stats, context), prior)
        prior = learned.prior
        context = improve_context(stats, prior.theta(Phi), prior, context, n_jobs)
    return learned, context


def without_context(stats: SquaredState, context: Context) -> SquaredState:
    """Return the statistics of labels minus the expected shifts of their tasks' levels."""
    shift = context.levels(stats)
    moment = stats.moment - shift[:, None] * stats.gram[:, -1]
    square = stats.square - shift * (stats.moment[:, -1] + moment[:, -1])
    return stats._replace(moment=moment, square=np.maximum(square, 0.0))


def improve_context(
    stats: SquaredState, theta, prior: Prior, context: Context, n_jobs=1
) -> Context:
    """Return the context with the effect that a prior with means theta (T, d) leaves."""
    means, shifted = context.means(stats), without_context(stats, context)
    left = posterior_of_statistics(shifted, theta, prior.L, prior.s2, n_jobs, False)[0][:, -1]
    noise = np.full(len(theta), prior.s2)
    known = information_of_level(stats, prior.L, noise, n_jobs)[:, -1]
    system = (means * known[:, None]).T @ means
    ridge = RIDGE * known.mean()
    system[np.diag_indices_from(system)] += ridge
    step = np.linalg.solve(system, means.T @ left - ridge * context.effect)
    moved = context._replace(effect=context.effect + step, included=0.0)
    return moved._replace(included=float(moved.variances(stats.count).mean()))
