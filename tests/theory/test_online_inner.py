"""The corrected online algorithm, its identities and reference values."""

import numpy as np
import pytest
from helpers import D1, D2, draw_task

from condmeta.inner import batch, online
from condmeta.losses import LOSSES, get_loss


def iterates(run, X, theta, lam):
    """Return w_1..w_{n+1} from the slopes, by the recursion itself rather than its closed form."""
    w = [theta]
    for i, (s, x) in enumerate(zip(run.slopes, X, strict=True), start=1):
        w.append(w[-1] - (s * x + lam * (w[-1] - theta)) / (lam * i))
    return np.array(w)


def test_reference_values_d1(engine):
    X, y, theta = D1
    run = online(theta, X, y, 0.8)
    np.testing.assert_array_equal(run.slopes, [-1, 1, 1])
    np.testing.assert_allclose(
        iterates(run, X, theta, 0.8),
        [(0.5, 0.25), (1.75, 0.25), (1.125, -0.375), (0.5, -0.5833333333)],
        atol=1e-10,
    )
    np.testing.assert_allclose(run.coef, (1.125, 0.0416666667), atol=1e-10)
    np.testing.assert_allclose(run.last, (0.5, -0.5833333333), atol=1e-10)
    np.testing.assert_allclose(run.gradient, (0, 0.6666666667), atol=1e-10)
    assert run.dual == pytest.approx(13 / 18)
    w = iterates(run, X, theta, 0.8)[:-1]
    online_loss = np.abs(np.einsum("ij,ij->i", X, w) - y) + 0.4 * np.sum((w - theta) ** 2, axis=1)
    assert online_loss.mean() == pytest.approx(1.3125)
    assert online_loss.mean() - run.dual == pytest.approx(85 / 144)
    best = batch(theta, X, y, 0.8, tol=1e-13)
    assert best.primal - run.dual == pytest.approx(49 / 720)


@pytest.mark.parametrize(
    ("lam", "coef", "last", "gradient"),
    [
        (0.1, (4.2833333333, 0.8666666667), (-0.3, 2), (0.06, -0.22)),
        (0.5, (0.8366666667, 0.88), (-0.06, 1.04), (0.18, -0.62)),
    ],
)
def test_reference_values_d2(engine, lam, coef, last, gradient):
    X, y, theta = D2
    run = online(theta, X, y, lam)
    np.testing.assert_allclose(run.coef, coef, atol=1e-9)
    np.testing.assert_allclose(run.last, last, atol=1e-9)
    np.testing.assert_allclose(run.gradient, gradient, atol=1e-9)


def test_printed_sign_is_wrong_from_the_second_point_on():
    """Erratum a: with the printed minus w_3 is (2.375, -.375), not (1.125, -.375)."""
    X, y, theta = D1
    run = online(theta, X, y, 0.8)
    printed = [theta]
    for i, (s, x) in enumerate(zip(run.slopes, X, strict=True), start=1):
        printed.append(printed[-1] - (s * x - 0.8 * (printed[-1] - theta)) / (0.8 * i))
    np.testing.assert_allclose(printed[2:], [(2.375, -0.375), (2.5833333333, -1)], atol=1e-9)
    w = iterates(run, X, theta, 0.8)
    np.testing.assert_allclose(w[1], printed[1])  # one point cannot tell the signs apart
    assert np.abs(w[2] - printed[2]).max() > 1
    assert np.abs(run.last - printed[3]).max() > 1


@pytest.mark.parametrize("name", LOSSES)
def test_closed_form_is_the_recursion(name):
    rng = np.random.default_rng(1)
    theta, X, y = draw_task(rng, 12, 4, name)
    run = online(theta, X, y, 3.0, name)
    w = iterates(run, X, theta, 3.0)
    np.testing.assert_allclose(run.coef, w[:-1].mean(axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run.last, w[-1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_identity_of_the_regret(name, n):
    """(1/n) sum [l_i(w_i) + lam/2 |w_i - theta|^2] - D(s) = (lam/2n) sum i |w_{i+1} - w_i|^2."""
    rng = np.random.default_rng(n)
    lam, loss = 2.0, get_loss(name)
    theta, X, y = draw_task(rng, n, 5, name)
    run = online(theta, X, y, lam, name)
    w = iterates(run, X, theta, lam)
    online_loss = loss.value(np.einsum("ij,ij->i", X, w[:-1]), y)
    online_loss += lam / 2 * np.sum((w[:-1] - theta) ** 2, axis=1)
    moves = np.sum(np.diff(w, axis=0) ** 2, axis=1)
    right = lam / (2 * n) * np.sum(np.arange(1, n + 1) * moves)
    assert online_loss.mean() - run.dual == pytest.approx(right, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "squared"])
def test_gradient_is_an_eps_subgradient_and_bounded(name):
    rng = np.random.default_rng(3)
    lam, loss = 0.7, get_loss(name)
    theta, X, y = draw_task(rng, 8, 4, name)
    run = online(theta, X, y, lam, name)
    here = batch(theta, X, y, lam, name, tol=1e-13).primal
    eps = here - run.dual
    n, R = len(y), np.linalg.norm(X, axis=1).max()
    assert -1e-12 <= eps <= 2 * loss.lipschitz**2 * R**2 * (1 + np.log(n)) / (lam * n)
    assert np.linalg.norm(run.gradient) <= loss.lipschitz * R + 1e-12
    for _ in range(50):
        other = theta + rng.normal(size=4) * rng.choice([0.1, 1, 10, 100])
        there = batch(other, X, y, lam, name, tol=1e-13).primal
        assert there >= here + run.gradient @ (other - theta) - eps - 1e-9 * (1 + abs(there))


def test_only_the_iterate_after_the_last_point_gives_a_subgradient():
    """Erratum h: w_n and the average are not eps-subgradients for any eps."""
    X, y, theta, lam = np.eye(3), np.full(3, 5.0), np.zeros(3), 1.0
    run = online(theta, X, y, lam)
    w = iterates(run, X, theta, lam)
    here = batch(theta, X, y, lam).primal
    candidates = {"after": run.last, "before": w[-2], "average": run.coef}
    slack = {
        name: [
            batch(t * X[0], X, y, lam).primal - here + lam * t * (point - theta)[0]
            for t in (-10, -100, -1000)
        ]
        for name, point in candidates.items()
    }
    np.testing.assert_allclose(slack["after"], 0, atol=1e-9)
    np.testing.assert_allclose(slack["before"], [-5 / 3, -50 / 3, -500 / 3], rtol=1e-6)
    np.testing.assert_allclose(slack["average"], [-5 / 3, -50 / 3, -500 / 3], rtol=1e-6)


def test_one_point_returns_theta(engine):
    run = online([1.0, -2.0], [[3.0, 1.0]], [10.0], 0.1)
    np.testing.assert_array_equal(run.coef, [1.0, -2.0])
