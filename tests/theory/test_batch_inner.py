"""The exact minimiser, its certificate and its meta-gradient."""

import cvxpy as cp
import numpy as np
import pytest
from helpers import D1, D2, draw_task

from condmeta.inner import batch
from condmeta.inner.solution import objective
from condmeta.losses import get_loss


def cvxpy_value(theta, X, y, lam, name):
    """Return the minimum of the same problem by an independent solver."""
    w = cp.Variable(X.shape[1])
    e, margin = X @ w - y, cp.multiply(y, X @ w)
    losses = {
        "absolute": lambda: cp.abs(e),
        "squared": lambda: cp.square(e) / 2,
        "huber": lambda: cp.huber(e, 1.35) / 2,
        "pinball": lambda: cp.maximum(-0.5 * e, 0.5 * e),
        "epsilon_insensitive": lambda: cp.pos(cp.abs(e) - 0.1),
        "hinge": lambda: cp.pos(1 - margin),
        "logistic": lambda: cp.logistic(-margin),
    }
    total = cp.sum(losses[name]()) / len(y) + lam / 2 * cp.sum_squares(w - theta)
    problem = cp.Problem(cp.Minimize(total))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return objective(w.value, theta, X, y, lam, get_loss(name))


def test_reference_values_d1(engine):
    X, y, theta = D1
    run = batch(theta, X, y, 0.8, tol=1e-13)
    np.testing.assert_allclose(run.coef, (19 / 24, -7 / 24), atol=1e-12)
    np.testing.assert_allclose(run.slopes, (-1, 1, 0.3), atol=1e-12)
    np.testing.assert_allclose(run.gradient, (-0.2333333333, 0.4333333333), atol=1e-10)
    assert run.primal == pytest.approx(569 / 720, rel=1e-12)
    grad = np.outer(run.gradient, (0.6, -0.2, 1.0))
    expected = [[-0.14, 0.0466666667, -0.2333333333], [0.26, -0.0866666667, 0.4333333333]]
    np.testing.assert_allclose(grad, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("lam", "coef", "value"),
    [(0.1, (0.532, 1.376), 0.73608), (0.5, (0.1761467890, 0.2528440367), 0.8900449541)],
)
def test_reference_values_d2(engine, lam, coef, value):
    X, y, theta = D2
    run = batch(theta, X, y, lam, tol=1e-13)
    np.testing.assert_allclose(run.coef, coef, atol=1e-9)
    assert run.primal == pytest.approx(value, abs=1e-10)
    if lam == 0.1:
        np.testing.assert_allclose(run.slopes, (-1, 1, 0.48, -1, -1), atol=1e-9)


@pytest.mark.parametrize("n", [1, 5, 10, 50, 200])
@pytest.mark.parametrize("lam", [1e-3, 0.01, 0.1, 1, 10])
def test_objective_equals_cvxpy(engine, loss, n, lam):
    """The point found is as good as cvxpy's to 1e-7, and the certificate says so."""
    theta, X, y = draw_task(np.random.default_rng([n, int(1e4 * lam)]), n, 20, loss)
    run = batch(theta, X, y, lam, loss, tol=1e-10)
    best = cvxpy_value(theta, X, y, lam, loss)
    scale = objective(theta, theta, X, y, lam, get_loss(loss))
    assert run.primal == pytest.approx(best, rel=1e-7, abs=1e-12 * (1 + scale))
    # The certificate is valid: no point, cvxpy's included, lies below the dual value.
    assert run.primal - run.gap <= best + 1e-12 * (1 + scale)
    assert run.gap <= 1e-10 * scale


def test_gap_is_the_difference_of_primal_and_dual(engine, loss):
    theta, X, y = draw_task(np.random.default_rng(5), 12, 6, loss)
    run = batch(theta, X, y, 0.2, loss)
    assert run.primal - run.dual == pytest.approx(run.gap, abs=1e-12)
    assert run.gap >= 0


@pytest.mark.parametrize("lam", [0.05, 1.0])
def test_meta_gradient_is_the_derivative_of_the_meta_loss(engine, loss, lam):
    rng = np.random.default_rng(11)
    theta, X, y = draw_task(rng, 9, 4, loss)
    h = 1e-5

    def meta_loss(theta):
        return batch(theta, X, y, lam, loss, tol=1e-13).primal

    numeric = [(meta_loss(theta + h * e) - meta_loss(theta - h * e)) / (2 * h) for e in np.eye(4)]
    run = batch(theta, X, y, lam, loss, tol=1e-13)
    np.testing.assert_allclose(run.gradient, numeric, atol=1e-6)
    np.testing.assert_allclose(run.gradient, -lam * (run.coef - theta), atol=1e-12)


def test_large_lam_gives_theta(engine, loss):
    theta, X, y = draw_task(np.random.default_rng(2), 6, 3, loss)
    np.testing.assert_allclose(batch(theta, X, y, 1e12, loss).coef, theta, rtol=1e-9)


@pytest.mark.parametrize("n", [1, 3, 30])
def test_squared_is_ridge_around_theta(engine, n):
    theta, X, y = draw_task(np.random.default_rng(n), n, 5)
    lam = 0.3
    expected = theta + np.linalg.solve(X.T @ X / n + lam * np.eye(5), X.T @ (y - X @ theta) / n)
    np.testing.assert_allclose(batch(theta, X, y, lam, "squared").coef, expected, rtol=1e-10)


def test_exact_fit_needs_no_step(engine):
    X = np.eye(3)
    run = batch([1.0, 2.0, 3.0], X, [1.0, 2.0, 3.0], 0.1)
    np.testing.assert_array_equal(run.coef, [1.0, 2.0, 3.0])
    assert run.gap == 0
