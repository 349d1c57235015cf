"""Answers that do not depend on where an iteration stops, and parts that have a closed form."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import draw_task

from condmeta.inner import online
from condmeta.inner.batch import batch_tasks
from condmeta.inner.posterior import Gaussian
from condmeta.losses import LOSSES, get_loss

PIECEWISE = [name for name in LOSSES if name not in ("squared", "logistic")]


@pytest.mark.parametrize("loss", PIECEWISE)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_rough_tolerance_gives_exact_solutions(engine, loss, weighted):
    """The interior point method only guesses which slopes are at a bound; the rest is exact."""
    rng = np.random.default_rng(len(loss))
    for d, lam in ((2, 0.05), (5, 0.3), (8, 3.0)):
        sizes = rng.integers(1, 14, 12)
        offsets = np.append(0, np.cumsum(sizes))
        _, X, y = draw_task(rng, offsets[-1], d, loss)
        theta, times = rng.normal(size=(12, d)), rng.uniform(0.3, 4, len(y)) if weighted else None
        gap = batch_tasks(theta, X, y, offsets, lam, get_loss(loss), 0.1, 1, times)[2]
        assert gap.max() < 1e-10


class OwnAbsolute:
    """The absolute loss as a user would write it: value and slope alone."""

    def value(self, z, y):
        return np.abs(z - y)

    def slope(self, z, y):
        return np.sign(z - y)


def test_a_loss_without_a_conjugate_has_the_same_dual_value():
    theta, X, y = draw_task(np.random.default_rng(0), 7, 3)
    own, built_in = online(theta, X, y, 0.4, OwnAbsolute()), online(theta, X, y, 0.4, "absolute")
    assert own.dual == pytest.approx(built_in.dual)
    assert own.gap == pytest.approx(built_in.gap)


def test_a_residual_that_is_zero_but_for_rounding_has_no_slope(engine):
    """0.1 + 0.2 is 0.3, up to rounding: whose sign must not decide."""
    theta = np.array([0.1, 0.2, -0.3])
    X = np.array([[1.0, 1.0, 1.0], [3.0, 0.0, 1.0], [0.0, 3.0, 2.0]])
    assert (X @ theta != 0).any()
    run = online(theta, X, np.zeros(3), 0.5)
    assert run.slopes.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("own_noise", [False, True])
def test_posterior_is_that_of_the_joint_normal_distribution(engine, own_noise):
    rng = np.random.default_rng(1)
    L = np.tril(rng.normal(size=(3, 3)))
    theta, X, y = draw_task(rng, 5, 3)
    inner = Gaussian(L, 0.7, own_noise)
    w, gradient, _ = inner.solve(theta, X, y)
    solved = inner.solve_tasks(theta[None], X, y, np.array([0, 5]))
    s2 = inner.posterior(solved.state, theta[None]).s2[0]
    V = X @ L @ L.T @ X.T + s2 * np.eye(5)
    np.testing.assert_allclose(w, theta + L @ L.T @ X.T @ np.linalg.solve(V, y - X @ theta))
    half = [0.5 * np.mean((X @ (w + step) - y) ** 2) for step in (*np.eye(3), *-np.eye(3))]
    np.testing.assert_allclose(gradient, np.subtract(half[:3], half[3:]) / 2)
