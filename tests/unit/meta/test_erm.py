"""The convex surrogate: against the joint program in cvxpy, and its certificate."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from condmeta.inner.batch import batch_tasks
from condmeta.losses import Absolute, EpsilonInsensitive, Huber, Pinball
from condmeta.meta.erm import BASE, Surrogate, learn_map
from condmeta.meta.erm_choice import (
    ERMSetting,
    HeldOutTasks,
    PointSplit,
    choose,
    lam_grid,
    largest_lam_within_noise,
)
from condmeta.tasks.points import Points
from condmeta.tasks.splits import fifths

LOSSES = {
    "absolute": (Absolute(), cp.abs),
    "pinball": (Pinball(0.8), lambda e: cp.maximum(-0.8 * e, 0.2 * e)),
    "huber": (Huber(), lambda e: cp.huber(e, 1.35) / 2),
    "epsilon_insensitive": (EpsilonInsensitive(), lambda e: cp.pos(cp.abs(e) - 0.1)),
}
each_loss = pytest.mark.parametrize("name", LOSSES)


def draw(T=8, d=3, k=2, low=4, high=7, seed=0):
    """Return Points of T tasks and Phi."""
    rng = np.random.default_rng([T, d, k, seed])
    sizes = rng.integers(low, high, T)
    Phi, offsets = rng.normal(size=(T, k)), np.append(0, np.cumsum(sizes))
    X = rng.normal(size=(offsets[-1], d))
    w = Phi @ rng.normal(size=(k, d)) + rng.normal(size=d) + 0.5 * rng.normal(size=(T, d))
    y = np.einsum("ij,ij->i", X, np.repeat(w, sizes, axis=0)) + rng.standard_t(2, size=len(X))
    return Points(X, y, offsets), Phi


def joint_minimum(points, Phi, value, lam, kappa):
    """Return min F over W and all v at once, by an independent solver."""
    X, y, offsets, _ = points
    (T, k), d = Phi.shape, X.shape[1]
    b, V = cp.Variable(d), cp.Variable((T, d))
    M = cp.Variable((k, d)) if k else np.zeros((0, d))
    ridge = kappa * cp.sum_squares(M) if k else 0.0
    ridge += min(kappa, BASE) * cp.sum_squares(b)
    total = lam / (2 * T) * (cp.sum_squares(V) + ridge)
    for t in range(T):
        rows = slice(offsets[t], offsets[t + 1])
        w = Phi[t] @ M + b + V[t]
        total += cp.sum(value(X[rows] @ w - y[rows])) / (T * (offsets[t + 1] - offsets[t]))
    problem = cp.Problem(cp.Minimize(total))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return problem.value


@pytest.mark.parametrize(("lam", "kappa"), [(0.1, 1.0), (1.0, 0.1), (0.3, 30.0)])
@each_loss
def test_objective_equals_the_joint_program(name, lam, kappa):
    points, Phi = draw()
    loss, value = LOSSES[name]
    learned = learn_map(points, Phi, loss, lam, kappa, tol=1e-8)
    least = joint_minimum(points, Phi, value, lam, kappa)
    assert learned.objective == pytest.approx(least, rel=1e-6)
    # The certificate is small, and cvxpy's minimum does not lie below it.
    assert learned.gap <= 1e-8 * learned.objective
    assert least >= learned.objective - learned.gap - 1e-9 * learned.objective


@each_loss
def test_certificate_holds_anywhere_and_is_the_joint_dual(name):
    """F(W) - D(a) with D written out, at maps that are far from the best."""
    points, Phi = draw()
    loss, value = LOSSES[name]
    lam, kappa, (T, k) = 0.4, 2.0, Phi.shape
    model, rng = Surrogate(points, Phi, loss, lam, kappa), np.random.default_rng(1)
    least = joint_minimum(points, Phi, value, lam, kappa)
    for size in (0.0, 0.3, 3.0):
        W = size * rng.normal(size=(k + 1, 3))
        found = model.evaluate(W)
        assert found.objective >= least - 1e-9
        assert found.objective - least <= found.gap + 1e-9
        phi = np.column_stack([Phi, np.ones(T)])
        X, y, offsets, _ = points
        _, g, _, a = batch_tasks(phi @ W, X, y, offsets, lam, loss, 1e-12, 1)
        conjugates = np.add.reduceat(loss.conjugate(a, y), offsets[:-1]) / np.diff(offsets)
        dual = -np.mean(np.sum(g**2, axis=1) / (2 * lam) + conjugates)
        dual -= np.sum((phi.T @ g / T) ** 2) / (2 * kappa * lam / T)
        assert found.objective - dual == pytest.approx(found.gap, rel=1e-7)


@each_loss
def test_gradient_is_that_of_finite_differences(engine, name):
    points, Phi = draw(seed=3)
    model = Surrogate(points, Phi, LOSSES[name][0], 0.5, 2.0, tol=1e-12)
    W = np.random.default_rng(2).normal(size=(3, 3))
    gradient, step = model.evaluate(W).gradient, 1e-6
    for at in np.ndindex(W.shape):
        shift = np.zeros_like(W)
        shift[at] = step
        ends = [model.evaluate(W + sign * shift).objective for sign in (1, -1)]
        assert gradient[at] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-6)


def test_infinite_kappa_is_no_side_information():
    points, Phi = draw()
    out = learn_map(points, Phi, Absolute(), 0.3, np.inf, tol=1e-9)
    plain = learn_map(points, Phi[:, :0], Absolute(), 0.3, BASE, tol=1e-9)
    assert not out.W[:-1].any()
    np.testing.assert_array_equal(out.W[-1:], plain.W)
    assert out.objective == pytest.approx(
        joint_minimum(points, Phi[:, :0], cp.abs, 0.3, BASE), rel=1e-6
    )


def test_a_start_changes_the_cost_alone():
    points, Phi = draw(T=30, seed=1)
    cold = learn_map(points, Phi, Absolute(), 0.3, 1.0, tol=1e-8)
    again = learn_map(points, Phi, Absolute(), 0.3, 1.0, cold.W, tol=1e-8)
    assert again.passes == 1
    assert again.objective == cold.objective


def test_units_of_the_target_change_nothing():
    """y -> c y with lam -> lam / c: the same steps, c times the map."""
    points, Phi = draw(T=20)
    one = learn_map(points, Phi, Absolute(), 0.3, 1.0)
    far = learn_map(points._replace(y=2.0**20 * points.y), Phi, Absolute(), 0.3 / 2.0**20, 1.0)
    assert far.passes == one.passes
    np.testing.assert_allclose(far.W, 2.0**20 * one.W, rtol=1e-9)


def test_few_evaluations_leave_a_gap_that_is_told():
    points, Phi = draw(T=30)
    early = learn_map(points, Phi, Absolute(), 3.0, 0.1, max_evaluations=5)
    done = learn_map(points, Phi, Absolute(), 3.0, 0.1, tol=1e-7)
    assert early.passes <= 7
    assert early.objective - done.objective <= early.gap
    assert early.gap > 1e-6 * early.objective


# -- the choice ------------------------------------------------------------------------------------


def test_fifths_judge_every_point_once():
    points, _ = draw(low=1, high=12)
    parts = fifths(points)
    judged = np.concatenate([query.y for _, query in parts])
    np.testing.assert_array_equal(np.sort(judged), np.sort(points.y))
    for support, query in parts:
        sizes = np.diff(support.offsets) + np.diff(query.offsets)
        np.testing.assert_array_equal(sizes, np.diff(points.offsets))


def test_take_returns_rows_of_tasks():
    points, _ = draw()
    some = points.take(np.array([5, 0]))
    lo, hi = points.offsets[[5, 6]]
    np.testing.assert_array_equal(some.X[: hi - lo], points.X[lo:hi])
    np.testing.assert_array_equal(some.y[hi - lo :], points.y[: points.offsets[1]])
    assert some.offsets.tolist() == [0, hi - lo, hi - lo + points.offsets[1]]


def test_left_out_points_weigh_as_if_all_were_there():
    """m of n points are solved with lam n / m."""
    points, Phi = draw()
    support, query = fifths(points)[0]
    view, lam = PointSplit(support, query, Phi), 0.7
    W = np.random.default_rng(0).normal(size=(3, 3))
    lost = HeldOutTasks.of(points, view, np.arange(8)).losses(W, lam, Absolute(), 1)
    for t in range(8):
        one, other = support.take(np.array([t])), query.take(np.array([t]))
        lam_t = lam * (points.offsets[t + 1] - points.offsets[t]) / len(one.y)
        theta = (Phi[t] @ W[:-1] + W[-1])[None]
        w = batch_tasks(theta, *one[:3], lam_t, Absolute(), 1e-10, 1)[0][0]
        assert lost[t] == pytest.approx(np.abs(other.X @ w - other.y).sum(), rel=1e-6)


def test_the_largest_lam_within_noise_is_taken():
    rng = np.random.default_rng(0)
    base = 5 + rng.random(100)
    lost = {
        ERMSetting(0.1, 1.0): base,
        ERMSetting(1.0, 1.0): base + 0.1 * rng.normal(size=100),
        ERMSetting(1.0, 10.0): base + 0.1 * rng.normal(size=100) + 0.005,
        ERMSetting(10.0, 1.0): base + 0.1 * rng.normal(size=100) + 0.1,
    }
    assert largest_lam_within_noise(lost).lam == 1.0
    lost[ERMSetting(1.0, 1.0)] = base + 1.0
    lost[ERMSetting(1.0, 10.0)] = base + 1.0
    assert largest_lam_within_noise(lost) == ERMSetting(0.1, 1.0)


def test_grid_follows_the_units_of_the_data():
    points, _ = draw()
    one = np.array(lam_grid(points, Absolute()))
    np.testing.assert_allclose(lam_grid(points._replace(y=8 * points.y), Absolute()), one / 8)
    np.testing.assert_allclose(lam_grid(points._replace(X=3 * points.X), Absolute()), 9 * one)
    assert np.isfinite(lam_grid(points._replace(y=0 * points.y), Absolute())).all()


def test_useless_side_information_is_left_out_and_useful_is_not():
    chosen = {}
    for useful in (False, True):
        points, Phi = draw(T=60, k=2, seed=4)
        if not useful:
            Phi = np.random.default_rng(9).normal(size=(60, 20))
        views = [PointSplit(*parts, Phi) for parts in fifths(points)]
        fold = np.arange(60) % 5
        chosen[useful] = choose(
            points, Phi, views, fold, lam_grid(points, Absolute()), (np.inf, 1.0), Absolute()
        ).chosen
    assert chosen[True].kappa == 1.0
    assert chosen[False].kappa == np.inf
