"""The certificate of the convex surrogate with rough inner solves, and the rules of its choice."""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
import pytest

from condmeta.inner.batch import batch_tasks, certified_gap
from condmeta.inner.solution import objective
from condmeta.losses import Absolute, Huber
from condmeta.meta.erm import BASE, Surrogate
from condmeta.meta.erm_choice import (
    DECADES,
    ERMSetting,
    HeldOutTasks,
    PointSplit,
    lam_grid,
    largest_lam_within_noise,
)
from condmeta.tasks.points import Points

LAM = 0.4
OFFSETS = np.array([0, 3, 7, 12])


class Smooth:
    """sqrt(1 + e^2) - 1, which is solved by coordinate ascent."""

    def value(self, z, y):
        return np.sqrt(1 + (z - y) ** 2) - 1

    def slope(self, z, y):
        return (z - y) / np.sqrt(1 + (z - y) ** 2)

    def conjugate(self, a, y):
        return a * y + 1 - np.sqrt(1 - np.minimum(a**2, 1))


def draw(weighted):
    rng = np.random.default_rng(3)
    X, y, Phi = rng.normal(size=(12, 2)), 3 * rng.normal(size=12), rng.normal(size=(3, 2))
    return Points(X, y, OFFSETS, rng.uniform(0.5, 3, 12) if weighted else None), Phi


@pytest.mark.parametrize("kappa", [2.0, 5 * BASE])
@pytest.mark.parametrize("weighted", [False, True])
def test_value_and_gap_are_those_of_primal_and_dual(monkeypatch, weighted, kappa):
    """Inner solves that stop early: F is the primal value at their weights, the gap is F - D."""
    monkeypatch.setattr(sys.modules[certified_gap.__module__], "MAX_ITER", 1)
    (X, y, offsets, times), Phi = draw(weighted)
    W = np.random.default_rng(4).normal(size=(3, 2))
    model = Surrogate(Points(X, y, offsets, times), Phi, Smooth(), LAM, kappa, tol=1e-9)
    found = model.evaluate(W)
    Phi1 = np.column_stack([Phi, np.ones(3)])
    theta, rho = Phi1 @ W, np.array([kappa, kappa, min(kappa, BASE)]) * LAM / 3
    solved = batch_tasks(theta, X, y, offsets, LAM, Smooth(), 1e-9, 1, times)
    m = np.ones(12) if times is None else times
    primal, dual, slack = np.sum(rho[:, None] * W**2) / 2, 0.0, 0.0
    for t, (lo, hi) in enumerate(pairwise(offsets)):
        part = X[lo:hi], y[lo:hi]
        primal += objective(solved[0][t], theta[t], *part, LAM, Smooth(), m[lo:hi]) / 3
        a, g = solved[3][lo:hi], solved[1][t]
        conjugate = np.average(Smooth().conjugate(a, y[lo:hi]), weights=m[lo:hi])
        dual -= (g @ g / (2 * LAM) + conjugate) / 3
        slack += solved[2][t] / 3
    G = Phi1.T @ solved[1] / 3
    dual -= np.sum(G**2 / rho[:, None]) / 2
    assert slack > 1e-4
    np.testing.assert_allclose(found.objective, primal, rtol=1e-10)
    np.testing.assert_allclose(found.gap, primal - dual, rtol=1e-10)
    np.testing.assert_allclose(found.gradient, G + rho[:, None] * W, rtol=1e-10)


def test_a_larger_lam_wins_within_one_standard_error():
    """Of nine tasks, the difference of the larger lam is d each, with a spread of one."""
    noise = np.array([-1.0, 0.0, 1.0] * 3)
    error = noise.std() / np.sqrt(9)  # of the mean difference
    for d, expected in ((0.9 * error, 10.0), (1.1 * error, 1.0)):
        losses = {ERMSetting(1.0, 1.0): np.full(9, 5.0), ERMSetting(10.0, 1.0): 5.0 + d + noise}
        assert largest_lam_within_noise(losses).lam == expected


def test_lam_is_in_the_units_of_the_data():
    X, y = np.array([[3.0, 4.0], [0.0, 1.0]]), np.array([2.0, -4.0])
    points = Points(X, y, np.array([0, 2]), None)
    # mean of ||x||^2 is 13, the median of |y| is 3; slopes 1 and 1.35 there
    assert lam_grid(points, Absolute()) == pytest.approx([13 / 3 * 10**e for e in DECADES])
    assert lam_grid(points, Huber())[1] == pytest.approx(13 * 1.35 / 3)
    scaled = Points(X, 10 * y, np.array([0, 2]), None)
    assert lam_grid(scaled, Absolute())[1] == pytest.approx(1.3 / 3)


@pytest.mark.parametrize("weighted", [False, True])
def test_held_out_tasks_are_solved_with_the_lam_of_all_their_points(weighted):
    """m of n points have the weight m / n against lam, so that they are solved with lam n / m."""
    points, Phi = draw(weighted)
    shown = np.array([1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0], bool)
    view = PointSplit(points.where(shown), points.where(~shown), Phi)
    W, loss = np.random.default_rng(5).normal(size=(3, 2)), Absolute()
    held = np.array([0, 2])
    found = HeldOutTasks.of(points, view, held).losses(W, LAM, loss, 1)
    for at, t in enumerate(held):
        support, query = (part.take(np.array([t])) for part in (view.support, view.query))
        lam = LAM * points.count[t] / support.count[0]
        theta = (Phi[t] @ W[:-1] + W[-1])[None]
        how = support.offsets, lam, loss, 1e-9, 1, support.weight
        w = batch_tasks(theta, support.X, support.y, *how)[0][0]
        m = np.ones(len(query.y)) if query.weight is None else query.weight
        np.testing.assert_allclose(found[at], m @ np.abs(query.X @ w - query.y), rtol=2e-2)
