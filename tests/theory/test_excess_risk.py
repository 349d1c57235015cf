"""The exact excess risk, against integrals over the error."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import condmeta as cm


def mean_absolute(mean, spread):
    if not spread:
        return abs(mean)
    return quad(lambda z: abs(mean + spread * z) * norm.pdf(z), -12, 12, limit=500)[0]


@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_excess_risk_is_the_mean_absolute_error_less_that_of_the_noise(noise):
    env = cm.environments.Clusters(
        [[2.0, 1.0], [0.0, 0.0]], [[1.0, -1.0], [3.0, 0.5]], sigma_x=1.7, n=3, noise=noise
    )
    tasks = env.sample(5, random_state=0)
    coef = tasks.weights + np.random.default_rng(1).normal(size=(5, 2))
    off = coef - tasks.weights
    expected = [
        mean_absolute(env.x_centers[c] @ e, np.hypot(1.7 * np.linalg.norm(e), noise))
        - mean_absolute(0.0, noise)
        for c, e in zip(tasks.clusters, off, strict=True)
    ]
    np.testing.assert_allclose(cm.theory.excess_risk(env, tasks, coef), expected, rtol=1e-6)
