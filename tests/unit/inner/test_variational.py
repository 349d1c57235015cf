"""Normal posteriors of tasks with two classes: averages, optimum, bound, edges, engines."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import native
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from condmeta.engine import compiled_core
from condmeta.errors import DivergenceError
from condmeta.inner.averaged import averaged_logistic, averaged_loss
from condmeta.inner.likelihoods import Binomial
from condmeta.inner.row_posterior import Bernoulli, Counts, Ordinal
from condmeta.inner.row_posterior import find_posteriors as find_all
from condmeta.inner.variational import variational_pass
from condmeta.tasks.points import Points


def find_posteriors(X, y, offsets, theta, L):
    return find_all(Binomial(), Points(X, y, offsets), theta, L)


def integral(function, m, v):
    """E[function(f)] of f ~ N(m, v), by adaptive quadrature."""
    sd = np.sqrt(v)
    points = sorted({m, 0.0} & {x for x in (m, 0.0) if abs(x - m) < 12 * sd})
    return quad(
        lambda f: function(f) * norm.pdf(f, m, sd), m - 12 * sd, m + 12 * sd, points=points,
        epsabs=1e-12, limit=500,
    )[0]  # fmt: skip


@pytest.mark.parametrize("v", [0.01, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("m", [-7.0, -0.4, 0.0, 3.0])
def test_averages_are_integrals(m, v):
    loss, slope, curvature = averaged_loss(np.array([m]), np.array([v]))
    assert slope[0] == pytest.approx(integral(expit, m, v), abs=4e-9)
    assert loss[0] == pytest.approx(integral(lambda f: np.logaddexp(0, f), m, v), abs=2e-8)
    assert curvature[0] == pytest.approx(integral(lambda f: expit(f) * expit(-f), m, v), abs=2e-8)


def test_probabilities_are_symmetric_and_never_zero():
    m = np.array([-300.0, -40.0, -1e-9, 0.0, 2.0])
    p = averaged_logistic(m, np.zeros(5))
    np.testing.assert_allclose(p, expit(m), atol=5e-9)
    assert (p > 0).all()
    np.testing.assert_allclose(averaged_logistic(-m, np.full(5, 2.0)), 1 - averaged_logistic(m, 2))
    assert averaged_logistic(np.array([3.0]), np.array([50.0])) < expit(3.0)


def draw(sizes, d, seed=0):
    rng = np.random.default_rng([d, seed])
    offsets = np.append(0, np.cumsum(sizes))
    X = rng.normal(size=(offsets[-1], d))
    y = np.where(X @ rng.normal(size=d) + rng.logistic(size=len(X)) > 0, 1.0, -1.0)
    factor = np.tril(rng.normal(size=(d, d)))
    return X, y, offsets, rng.normal(size=(len(sizes), d)), factor


def test_posterior_is_the_optimum_of_the_bound(engine):
    """A general optimiser over mean and Cholesky factor, the loss averaged by Gauss-Hermite."""
    X, y, offsets, theta, L = draw([7], 2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    lower = np.tril_indices(2)

    def minus_bound(x):
        z, C = x[:2], np.zeros((2, 2))
        C[lower] = x[2:]
        f, sd = X @ (theta[0] + L @ z), np.linalg.norm(X @ L @ C, axis=1)
        loss = np.logaddexp(0, -y[:, None] * (f[:, None] + sd[:, None] * nodes)) @ weights
        logdet = 2 * np.log(np.abs(np.diag(C))).sum()
        return loss.sum() + (np.sum(C**2) + z @ z - 2 - logdet) / 2

    best = minimize(minus_bound, [0, 0, 1, 0, 1], method="BFGS", options={"gtol": 1e-7})
    found = find_posteriors(X, y, offsets, theta, L)
    assert found.bound[0] == pytest.approx(-best.fun, abs=1e-6)
    np.testing.assert_allclose(found.z[0], best.x[:2], atol=1e-4)
    C = np.zeros((2, 2))
    C[lower] = best.x[2:]
    covariance = Bernoulli(L).solve_tasks(theta, X, y, offsets).state.covariance[0]
    np.testing.assert_allclose(covariance, L @ C @ C.T @ L.T, atol=1e-4)


@pytest.mark.parametrize("h", [0.1, 1.0, 10.0])
def test_bound_is_below_the_likelihood_and_near_it(h):
    """One feature, by quadrature over w: never above, below by at most 0.02 for each task."""
    X, y, offsets, theta, _ = draw([1, 2, 5, 20], 1)
    found = find_posteriors(X, y, offsets, theta, np.array([[np.sqrt(h)]]))
    w = np.linspace(-12, 12, 40001) * np.sqrt(h)
    for t in range(4):
        at = slice(offsets[t], offsets[t + 1])
        values = -np.logaddexp(0, -y[at, None] * X[at] * (theta[t] + w)).sum(axis=0)
        exact = np.log(np.trapezoid(np.exp(values) * norm.pdf(w, scale=np.sqrt(h)), w))
        assert exact - 0.02 <= found.bound[t] <= exact + 1e-7


@pytest.mark.parametrize("d", [1, 3])
def test_gradient_is_that_of_the_bound(engine, d):
    X, y, offsets, theta, L = draw([0, 1, 4, 9], d)
    found = find_posteriors(X, y, offsets, theta, L)

    def total(theta, L):
        return find_posteriors(X, y, offsets, theta, L).bound.sum()

    by_theta, by_L = np.zeros_like(theta), np.zeros_like(L)
    for out, at in ((by_theta, theta), (by_L, L)):
        for index in np.ndindex(at.shape):
            step = np.zeros_like(at)
            step[index] = 1e-5
            up, down = (
                total(theta + s * step, L) if at is theta else total(theta, L + s * step)
                for s in (1, -1)
            )
            out[index] = (up - down) / 2e-5
    np.testing.assert_allclose(found.g, by_theta, atol=2e-8)
    np.testing.assert_allclose(np.tril(found.g.T @ found.z - found.Q), np.tril(by_L), atol=2e-8)


def test_many_points_give_penalised_logistic_regression():
    """The mean goes to the mode, scikit-learn's at H = I, like one over the number of points."""
    X, y, _, _, _ = draw([40], 3)
    gaps = []
    for copies in (50, 500):
        rows, labels = np.tile(X, (copies, 1)), np.tile(y, copies)
        mean = Bernoulli(np.eye(3)).solve(np.zeros(3), rows, labels)[0]
        theirs = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10).fit(rows, labels)
        gaps.append(np.abs(mean - theirs.coef_[0]).max())
    assert gaps[1] < 2e-3
    assert 0.08 < gaps[1] / gaps[0] < 0.12


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e5])
def test_separable_and_one_class_tasks_have_answers(engine, scale):
    X = np.array([[-2.0, 1], [-1, 0], [1, 0], [2, 1], [1, 1], [2, 2], [1e4, -1e4]])
    y, offsets = np.array([-1.0, -1, 1, 1, 1, 1, -1]), np.array([0, 4, 6, 7, 7])
    inner = Bernoulli(scale * np.eye(2))
    solved = inner.solve_tasks(np.zeros((4, 2)), X, y, offsets)
    assert np.isfinite(solved.coef).all()
    assert not solved.coef[3].any()
    eigenvalues = np.linalg.eigvalsh(solved.state.covariance)
    assert (eigenvalues >= -1e-9 * scale**2).all()
    assert (eigenvalues <= scale**2 * (1 + 1e-9)).all()
    assert (y[:4] * (X[:4] @ solved.coef[0]) > 0).all()


