"""The covariance of the map: reference values, dense algebra, directions without information."""

import numpy as np
import pytest

from condmeta.inner.posterior import posterior_pass
from condmeta.inner.squared import SquaredState
from condmeta.meta.map_covariance import coefficient_covariances, map_covariance

X = np.array([[1, 1], [2, 1], [0, 1], [1, 1], [3, 1], [2, 1], [1, 1], [0, 1]], float)
Y = np.array([1, 3, 0.5, 2, 4, 1, -1, 0])
OFFSETS = np.array([0, 2, 4, 6, 8])
PHI = np.array([[0.5], [-0.5], [1], [-1]])
W = np.array([[0.2, 0.1], [1, 0.5]])
L = np.array([[0.5, 0], [0.1, 0.4]])
S2 = np.full(4, 0.8)
STATS = SquaredState.of(X, Y, OFFSETS)
THETA = PHI @ W[:1] + W[1]


def dense_information(kappa=0.0, factor=L):
    """I(W) by the n x n covariance of each task's labels."""
    total = np.zeros((4, 4))
    for t in range(4):
        rows = X[OFFSETS[t] : OFFSETS[t + 1]]
        V = rows @ factor @ factor.T @ rows.T + S2[t] * np.eye(len(rows))
        design = np.kron(np.append(PHI[t], 1.0)[None], rows)
        total += design.T @ np.linalg.inv(V) @ design
    ridge = np.kron(np.diag([1.0, 0.0]), np.linalg.inv(L @ L.T))
    return total + kappa * ridge


def matrix(kappa=0.0, robust=False, factor=L):
    return map_covariance(STATS, PHI, THETA, factor, S2, kappa, robust).matrix.reshape(4, 4)


def test_reference_values():
    expected = [0.59061951, 1.28505144, 0.43178075, 0.79505509]
    np.testing.assert_allclose(np.diag(matrix()), expected, rtol=0, atol=5e-9)


@pytest.mark.parametrize("kappa", [0.0, 1.0, 30.0])
def test_inverse_of_the_dense_information(kappa):
    np.testing.assert_allclose(matrix(kappa), np.linalg.inv(dense_information(kappa)), rtol=1e-8)


def test_singular_prior():
    factor = np.array([[0.5, 0.0], [0.1, 0.0]])
    expected = np.linalg.inv(dense_information(factor=factor))
    np.testing.assert_allclose(matrix(factor=factor), expected, rtol=1e-9)


def test_robust_is_the_sandwich_of_scores():
    bread, scores = np.linalg.inv(dense_information()), np.zeros((4, 4))
    for t in range(4):
        rows, labels = X[OFFSETS[t] : OFFSETS[t + 1]], Y[OFFSETS[t] : OFFSETS[t + 1]]
        V = rows @ L @ L.T @ rows.T + S2[t] * np.eye(len(rows))
        g = rows.T @ np.linalg.solve(V, labels - rows @ THETA[t])
        scores += np.outer(np.kron(np.append(PHI[t], 1.0), g), np.kron(np.append(PHI[t], 1.0), g))
    np.testing.assert_allclose(matrix(robust=True), bread @ scores @ bread * 4 / 2, rtol=1e-9)


def test_without_side_information_only_b_is_uncertain():
    found = map_covariance(STATS, PHI, THETA, L, S2, np.inf, False).matrix
    assert not found[0].any()
    assert not found[:, :, 0].any()
    b = np.linalg.inv(dense_information()[2:, 2:])
    np.testing.assert_allclose(found[1, :, 1], b, rtol=1e-9)


def test_undetermined_effects_are_nan():
    twice = np.column_stack([PHI, PHI])  # nothing tells the two columns apart
    found = map_covariance(STATS, twice, THETA, L, S2, 0.0, False)
    std = found.std(np.array([[1.0, 0, 0], [0, 0, 1], [0.5, 0.5, 0]]), np.eye(2))
    assert np.isnan(std[0]).all()
    expected = np.sqrt(np.diag(matrix()).reshape(2, 2))
    np.testing.assert_allclose(std[1], expected[1], rtol=1e-7)
    np.testing.assert_allclose(std[2], expected[0] / 2, rtol=1e-7)  # W1 + W2 is determined


def test_coefficients_given_points_and_map():
    """Against one joint normal of (vec W, w_1, .., w_T) given all labels."""
    K, d, T = 2, 2, 4
    phi = np.column_stack([PHI, np.ones(T)])
    precision = np.zeros((K * d + T * d, K * d + T * d))
    H_inverse = np.linalg.inv(L @ L.T)
    for t in range(T):
        rows = X[OFFSETS[t] : OFFSETS[t + 1]]
        at = slice(K * d + t * d, K * d + (t + 1) * d)
        design = np.kron(phi[t][None], np.eye(d))
        precision[at, at] += rows.T @ rows / S2[t] + H_inverse
        precision[at, : K * d] -= H_inverse @ design
        precision[: K * d, at] -= (H_inverse @ design).T
        precision[: K * d, : K * d] += design.T @ H_inverse @ design
    joint = np.linalg.inv(precision)
    of_map = map_covariance(STATS, PHI, THETA, L, S2, 0.0, False)
    found = coefficient_covariances(STATS, L, S2, of_map.of_theta(phi))
    for t in range(T):
        at = slice(K * d + t * d, K * d + (t + 1) * d)
        np.testing.assert_allclose(found[t], joint[at, at], rtol=1e-8)


def test_scores_are_gradients_of_the_likelihood():
    def loglik(theta):
        parts = (*STATS[:3], STATS.count.astype(float), theta, L, S2, 1, False)
        return posterior_pass(*parts)[3].sum()

    g = posterior_pass(*STATS[:3], STATS.count.astype(float), THETA, L, S2, 1, False)[0]
    step = 1e-6
    for i in range(2):
        up, down = THETA.copy(), THETA.copy()
        up[1, i] += step
        down[1, i] -= step
        assert abs((loglik(up) - loglik(down)) / (2 * step) - g[1, i]) < 1e-6


def test_noise_that_follows_side_information():
    """Reference values for s2_t = s2 exp(delta . phi_t), delta = .3 on the side column."""
    s2 = S2 * np.exp(0.3 * PHI[:, 0])
    _, _, rss, loglik, _ = posterior_pass(*STATS[:3], STATS.count.astype(float), THETA, L, s2, 1)
    assert loglik.sum() == pytest.approx(-12.4141964399, abs=1e-10)
    slope = PHI[:, 0] @ (rss / s2 - STATS.count) / 2
    assert slope == pytest.approx(0.10427619, abs=5e-9)
