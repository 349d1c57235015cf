"""The posterior of task weights against dense formulas, and the engines against each other."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import native
from scipy.stats import multivariate_normal

from condmeta.inner.posterior import Gaussian, lower_root, posterior_pass
from condmeta.inner.squared import SquaredState


def draw(sizes, d, seed=0, shape="full"):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X, y = rng.normal(size=(offsets[-1], d)), rng.normal(size=offsets[-1])
    L = np.tril(rng.normal(size=(d, d)))
    L[np.arange(d), np.arange(d)] = np.abs(np.diag(L)) + 0.1
    if shape != "full":
        L = np.diag(np.diag(L))
    if shape == "singular":
        L[-1] = 0.0
    theta, s2 = rng.normal(size=(len(sizes), d)), rng.uniform(0.3, 2.0, size=len(sizes))
    return X, y, offsets, theta, L, s2


def run(function, X, y, offsets, theta, L, s2, n_jobs=1, correlated=True):
    stats = SquaredState.of(X, y, offsets)
    return function(*stats[:3], stats.count.astype(float), theta, L, s2, n_jobs, correlated)


@pytest.mark.parametrize("shape", ["full", "diagonal", "singular"])
def test_dense_formulas(engine, shape):
    sizes = [4, 1, 0, 9, 2]
    X, y, offsets, theta, L, s2 = draw(sizes, 3, shape=shape)
    g, R, rss, loglik, _ = run(posterior_pass, X, y, offsets, theta, L, s2)
    H, total = L @ L.T, np.zeros((3, 3))
    for t, n in enumerate(sizes):
        at = slice(offsets[t], offsets[t + 1])
        cov = s2[t] * np.eye(n) + X[at] @ H @ X[at].T
        gain = H @ X[at].T @ np.linalg.inv(cov)
        m = theta[t] + gain @ (y[at] - X[at] @ theta[t])
        P = H - gain @ X[at] @ H
        np.testing.assert_allclose(theta[t] + H @ g[t], m, atol=1e-12)
        np.testing.assert_allclose(g[t], X[at].T @ (y[at] - X[at] @ m) / s2[t], atol=1e-11)
        expected = np.sum((y[at] - X[at] @ m) ** 2) + np.trace(X[at] @ P @ X[at].T)
        np.testing.assert_allclose(rss[t], expected, atol=1e-11)
        density = multivariate_normal.logpdf(y[at], X[at] @ theta[t], cov) if n else 0.0
        np.testing.assert_allclose(loglik[t], density, atol=1e-11)
        S = X[at].T @ X[at]
        pull = np.eye(3) - np.linalg.inv(np.eye(3) + L.T @ S @ L / s2[t])
        np.testing.assert_allclose(L.T @ S @ L @ (np.eye(3) - pull) / s2[t], pull, atol=1e-12)
        total += pull
    np.testing.assert_allclose(R, total, atol=1e-11)
    R = run(posterior_pass, X, y, offsets, theta, L, s2, correlated=False)[1]
    np.testing.assert_allclose(R, np.diag(np.diag(total)), atol=1e-11)


@native
@pytest.mark.parametrize("d", [1, 2, 5, 20])
@pytest.mark.parametrize("n_tasks", [1, 3, 4, 9, 300])
@pytest.mark.parametrize("shape", ["full", "diagonal", "singular"])
def test_engines_agree(d, n_tasks, shape):
    sizes = np.random.default_rng(1).integers(0, 12, size=n_tasks)
    problem = draw(sizes, d, shape=shape)
    ours = run(posterior_pass, *problem)
    theirs = run(posterior_pass.reference, *problem)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_a_noise_of_its_own(engine):
    """As many rounds in one call as one by one."""
    X, y, offsets, theta, L, s2 = draw([4, 1, 0, 9, 2], 3)
    stats = SquaredState.of(X, y, offsets)
    statistics, own = (*stats[:3], stats.count.astype(float)), s2
    for rounds in range(4):
        *found, last = posterior_pass(*statistics, theta, L, s2, 1, True, rounds, 4.0)
        np.testing.assert_allclose(last, own, rtol=1e-12)
        *expected, _ = posterior_pass(*statistics, theta, L, own, 1)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-11)
        own = (expected[2] + 4 * s2) / (stats.count + 4)


@native
def test_threads_give_the_same_bits():
    problem = draw(np.full(1000, 5), 4)
    for a, b in zip(run(posterior_pass, *problem), run(posterior_pass, *problem, 2), strict=True):
        assert np.array_equal(a, b)


def test_biased_ridge_is_a_case(engine):
    # lam/2 ||w - theta||^2 with the mean of e^2/2 is H = s2/(n lam) I
    X, y, offsets, theta, _, _ = draw([7, 7], 3)
    lam, s2 = 0.3, 2.5
    inner = Gaussian(np.sqrt(s2 / (7 * lam)) * np.eye(3), s2, own_noise=False)
    ours = inner.solve_tasks(theta, X, y, offsets).coef
    np.testing.assert_allclose(ours, SquaredState.of(X, y, offsets).coef(theta, lam), atol=1e-12)


def test_points_may_come_later(engine):
    X, y, offsets, theta, L, _ = draw([8], 3)
    for own_noise in (False, True):
        inner = Gaussian(L, 0.7, own_noise)
        five = inner.solve_tasks(theta, X[:5], y[:5], np.array([0, 5]))
        eight = inner.solve_tasks(theta, X[5:], y[5:], np.array([0, 3]), state=five.state)
        whole = inner.solve_tasks(theta, X, y, offsets)
        np.testing.assert_allclose(eight.coef, whole.coef, rtol=1e-10)


def test_own_noise_follows_the_task(engine):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = X @ [1.0, 2.0] + np.repeat([0.1, 3.0], 40) * rng.normal(size=80)
    stats = SquaredState.of(X, y, np.array([0, 40, 80]))
    quiet, loud = Gaussian(np.eye(2), 1.0, True).posterior(stats, np.ones((2, 2))).s2
    assert quiet < 0.2 < 5 < loud < 15


def test_no_points_give_theta_and_the_prior_spread(engine):
    _, _, _, theta, L, _ = draw([3, 3], 3)
    inner, stats = Gaussian(L, 0.5, True), SquaredState.start(2, 3)
    assert np.array_equal(inner.posterior(stats, theta).mean, theta)
    rows = np.eye(3)
    std = inner.spread(stats, theta, rows, np.zeros(3, np.int64))
    np.testing.assert_allclose(std**2, np.diag(L @ L.T) + 0.5)


def test_lower_root_of_a_singular_matrix():
    B = np.random.default_rng(0).normal(size=(4, 2))
    L = lower_root(B @ B.T)
    np.testing.assert_allclose(L @ L.T, B @ B.T, atol=1e-12)
    assert np.array_equal(L, np.tril(L))
    assert np.array_equal(lower_root(np.diag([4.0, 0.0])), np.diag([2.0, 0.0]))


def test_spread_is_that_of_the_posterior(engine):
    X, y, offsets, theta, L, _ = draw([6, 2, 0], 3)
    stats = SquaredState.of(X, y, offsets)
    rows = np.random.default_rng(3).normal(size=(7, 3))
    codes = np.array([2, 0, 1, 1, 0, 2, 0])
    std = Gaussian(L, 0.7, False).spread(stats, theta, rows, codes)
    for row, t, found in zip(rows, codes, std, strict=True):
        P = np.linalg.inv(np.linalg.inv(L @ L.T) + stats.gram[t] / 0.7)
        np.testing.assert_allclose(found**2, row @ P @ row + 0.7)
