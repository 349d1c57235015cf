"""Learn the context of `inner.context`: how the levels of tasks go with the means of their inputs.

Given the prior, the effect is a generalised least-squares estimate from the levels that the prior
leaves; prior and effect are learned in turn, the prior from labels without the levels that the
inputs explain.
"""

from functools import partial

import numpy as np

from condmeta.inner.context import Context
from condmeta.inner.posterior import information, posterior_of_statistics
from condmeta.inner.squared import SquaredState
from condmeta.meta.blocks import Block, Blocks, Sums
from condmeta.meta.prior import Prior

SMALLEST_SHARE = 1e-8  # of the largest variance: a direction with less is left out
RIDGE = 1.0  # on the effect, in tasks
NO_RIDGE = 1e-9  # of a diagonal: some directions may be known by no task
TURNS = 1  # in which prior and effect are learned


def axes_of_inputs(blocks: Blocks) -> Context | None:
    """Return a context without effect, from the inputs of tasks whose rows end with a one.

    The covariances between and within tasks are estimated by moments. None if there is no degree of
    freedom for one of them.
    """
    T, N, inverse, total = blocks.map_sum(_sums_of_inputs)
    p = len(total)
    if p == 0 or T < 3 or N <= T:
        return None
    center = total / T
    scatter, squares = blocks.map_sum(_squares_of_inputs, center)
    within = scatter / (N - T)
    between = squares / (T - 1) - within * (inverse / T)
    values, vectors = np.linalg.eigh(between)
    between = (vectors * np.maximum(values, 0.0)) @ vectors.T
    total, turn = np.linalg.eigh(between + within)
    kept = total > SMALLEST_SHARE * total[-1]
    if not kept.any():
        return None
    half = (turn[:, kept] / np.sqrt(total[kept])).T  # whitens the inputs
    shares, axes = np.linalg.eigh(half @ between @ half.T)
    return Context(center, axes.T @ half, np.clip(shares, 0.0, 1.0), np.zeros(len(shares)))


def _sums_of_inputs(block: Block) -> Sums:
    """Return the numbers of tasks and of points, and the sums of 1 / n and of mean inputs."""
    n, means = _means(block.stats)
    return np.int64(len(n)), n.sum(), (1 / n).sum(), means.sum(axis=0)


def _squares_of_inputs(block: Block, center) -> Sums:
    """Return the squares of inputs around their tasks' means, and of these around the center."""
    stats = block.stats
    n, means = _means(stats)
    gram = stats.gram[stats.count > 0, :-1, :-1].sum(axis=0)
    means_around = means - center
    return gram - (means * n[:, None]).T @ means, means_around.T @ means_around


def _means(stats: SquaredState) -> tuple[np.ndarray, np.ndarray]:
    gram = stats.gram[stats.count > 0]
    return gram[:, -1, -1], gram[:, -1, :-1] / gram[:, -1, -1:]


def learn_context(blocks: Blocks, prior: Prior, learn):
    """Learn prior and context in turn; return what `learn` does, and the context, or None.

    `learn(blocks, start)` fits a prior to other labels and returns a `LearnedPrior`. Its H has the
    levels that the inputs of the training tasks do not explain; `Context.variances` adds what fewer
    inputs leave open.
    """
    context = axes_of_inputs(blocks)
    if context is None:
        return None, None
    learned, context = None, improve_context(blocks, prior, context)
    for _ in range(TURNS):
        learned = learn(blocks.changed(partial(without_context, context=context)), prior)
        prior = learned.prior
        context = improve_context(blocks, prior, context)
    return learned, context


def without_context(stats: SquaredState, context: Context) -> SquaredState:
    """Return the statistics of labels minus the expected shifts of their tasks' levels."""
    shift = context.levels(stats)
    moment = stats.moment - shift[:, None] * stats.gram[:, -1]
    square = stats.square - shift * (stats.moment[:, -1] + moment[:, -1])
    return stats._replace(moment=moment, square=np.maximum(square, 0.0))


def improve_context(blocks: Blocks, prior: Prior, context: Context) -> Context:
    """Return the context with the effect that a prior leaves.

    The effect is estimated together with a change of all theta by one vector: where inputs differ
    more between tasks than within, their slopes and the effect stand for each other.
    """
    known, both, of_effect, left, of_left, open_, T = blocks.map_sum(_equations, prior, context)
    d = len(left)
    ridge = RIDGE * known[-1, -1] / T
    known[np.diag_indices(d)] *= 1 + NO_RIDGE
    of_effect[np.diag_indices(len(of_effect))] += ridge
    system = np.block([[known, both], [both.T, of_effect]])
    change = np.append(left, of_left - ridge * context.effect)
    effect = context.effect + np.linalg.lstsq(system, change)[0][d:]
    return context._replace(effect=effect, included=float(open_ @ effect**2 / T))


def _equations(block: Block, prior: Prior, context: Context) -> Sums:
    """Return the parts of the normal equations, the variances left open, and the number of tasks.

    Where the effect is 1 in each coordinate, inputs leave the variances (q,) of levels open.
    """
    stats, Phi1, n_jobs = block.stats, block.Phi1, block.n_jobs
    theta = Phi1[:, -len(prior.W) :] @ prior.W
    means, shifted = context.means(stats), without_context(stats, context)
    left = posterior_of_statistics(shifted, theta, prior.L, prior.s2, n_jobs, False)[0]
    known, of_level = information(stats, prior.L, prior.s2)
    of_effect = (means * of_level[:, -1:]).T @ means
    open_ = (context.weight(stats.count) * (1 - context.shares)).sum(axis=0)
    parts = known, of_level.T @ means, of_effect
    return *parts, left.sum(axis=0), means.T @ left[:, -1], open_, np.int64(len(theta))
