"""The bounds of the cluster example, against integrals over the mean input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import condmeta as cm

DISTANCES = 0.3, 1.0, 2.5
PRIORS = 0.5, 0.8, 0.05


def environment(D, prior):
    """Two clusters in one dimension, at a distance of D standard deviations of the mean of n."""
    n, sigma = 4, 2.0
    return cm.environments.Clusters(
        [[3.0], [-1.0]], [[0.5 + D * sigma / np.sqrt(n)], [0.5]], sigma_x=sigma, n=n,
        weights=[prior, 1 - prior],
    )  # fmt: skip


def expectation(function, D, prior):
    """Return exp(-D^2/8) / (2 sqrt(pi_1 pi_2)) E[function(D Z/2 + a)]."""
    a = np.log(prior / (1 - prior)) / 2
    mean, _ = quad(lambda z: function(D * z / 2 + a) * norm.pdf(z), -12, 12, limit=200)
    return np.exp(-(D**2) / 8) / (2 * np.sqrt(prior * (1 - prior))) * mean


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("D", DISTANCES)
def test_exact_gap_and_upper_bound(D, prior):
    found = cm.theory.cluster_gap(environment(D, prior))
    product = prior * (1 - prior) * 16.0  # ||w(1) - w(2)||^2 = 16
    eps = expectation(lambda u: 1 / np.cosh(u), D, prior)
    assert found.exact == pytest.approx(product * (1 - eps), rel=1e-6)
    assert cm.theory.overlap(D, prior) == pytest.approx(eps, rel=1e-6)
    less = expectation(lambda u: np.exp(-(u**2) / 2), D, prior)  # sech(u) >= exp(-u^2 / 2)
    assert found.upper == pytest.approx(product * (1 - less), rel=1e-6)
    assert found.lower <= found.exact <= found.upper


@pytest.mark.parametrize("prior", PRIORS)
def test_lower_bound_has_the_overlap_of_equal_clusters(prior):
    """eps <= exp(-D^2/8) / (2 sqrt(pi_1 pi_2)), as sech is at most one."""
    D = 4.0
    found = cm.theory.cluster_gap(environment(D, prior))
    eps = expectation(lambda u: 1.0, D, prior)
    assert found.lower == pytest.approx(max(prior * (1 - prior) * 16.0 * (1 - eps), 0), rel=1e-6)
