"""The weights of tasks in groups, beside dense normal distributions."""

import numpy as np
import pytest

from condmeta.inner.nested import NestedGaussian, NestedState
from condmeta.inner.posterior import PRIOR_POINTS, ROUNDS
from condmeta.inner.squared import SquaredState

RNG = np.random.default_rng(0)
T, N, D, S2 = 3, 6, 2, 0.3
X, Y = RNG.normal(size=(T, N, D)), RNG.normal(size=(T, N))
THETA = RNG.normal(size=(T, D))
ROOTS = RNG.normal(size=(T, D, D))
ROOTS[1, :, 1] = 0.0  # Q of the second task is singular
Q = ROOTS @ np.swapaxes(ROOTS, 1, 2)


def dense(t, s2):
    """Return mean and covariance of the weights of a task: w ~ N(theta, Q), y ~ N(X w, s2 I)."""
    gain = Q[t] @ X[t].T @ np.linalg.inv(X[t] @ Q[t] @ X[t].T + s2 * np.eye(N))
    return THETA[t] + gain @ (Y[t] - X[t] @ THETA[t]), Q[t] - gain @ X[t] @ Q[t]


def inner_and_state(own_noise):
    inner = NestedGaussian(np.eye(D)[None], S2, own_noise)
    rows = X.reshape(-1, D), Y.ravel(), np.arange(0, T * N + 1, N)
    return inner, NestedState(*SquaredState.start(T, D).extend(*rows), THETA, Q)


@pytest.mark.parametrize("own_noise", [False, True])
def test_means_covariances_and_noise_are_those_of_dense_normals(own_noise):
    inner, state = inner_and_state(own_noise)
    found, covariances = inner.posterior(state, THETA), inner.covariances(state, THETA)
    for t in range(T):
        s2 = S2
        for _ in range(ROUNDS if own_noise else 0):
            mean, P = dense(t, s2)
            rss = np.sum((Y[t] - X[t] @ mean) ** 2) + np.trace(X[t] @ P @ X[t].T)
            s2 = (rss + PRIOR_POINTS * S2) / (N + PRIOR_POINTS)
        mean, P = dense(t, s2)
        np.testing.assert_allclose(found.s2[t], s2, rtol=1e-10)
        np.testing.assert_allclose(found.mean[t], mean, rtol=1e-8)
        np.testing.assert_allclose(covariances[t], P, atol=1e-10)


def test_a_huge_row_leaves_the_system_regular():
    """s2 I + S Q is singular after rounding, I + R^T S R / s2 is not."""
    inner, state = inner_and_state(False)
    state.gram[0] = 1e40 * np.outer([1.0, 3.0], [1.0, 3.0])
    P = inner.covariances(state, THETA)[0]
    assert np.isfinite(P).all()
    np.testing.assert_allclose([1.0, 3.0] @ P, 0.0, atol=1e-6)  # this direction is known
