"""Student's noise: weights of rows and posteriors at the fixed point of a bound."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from scipy.stats import t as student

from condmeta.inner.posterior import Gaussian
from condmeta.inner.student import StudentGaussian, bound_terms
from condmeta.tasks.points import Points

FACTOR = np.array([[1.0, 0.0], [0.3, 0.6]])
THETA = np.array([0.5, -1.0])
S2, NU, N = 0.3, 4.0, 9
ENDS = np.array([0, N])


def task(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    w = THETA + FACTOR @ rng.normal(size=2)
    y = X @ w + np.sqrt(S2) * rng.standard_t(2, size=n)
    y[0] += 8.0
    return X, y


def test_the_fixed_point_maximises_the_bound():
    (X, y), H = task(), FACTOR @ FACTOR.T

    def bound(m, V):
        """E log p(y, w, u) - E log q, with the best q(u): that of scipy's density at E r^2."""
        r = np.sqrt((y - X @ m) ** 2 + np.einsum("ni,ij,nj->n", X, V, X))
        inverse, far = np.linalg.inv(H), m - THETA
        dets = np.linalg.slogdet(H)[1] - np.linalg.slogdet(V)[1]
        divergence = (np.trace(inverse @ V) + far @ inverse @ far - 2 + dets) / 2
        return student.logpdf(r, NU, scale=np.sqrt(S2)).sum() - divergence

    def minus(p):
        C = np.array([[np.exp(p[2]), 0.0], [p[3], np.exp(p[4])]])
        return -bound(p[:2], C @ C.T)

    starts = ([*m, -1.0, 0.0, -1.0] for m in (THETA, THETA + 1, np.zeros(2)))
    best = min((minimize(minus, s, tol=1e-10) for s in starts), key=lambda found: found.fun)
    inner = StudentGaussian(FACTOR, S2, NU)
    np.testing.assert_allclose(
        inner.solve_tasks(THETA[None], X, y, ENDS).coef[0], best.x[:2], atol=1e-4
    )
    u = inner.weighed(THETA[None], Points(X, y, ENDS)).weight[:, 1]
    law = multivariate_normal(X @ THETA, X @ H @ X.T + S2 * np.diag(1 / u))
    assert law.logpdf(y) + bound_terms(u, NU).sum() == pytest.approx(-best.fun, abs=1e-6)


def test_known_weights_have_the_density_of_scipy():
    X, y = task()
    inner = StudentGaussian(np.zeros((2, 2)), S2, NU)
    u = inner.weighed(THETA[None], Points(X, y, ENDS)).weight[:, 1]
    r = y - X @ THETA
    np.testing.assert_allclose(u, (NU + 1) / (NU + r**2 / S2))
    normal = -0.5 * (np.log(2 * np.pi * S2 / u) + u * r**2 / S2)
    expected = student.logpdf(r, NU, scale=np.sqrt(S2))
    np.testing.assert_allclose(normal + bound_terms(u, NU), expected)


def test_precision_and_weight_of_rows():
    (X, y), inner = task(), StudentGaussian(FACTOR, S2, NU)
    twice = np.r_[2.0, np.ones(N - 1)]
    found = inner.solve_tasks(THETA[None], X, y, ENDS, weight=twice).coef
    rows = np.r_[0, np.arange(N)]
    again = inner.solve_tasks(THETA[None], X[rows], y[rows], np.array([0, N + 1])).coef
    np.testing.assert_allclose(found, again, rtol=1e-10)
    p = np.column_stack([np.ones(N), np.full(N, 4.0)])
    sharper = StudentGaussian(FACTOR, S2 / 4, NU).solve_tasks(THETA[None], X, y, ENDS).coef
    np.testing.assert_allclose(
        inner.solve_tasks(THETA[None], X, y, ENDS, weight=p).coef, sharper, rtol=1e-10
    )


def test_a_task_does_not_depend_on_others():
    inner = StudentGaussian(FACTOR, S2, NU)
    parts = [task(seed, n) for seed, n in enumerate((3, 9, 1, 5))]
    X, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    offsets = np.array([0, 3, 12, 12, 13, 18])  # the third task has no rows
    theta = np.tile(THETA, (5, 1))
    found = inner.solve_tasks(theta, X, y, offsets).coef
    for t, (x, labels) in zip((0, 1, 3, 4), parts, strict=True):
        alone = inner.solve_tasks(THETA[None], x, labels, np.array([0, len(labels)])).coef[0]
        np.testing.assert_allclose(found[t], alone, rtol=1e-12)
    np.testing.assert_array_equal(found[2], THETA)


def test_later_rows_are_weighed_by_earlier_ones():
    (X, y), inner = task(n=30), StudentGaussian(FACTOR, S2, NU)
    before = inner.solve_tasks(THETA[None], X[1:], y[1:], np.array([0, 29]))
    wild = inner.weighed(THETA[None], Points(X[:1], y[:1], np.array([0, 1])), before.state)
    assert wild.weight[0, 1] < 0.1
    after = inner.solve_tasks(THETA[None], X[:1], y[:1], np.array([0, 1]), before.state)
    assert np.abs(after.coef - before.coef).max() < 0.02


def test_variance_of_a_new_label():
    X, y = task()
    inner = StudentGaussian(FACTOR, S2, NU)
    state = inner.solve_tasks(THETA[None], X, y, ENDS).state
    codes = np.zeros(N, np.int64)
    normal = inner.normal.spread(state, THETA[None], X, codes) ** 2
    found = inner.spread(state, THETA[None], X, codes) ** 2
    np.testing.assert_allclose(found - normal, S2 * (NU / (NU - 2) - 1))
    assert inner.label_covariances(state, THETA[None])[1] == pytest.approx(S2 * NU / (NU - 2))


def test_many_degrees_of_freedom_are_normal():
    X, y = task()
    found = StudentGaussian(FACTOR, S2, 1e12).solve_tasks(THETA[None], X, y, ENDS).coef
    normal = Gaussian(FACTOR, S2, False).solve_tasks(THETA[None], X, y, ENDS).coef
    np.testing.assert_allclose(found, normal, rtol=1e-8)
