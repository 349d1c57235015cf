"""Learn the context of `inner.context`: how the levels of tasks go with the means of their inputs.

Given the prior, the effect is a generalised least-squares estimate from the levels that the prior
leaves; prior and effect are learned in turn, the prior from labels without the levels that the
inputs explain.
"""

import numpy as np

from condmeta.inner.context import Context
from condmeta.inner.posterior import information, posterior_of_statistics
from condmeta.inner.squared import SquaredState
from condmeta.meta.prior import Prior

SMALLEST_SHARE = 1e-8  # of the largest variance: a direction with less is left out
RIDGE = 1.0  # on the effect, in tasks
NO_RIDGE = 1e-9  # of a diagonal: some directions may be known by no task
TURNS = 1  # in which prior and effect are learned


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
    """Return the context with the effect that a prior with means theta (T, d) leaves.

    The effect is estimated together with a change of all theta by one vector: where inputs differ
    more between tasks than within, their slopes and the effect stand for each other.
    """
    means, shifted = context.means(stats), without_context(stats, context)
    left = posterior_of_statistics(shifted, theta, prior.L, prior.s2, n_jobs, False)[0]
    known = information(stats, prior.L, prior.s2)
    d, of_level = theta.shape[1], known[:, -1]
    ridge = RIDGE * of_level[:, -1].mean()
    system = np.zeros((d + means.shape[1],) * 2)
    system[:d, :d] = known.sum(axis=0)
    system[:d, :d][np.diag_indices(d)] *= 1 + NO_RIDGE
    system[:d, d:] = of_level.T @ means
    system[d:, :d] = system[:d, d:].T
    system[d:, d:] = (means * of_level[:, -1:]).T @ means
    system[d:, d:][np.diag_indices(means.shape[1])] += ridge
    change = np.append(left.sum(axis=0), means.T @ left[:, -1] - ridge * context.effect)
    step = np.linalg.lstsq(system, change)[0][d:]
    moved = context._replace(effect=context.effect + step, included=0.0)
    return moved._replace(included=float(moved.variances(stats.count).mean()))
