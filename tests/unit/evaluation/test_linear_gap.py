"""The gap that side information explains: unbiased parts, and the interval of the jackknife."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as distributions

from condmeta.evaluation.linear_gap import Explained, LinearGap, linear_gap
from condmeta.inner.squared import SquaredState


def draw(rng, T, k, spread, n=40, noise=1e-3):
    """Return statistics, Phi and M of tasks with w = M Phi + spread N(0, I) of two coefficients."""
    Phi, M = rng.normal(size=(T, k)), np.linspace(-1, 2, 2 * k).reshape(2, k)
    w = Phi @ M.T + spread * rng.normal(size=(T, 2))
    X = rng.normal(size=(T * n, 2))
    y = np.einsum("ij,ij->i", X, np.repeat(w, n, axis=0)) + noise * rng.normal(size=T * n)
    return SquaredState.of(X, y, n * np.arange(T + 1)), Phi, M


def estimate(stats, Phi, blocks=4):
    T, k = Phi.shape
    groups = [np.array([j]) for j in range(k)]
    return linear_gap(stats, Phi, groups, np.arange(T) % blocks, k)


def test_weights_that_are_linear_give_the_variance_of_their_map():
    """Without noise the gap is Tr(M Cov(Phi) M^T), with the unbiased covariance."""
    stats, Phi, M = draw(np.random.default_rng(0), 24, 3, 0.0)
    found = estimate(stats, Phi).whole
    C = np.cov(Phi.T)
    assert found.gap == pytest.approx(np.trace(M @ C @ M.T), rel=5e-3)
    np.testing.assert_allclose(found.explained, np.diag(M @ C @ M.T), rtol=5e-3)
    Sxx = stats.gram.sum(axis=0) / stats.count.sum()
    assert found.predicted == pytest.approx(np.trace(Sxx @ M @ C @ M.T), rel=5e-3)
    for j in range(3):
        alone = np.outer(C[:, j], C[j]) / C[j, j]
        assert found.alone[j] == pytest.approx(np.trace(M @ alone @ M.T), rel=5e-3)
        rest = np.setdiff1d(np.arange(3), [j])
        others = C[:, rest] @ np.linalg.inv(C[np.ix_(rest, rest)]) @ C[rest]
        assert found.unique[j] == pytest.approx(np.trace(M @ (C - others) @ M.T), rel=2e-2)


def test_remaining_variance_allows_for_the_numbers_that_were_fitted():
    """24 tasks and a map of 6 numbers: maximum likelihood alone is a quarter too small."""
    rng = np.random.default_rng(1)
    left = [estimate(*draw(rng, 24, 5, 1.0)[:2], blocks=2).whole.left for _ in range(60)]
    assert np.mean(left) == pytest.approx(1.0, abs=0.08)


def test_share_is_of_explained_and_remaining_variance():
    one = Explained(np.array([3.0, 1.0]), np.array([2.0, 2.0]), 0.0, np.zeros(1), np.zeros(1))
    assert one.share == 0.5
    assert one._replace(explained=np.array([-1.0, 0.0])).share == -0.25


def test_the_jackknife_of_a_mean_is_its_t_interval():
    values = np.random.default_rng(2).normal(size=12)

    def explained(value):
        return Explained(np.array([value]), np.zeros(1), value, np.array([value]), np.zeros(1))

    without = [explained(np.delete(values, b).mean()) for b in range(12)]
    found = LinearGap(explained(values.mean()), without)
    error = values.std(ddof=1) / np.sqrt(12)
    expected = distributions.t.interval(0.9, 11, values.mean(), error)
    for interval in (found.interval(0.9, "gap"), found.interval(0.9, "alone", 0)):
        assert interval.value == pytest.approx(values.mean())
        assert (interval.low, interval.high) == pytest.approx(expected)
