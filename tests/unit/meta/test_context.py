"""Learn the context: against generalised least squares with dense covariances."""

from __future__ import annotations

import numpy as np
import pytest

from condmeta.inner.posterior import information
from condmeta.inner.squared import SquaredState
from condmeta.meta import context as module
from condmeta.meta.ascent import Stopping
from condmeta.meta.blocks import Leaves, OneBlock
from condmeta.meta.context import axes_of_inputs, improve_context, learn_context, without_context
from condmeta.meta.prior import Prior
from condmeta.meta.ridge import learn_from_blocks


def draw(T=80, seed=0):
    """Return rows (T, 5, 3), which end with a one, and labels (T, 5): levels go with inputs."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=(T, 1, 2)) * [2.0, 0.5]
    x = mean + rng.normal(size=(T, 5, 2)) + [1.0, -1.0]
    rows = np.concatenate([x, np.ones((T, 5, 1))], axis=2)
    level = 3 * mean[:, :, 0] - mean[:, :, 1] + 0.3 * rng.normal(size=(T, 1))
    return rows, x @ [-1.0, 0.5] + level + 0.5 * rng.normal(size=(T, 5))


def statistics(rows, y):
    T, n, d = rows.shape
    return SquaredState.of(rows.reshape(-1, d), y.ravel(), np.arange(T + 1) * n)


def one_block(stats):
    return OneBlock.of(stats, np.empty((len(stats.count), 0)))


def prior(seed=1):
    rng = np.random.default_rng(seed)
    return Prior(rng.normal(size=(1, 3)), np.tril(rng.normal(size=(3, 3))), 0.4)


def test_information_is_that_of_dense_covariances():
    rows, y = draw(4)
    given = prior()
    V = rows @ given.H @ np.swapaxes(rows, 1, 2) + given.s2 * np.eye(5)
    expected = np.swapaxes(rows, 1, 2) @ np.linalg.inv(V) @ rows
    total, of_level = information(statistics(rows, y), given.L, given.s2)
    np.testing.assert_allclose(total, expected.sum(axis=0))
    np.testing.assert_allclose(of_level, expected[:, -1])


def test_labels_without_the_context_are_minus_the_expected_levels():
    rows, y = draw(6)
    stats = statistics(rows, y)
    context = axes_of_inputs(one_block(stats))._replace(effect=np.array([1.0, -2.0]))
    expected = statistics(rows, y - context.levels(stats)[:, None])
    for a, b in zip(without_context(stats, context), expected, strict=True):
        np.testing.assert_allclose(a, b)


def test_the_effect_is_that_of_generalised_least_squares():
    """Over the effect and one change of all means, with a ridge on the effect; twice is once."""
    rows, y = draw()
    stats, given = statistics(rows, y), prior()
    blocks = one_block(stats)
    start = axes_of_inputs(blocks)
    found = improve_context(blocks, given, start)
    V = rows @ given.H @ np.swapaxes(rows, 1, 2) + given.s2 * np.eye(5)
    half = np.linalg.inv(np.linalg.cholesky(V))
    levels = np.repeat(start.means(stats)[:, None], 5, axis=1)
    design = (half @ np.concatenate([rows, levels], axis=2)).reshape(-1, 5)
    labels = (half @ (y - rows @ given.W[0])[:, :, None]).ravel()
    known = information(stats, given.L, given.s2)[0][-1, -1] / len(y)
    ridge = np.diag([0, 0, 0, 1.0, 1.0]) * module.RIDGE * known
    expected = np.linalg.solve(design.T @ design + ridge, design.T @ labels)[3:]
    np.testing.assert_allclose(found.effect, expected, rtol=1e-6)
    again = improve_context(blocks, given, found)
    np.testing.assert_allclose(again.effect, expected, rtol=1e-6)
    expected = found._replace(included=0.0).variances(stats.count).mean()
    assert found.included == pytest.approx(expected)


def test_leaves_give_what_one_block_does():
    rows, y = draw()
    stats, given = statistics(rows, y), prior()
    leaves = Leaves(stats.take, np.split(np.arange(80), 4), np.ones((80, 1)), 2)
    one, other = (
        improve_context(blocks, given, axes_of_inputs(blocks))
        for blocks in (one_block(stats), leaves)
    )
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(np.abs(a), np.abs(b), rtol=1e-8)


def test_slopes_within_tasks_and_the_effect_of_means_are_found():
    rows, y = draw(2000)
    blocks = one_block(statistics(rows, y))

    def learn(blocks, start):
        return learn_from_blocks(blocks, "diagonal", np.inf, start, stopping=Stopping(0.01, 300))

    before = learn(blocks, None)
    learned, context = learn_context(blocks, before.prior, learn)
    np.testing.assert_allclose(learned.prior.W[0, :2], [-1.0, 0.5], atol=0.05)
    np.testing.assert_allclose(context.axes.T @ context.effect, [3.0, -1.0], atol=0.15)
    assert learned.objective > before.objective + 100
    assert learned.prior.H[-1, -1] < before.prior.H[-1, -1] / 2


def test_there_is_no_context_without_inputs():
    rows, y = np.ones((5, 4, 1)), np.zeros((5, 4))
    given = Prior(np.zeros((1, 1)), np.eye(1), 1.0)
    found = learn_context(one_block(statistics(rows, y)), given, lambda *_: None)
    assert found == (None, None)
