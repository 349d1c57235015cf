"""The cluster example: overlap, exact gap, and the three bounds on it."""

import numpy as np
import pytest

from condmeta.environments import Circle, Clusters, paper_environment
from condmeta.errors import DataError
from condmeta.theory import cluster_gap, overlap

TABLE = [  # D, eps, corrected lower bound, linear bound, in units of ||w1 - w2||^2 / 4
    (0.5, 0.9410540245, 0.03076677, 0.05882353),
    (1, 0.7959457344, 0.11750310, 0.20000000),
    (2, 0.4495995092, 0.39346934, 0.50000000),
    (4, 0.0685974088, 0.86466472, 0.80000000),
]


@pytest.mark.parametrize(("D", "eps", "lower", "linear"), TABLE)
def test_table_of_two_clusters(D, eps, lower, linear):
    assert overlap(D) == pytest.approx(eps, abs=1e-9)
    gap = cluster_gap(Clusters([[2.0], [0.0]], [[D], [0.0]], n=1))
    assert gap.exact == pytest.approx(1 - eps, abs=1e-9)
    assert gap.lower == pytest.approx(lower, abs=1e-8)
    assert gap.linear == pytest.approx(linear, abs=1e-8)
    assert gap.upper == pytest.approx(1 - np.exp(-(D**2) / 8) / np.sqrt(1 + D**2 / 4))


def test_two_clusters_reference():
    env = Clusters([[1, 2, 3], [-1, 0, 1]], [[1, 0, -1], [0, 0.5, 0.5]], n=4, sigma_x=2.0)
    gap = cluster_gap(env)
    assert overlap(np.sqrt(3.5)) == pytest.approx(0.4913834534, abs=1e-9)
    assert gap.exact == pytest.approx(1.5258496397, abs=1e-9)
    assert gap.lower == pytest.approx(1.0630544207, abs=1e-9)
    assert gap.linear == pytest.approx(1.4)


def test_three_clusters_reference():
    env = Clusters(
        [[2, 0], [0, 3], [-1, -1]], [[1, 0], [-0.5, 0.8], [-0.3, -0.9]], n=2, sigma_w=0.7
    )
    gap = cluster_gap(env)
    assert gap.exact == pytest.approx(2.608002567, abs=1e-9)
    assert gap.lower == pytest.approx(1.138345911, abs=1e-9)
    assert gap.linear == pytest.approx(2.158750778, abs=1e-9)
    assert gap.upper is None


def test_paper_settings():
    for name in ("two-clusters-mean-4", "two-clusters-mean-0"):
        gap = cluster_gap(paper_environment(name), n=10)
        assert gap.exact == pytest.approx(320, abs=1e-6)
        assert gap.linear == pytest.approx(318.407960, abs=1e-6)
        assert gap.lower == pytest.approx(320, abs=1e-3)
    assert cluster_gap(paper_environment("one-cluster")) == (0, 0, 0, 0, None)


@pytest.mark.parametrize("weight", [0.5, 0.2, 0.9, 0.01])
@pytest.mark.parametrize("D", [0.0, 0.3, 1.0, 3.0, 8.0])
def test_overlap_is_the_integral(D, weight):
    """int p_1 p_2 / rho by a fine sum that shares no code."""
    z = np.linspace(-12, 12 + D, 400_001)
    p1, p2 = (np.exp(-((z - c) ** 2) / 2) / np.sqrt(2 * np.pi) for c in (D, 0.0))
    eps = (p1 * p2 / (weight * p1 + (1 - weight) * p2)).sum() * (z[1] - z[0])
    assert overlap(D, weight) == pytest.approx(eps, rel=1e-9)


def test_unequal_priors_reference():
    """pi = 0.2: eps = 0.750883 <= 1.011965, the bound exp(-D^2/8) / (2 sqrt(pi_1 pi_2))."""
    D = np.sqrt(-8 * np.log(1.011965 * 2 * np.sqrt(0.2 * 0.8)))
    assert overlap(D, 0.2) == pytest.approx(0.750883, abs=2e-6)
    gap = cluster_gap(Clusters([[1.0], [0.0]], [[D], [0.0]], n=1, weights=[0.2, 0.8]))
    assert gap.exact == pytest.approx(0.16 * (1 - overlap(D, 0.2)))
    assert gap.lower == 0  # 1 - 1.011965 < 0


@pytest.mark.parametrize("seed", range(8))
def test_bounds_enclose_the_exact_gap(seed):
    rng = np.random.default_rng(seed)
    m = 2 + seed % 3 // 2  # the quadrature of four clusters takes a second
    env = Clusters(
        rng.normal(size=(m, 3)), rng.normal(size=(m, 3)) * rng.choice([0.2, 1, 3]), n=3,
        sigma_x=rng.uniform(0.5, 2), weights=rng.dirichlet(np.ones(m)) if seed % 2 else None,
    )  # fmt: skip
    for n in (1, 4, 20):
        gap = cluster_gap(env, n)
        slack = gap.error + 1e-12
        assert 0 <= gap.lower <= gap.exact + slack
        assert gap.linear <= gap.exact + slack
        assert gap.upper is None or gap.exact <= gap.upper + slack


def test_each_lower_bound_wins_somewhere():
    near, far = (cluster_gap(Clusters([[2.0], [0.0]], [[D], [0.0]], n=1)) for D in (1.0, 4.0))
    assert near.linear > near.lower
    assert far.lower > far.linear


def test_wrong_arguments_raise():
    with pytest.raises(DataError, match=r"needs a Clusters environment\. Got Circle"):
        cluster_gap(Circle())
    unit = Clusters([[1.0, 0], [0, 0]], [[1.0, 0], [0, 0]], inputs="unit")
    with pytest.raises(DataError, match="needs inputs='gaussian'"):
        cluster_gap(unit)
    with pytest.raises(DataError, match=r"weight must be a float in \(0, 1\)"):
        overlap(1.0, 1.0)
    with pytest.raises(DataError, match="D must be finite"):
        overlap(np.nan)
    # a cluster of weight 0 is not there
    assert cluster_gap(Clusters([[1.0], [0.0]], [[1.0], [0.0]], weights=[1, 0])).upper == 0
