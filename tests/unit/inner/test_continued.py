"""A pass that is continued equals the pass over all points, and the recursion of the paper."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from helpers import draw_task

import condmeta as cm
from condmeta.inner.algorithms import Batch, Online
from condmeta.inner.coin import Coin
from condmeta.inner.no_adaptation import NoAdaptation
from condmeta.inner.squared import SquaredState
from condmeta.losses import Absolute, get_loss

LAM = 0.7
CUTS = [0, 3, 4, 9]  # chunks of one task's points


def continued(inner, theta, X, y):
    """Solve one task, one chunk of its points after the other."""
    solved = None
    for lo, hi in pairwise(CUTS):
        state = None if solved is None else solved.state
        part = X[lo:hi], y[lo:hi], np.array([0, hi - lo])
        solved = inner.solve_tasks(theta[None], *part, state=state)
    return solved


@pytest.mark.parametrize("loss", ["absolute", "huber", "pinball", "squared"])
def test_online_passes_are_the_recursion_of_the_paper(engine, loss):
    theta, X, y = draw_task(np.random.default_rng(1), 9, 3)
    slope, w, iterates = get_loss(loss).slope, theta, []
    for i, (x, label) in enumerate(zip(X, y, strict=True), start=1):
        iterates.append(w)
        s = float(slope(x @ w, label))
        w = w - (s * x + LAM * (w - theta)) / (LAM * i)
    solved = continued(Online(LAM, loss), theta, X, y)
    np.testing.assert_allclose(solved.coef[0], np.mean(iterates, axis=0), rtol=1e-10)
    np.testing.assert_allclose(solved.state.slope_sum[0] / 9, LAM * (theta - w), rtol=1e-10)


def test_online_passes_remember_the_longest_row(engine):
    """It enters the size of a residual that counts as zero."""
    theta, X, y = draw_task(np.random.default_rng(2), 9, 3)
    X[1] *= 100
    state = continued(Online(LAM, "absolute"), theta, X, y).state
    assert state.radius[0] == pytest.approx(np.linalg.norm(X, axis=1).max())
    assert state.count[0] == 9


def test_bets_are_the_recursion_of_krichevsky_and_trofimov(engine):
    theta, X, y = draw_task(np.random.default_rng(3), 9, 3)
    R, wealth, g, iterates = 1.5, 0.8, np.zeros(3), []
    assert (np.linalg.norm(X, axis=1) > R).any()
    for i, (x, label) in enumerate(zip(X, y, strict=True), start=1):
        w = theta - wealth * g / (R * i)
        iterates.append(w)
        s = np.sign(x @ w - label) * min(1.0, R / np.linalg.norm(x))
        wealth -= s * x @ (w - theta) / R
        g = g + s * x
    solved = continued(Coin(R, 0.8), theta, X, y)
    np.testing.assert_allclose(solved.coef[0], np.mean(iterates, axis=0), rtol=1e-10)
    np.testing.assert_allclose(solved.state.wealth[0], wealth, rtol=1e-10)


def test_squared_batch_solves_are_one_ridge_around_theta(engine):
    theta, X, y = draw_task(np.random.default_rng(4), 9, 3)
    expected = theta + np.linalg.solve(X.T @ X + 9 * LAM * np.eye(3), X.T @ (y - X @ theta))
    solved = continued(Batch(LAM, "squared"), theta, X, y)
    np.testing.assert_allclose(solved.coef[0], expected, rtol=1e-10)
    np.testing.assert_allclose(solved.state.square[0], y @ y)
    np.testing.assert_allclose(solved.state.squared_errors(expected[None])[0], sq(y - X @ expected))


def sq(v):
    return float(v @ v)


def test_a_pooled_model_counts_all_points():
    theta, X, y = draw_task(np.random.default_rng(5), 9, 3)
    assert continued(NoAdaptation(Absolute()), theta, X, y).state.count[0] == 9


def test_update_adds_to_the_points_that_a_task_has():
    model = cm.FixedBiasRegressor().fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0], task=list("aab"))
    model.update([[1.0], [1.0]], [1.0, 1.0], task=list("ba"))
    assert model.n_points([[0.0], [0.0]], task=list("ab")).tolist() == [3, 2]


@pytest.mark.parametrize("sizes", [[3, 0, 5], [4, 4, 4]])
def test_statistics_of_more_points_are_those_of_all(sizes):
    """Ragged tasks and tasks of one size are summed up in different ways."""
    rng = np.random.default_rng(0)
    first, more = (np.append(0, np.cumsum(each)) for each in ([2, 3, 1], sizes))
    parts = [(rng.normal(size=(at[-1], 2)), rng.normal(size=at[-1]), at) for at in (first, more)]
    found = SquaredState.of(*parts[0]).extend(*parts[1])
    for t in range(3):
        X, y = (np.concatenate([p[j][p[2][t] : p[2][t + 1]] for p in parts]) for j in (0, 1))
        np.testing.assert_allclose(found.gram[t], X.T @ X, rtol=1e-12)
        np.testing.assert_allclose(found.moment[t], X.T @ y, rtol=1e-12)
        np.testing.assert_allclose(found.square[t], y @ y, rtol=1e-12)
        assert found.count[t] == len(y)