def test_singular_metric_keeps_a_direction_fixed(engine):
    X, y, offsets, theta, _ = draw([5, 0, 30], 2)
    coef = Bernoulli(np.array([[1.0, 0], [0, 0]])).solve_tasks(theta, X, y, offsets).coef
    np.testing.assert_array_equal(coef[:, 1], theta[:, 1])
    assert abs(coef[0, 0] - theta[0, 0]) > 0.01


@native
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [1, 3, 4, 7, 20, 33])
def test_engines_agree(d, weighted):
    X, y, offsets, theta, L = draw([0, 1, 2 * d + 3, max(d - 1, 1), 6, 11], d)
    rng = np.random.default_rng(d)
    start = np.full(len(y), 0.1), np.zeros(len(y)), 1e-9
    times = rng.uniform(0.1, 3.0, size=len(y)) if weighted else None
    counts = rng.poisson(3.0, size=len(y)).astype(float)
    rows = X, counts, counts + 2.0, rng.normal(size=len(y)), offsets
    want = variational_pass.reference(*rows, theta, L, *start, 1, times)
    got = compiled_core().variational_pass(*rows, theta, L, *start, 1, times)
    for new, old in zip(got, want, strict=True):
        np.testing.assert_allclose(new, old, atol=1e-8 * max(np.abs(old).max(), 1.0))
    again = compiled_core().variational_pass(*rows, theta, L, *start, 3, times)
    for one, three in zip(got, again, strict=True):
        assert np.array_equal(one, three)


INNER = {
    "classes": Bernoulli,
    "counts": lambda factor: Counts(factor, 1.5),
    "ordered": lambda factor: Ordinal(factor, np.array([0.8])),
}


@pytest.mark.parametrize("kind", INNER)
def test_mean_is_where_the_prior_balances_the_gradient(kind):
    """mean = theta - n H gradient; one task alone and in a set have the same mean."""
    X, y, offsets, theta, L = draw([7], 2)
    labels = y if kind == "classes" else y + 1
    mean, gradient, _ = INNER[kind](L).solve(theta[0], X, labels)
    np.testing.assert_allclose(mean - theta[0], -len(y) * (L @ L.T) @ gradient, rtol=1e-6)
    solved = INNER[kind](L).solve_tasks(theta, X, labels, offsets)
    np.testing.assert_allclose(solved.coef[0], mean, rtol=1e-9)
    if kind == "classes":  # by quadrature, over the posterior of each f
        spread = np.einsum("ij,jk,ik->i", X, solved.state.covariance[0], X)
        slopes = [integral(expit, m, v) for m, v in zip(X @ mean, spread, strict=True)]
        np.testing.assert_allclose(gradient, X.T @ (slopes - (y > 0)) / len(y), atol=1e-6)


def test_a_prior_beyond_floating_point_is_a_sentence():
    """As a forged model file may have it; eigh raised LinAlgError."""
    points = Points(np.ones((2, 1)), np.array([1.0, -1.0]), np.array([0, 2]))
    with np.errstate(all="ignore"), pytest.raises(DivergenceError, match="The variances leave"):
        Bernoulli(np.array([[1e200]])).solve_tasks(np.zeros((1, 1)), *points[:3])
