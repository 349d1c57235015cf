"""Levels that go with the inputs of a task: against dense normal distributions."""

from __future__ import annotations

import numpy as np
import pytest

from condmeta.inner.context import Context
from condmeta.inner.posterior import Gaussian
from condmeta.inner.squared import SquaredState
from condmeta.meta.blocks import OneBlock
from condmeta.meta.context import axes_of_inputs


def draw_context(p=2, seed=0):
    """Return a context, and B, V and gamma in the coordinates of x."""
    rng = np.random.default_rng(seed)
    axes, shares = rng.normal(size=(p, p)), rng.uniform(0.1, 0.9, size=p)
    context = Context(rng.normal(size=p), axes, shares, rng.normal(size=p))
    back = np.linalg.inv(axes)
    between, within = back @ np.diag(shares) @ back.T, back @ np.diag(1 - shares) @ back.T
    return context, between, within, axes.T @ context.effect


def rows_of(x):
    return np.column_stack([x, np.ones(len(x))])


def blocks_of(rows, y, offsets):
    return OneBlock.of(SquaredState.of(rows, y, offsets), np.empty((len(offsets) - 1, 0)))


def state_of(x, y):
    return SquaredState.of(rows_of(x), y, np.array([0, len(y)]))


def posterior_of_mean(x, context, between, within):
    """Return mean and covariance of m_t given inputs x (n, p), by dense conditioning."""
    n = len(x)
    cov = np.kron(np.ones((n, n)), between) + np.kron(np.eye(n), within)
    cross = np.kron(np.ones((1, n)), between)
    gain = np.linalg.solve(cov, cross.T).T
    mean = context.center + gain @ (x - context.center).ravel()
    return mean, between - gain @ cross.T


@pytest.mark.parametrize("n", [1, 2, 7])
def test_level_and_its_variance_are_those_of_dense_conditioning(n):
    context, between, within, gamma = draw_context()
    x = np.random.default_rng(n).normal(size=(n, 2))
    mean, covariance = posterior_of_mean(x, context, between, within)
    level = context.levels(state_of(x, np.zeros(n)))
    np.testing.assert_allclose(level, gamma @ (mean - context.center))
    np.testing.assert_allclose(context.variances([n]), gamma @ covariance @ gamma)
    assert context._replace(included=1e9).variances([n]) == 0


def test_a_task_without_points_has_the_slopes_of_the_pooled_regression():
    context, between, within, gamma = draw_context(3)
    inner = Gaussian(np.eye(4), 1.0, False, context)
    theta = np.array([[1.0, -2.0, 0.5, 3.0]])
    mean = inner.posterior(SquaredState.start(1, 4), theta).mean[0]
    slopes = theta[0, :3] + np.linalg.solve(between + within, between @ gamma)
    np.testing.assert_allclose(mean[:3], slopes)
    np.testing.assert_allclose(mean - theta[0], context.start())
    assert mean @ [*context.center, 1] == pytest.approx(theta[0] @ [*context.center, 1])


def test_predictions_are_those_of_dense_conditioning_if_levels_alone_vary(engine):
    """The model: y = <x, slopes> + level, level = b + gamma (m - c) + noise of variance h."""
    context, between, within, gamma = draw_context()
    slopes, b, h, s2, n = np.array([0.7, -1.2]), 2.0, 0.4, 0.3, 3
    rng = np.random.default_rng(5)
    x, y, new = rng.normal(size=(n, 2)), rng.normal(size=n), rng.normal(size=2)
    factor = np.zeros((3, 3))
    factor[-1, -1] = np.sqrt(h)
    inner = Gaussian(factor, s2, False, context)
    mean = inner.posterior(state_of(x, y), np.array([[*slopes, b]])).mean[0]

    with_new = posterior_of_mean(np.vstack([x, new]), context, between, within)[0]
    variance = h + gamma @ posterior_of_mean(x, context, between, within)[1] @ gamma
    start = b + gamma @ (with_new - context.center)
    share = n * variance / (n * variance + s2)
    level = start + share * np.mean(y - x @ slopes - start)
    assert mean @ [*new, 1] == pytest.approx(new @ slopes + level)


def test_standard_deviations_include_the_level_that_unknown_inputs_leave_open(engine):
    """The prior covariance H + v e e^T, in the textbook form of the posterior covariance."""
    context, *_ = draw_context()
    rng = np.random.default_rng(6)
    x, y, new = rng.normal(size=(3, 2)), rng.normal(size=3), rows_of(rng.normal(size=(4, 2)))
    L, s2 = np.tril(rng.normal(size=(3, 3))), 0.3
    for n in (0, 1, 3):
        prior = L @ L.T
        prior[-1, -1] += context.variances([n])[0]
        Z = rows_of(x[:n])
        gain = prior @ Z.T @ np.linalg.inv(Z @ prior @ Z.T + s2 * np.eye(n))
        P = prior - gain @ Z @ prior
        inner, state = Gaussian(L, s2, False, context), state_of(x[:n], y[:n])
        found = inner.spread(state, np.zeros((1, 3)), new, np.zeros(4, int))
        np.testing.assert_allclose(found, np.sqrt(np.einsum("ni,ij,nj->n", new, P, new) + s2))


def test_labels_with_a_precision_are_still_one_input_each():
    context, *_ = draw_context()
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(3, 2)), rng.normal(size=3)
    plain = state_of(x, y)
    weight = np.column_stack([np.ones(3), np.full(3, 9.0)])
    precise = SquaredState.of(rows_of(x), y, np.array([0, 3]), weight)
    np.testing.assert_allclose(context.levels(precise), context.levels(plain))
    np.testing.assert_allclose(context.of_row(precise), context.of_row(plain))


def test_with_many_points_the_context_does_not_matter():
    context, *_ = draw_context()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100_000, 2))
    y = x @ [1.0, 2.0] + 5.0 + 0.1 * rng.normal(size=len(x))
    theta, L = np.zeros((1, 3)), 2 * np.eye(3)
    plain, other = (
        Gaussian(L, 0.01, False, each).posterior(state_of(x, y), theta).mean
        for each in (None, context)
    )
    np.testing.assert_allclose(plain, other, atol=1e-3)


def test_shares_of_variance_between_tasks_are_estimated():
    rng = np.random.default_rng(0)
    m = rng.normal(size=(4000, 2)) * [3.0, 0.0] + [1.0, -1.0]
    x = m[:, None] + rng.normal(size=(4000, 5, 2)) * [1.0, 2.0]
    stats = SquaredState.of(rows_of(x.reshape(-1, 2)), np.zeros(20_000), np.arange(4001) * 5)
    context = axes_of_inputs(OneBlock.of(stats, np.empty((4000, 0))))
    np.testing.assert_allclose(np.sort(context.shares), [0.0, 0.9], atol=0.01)
    a = (x.reshape(-1, 2) - context.center) @ context.axes.T
    np.testing.assert_allclose(np.cov(a.T), np.eye(2), atol=0.05)


def test_inputs_that_say_nothing_give_no_context():
    one = SquaredState.of(np.ones((6, 1)), np.zeros(6), np.array([0, 3, 6]))
    assert axes_of_inputs(OneBlock.of(one, np.empty((2, 0)))) is None  # no inputs beside the level
    rows = rows_of(np.zeros((9, 2)))
    assert axes_of_inputs(blocks_of(rows, np.zeros(9), np.array([0, 3, 6, 9]))) is None
    rows = rows_of(np.arange(3.0)[:, None])
    assert axes_of_inputs(blocks_of(rows, np.zeros(3), np.arange(4))) is None  # one row each
