"""Likelihoods as rows of one form: known values, densities by brute force, derivatives, edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, gammaln
from scipy.stats import binom, nbinom, norm, poisson

from condmeta.inner.likelihoods import Binomial, NegativeBinomial, Ordered
from condmeta.inner.quadrature import log_average
from condmeta.inner.row_posterior import find_posteriors, solve_rows
from condmeta.tasks.points import Points

CUTS = np.array([-1.0, 0.0, 1.2])
KNOWN = {  # one task, x = 1 three times, theta = .5, L = 1: bound, z, variance of u
    "counts": (NegativeBinomial(0.5), [0, 1, 4], 0.0, -5.92263049, -0.00085276, 0.28093744),
    "ordered": (Ordered(np.diff(CUTS)), [0, 1, 3], -1.0, -4.62832022, -0.31433858, 0.57091878),
    "classes": (Binomial(), [1, -1, 1], 0.0, -2.16820636, 0.10765512, 0.61791324),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_values(engine, name):
    law, y, first_cut, bound, z, variance = KNOWN[name]
    points = Points(np.ones((3, 1)), np.array(y, float), np.array([0, 3]))
    theta, L = np.array([[0.5 - first_cut]]), np.eye(1)
    found = find_posteriors(law, points, theta, L)
    assert found.bound[0] + law.constant(points) == pytest.approx(bound, abs=5e-9)
    assert found.z[0, 0] == pytest.approx(z, abs=5e-9)
    covariance = solve_rows(law, points, theta, L).state.covariance
    assert covariance[0, 0, 0] == pytest.approx(variance, abs=5e-9)


def draw(kind, sizes=(0, 1, 4, 7), d=2, seed=0, weighted=True):
    """Return points of a likelihood, and theta and L near them."""
    rng, offsets = np.random.default_rng(seed), np.append(0, np.cumsum(sizes))
    n = offsets[-1]
    X, size = rng.normal(size=(n, d)), rng.integers(1, 6, size=n).astype(float)
    y = {
        "counts": rng.poisson(2 * size).astype(float),
        "shares": 2 * rng.binomial(size.astype(int), 0.4) / size - 1,
        "ordered": rng.integers(0, 4, size=n).astype(float),
    }[kind]
    weight = np.column_stack([rng.uniform(0.5, 2.0, size=n), size]) if weighted else None
    theta, L = 0.3 * rng.normal(size=(len(sizes), d)), np.tril(rng.normal(size=(d, d)))
    return Points(X, y, offsets, weight), theta, L


LAWS = {
    "counts": lambda x: NegativeBinomial(np.exp(x)),
    "shares": lambda x: Binomial(),
    "ordered": lambda x: Ordered(np.exp(x + np.array([0.1, -0.4]))),
}


@pytest.mark.parametrize("kind", LAWS)
def test_derivatives_are_those_of_the_bound(engine, kind):
    points, theta, L = draw(kind)

    def total(theta, L, x):
        law = LAWS[kind](x)
        bound = find_posteriors(law, points, theta, L, 1e-11).bound.sum()
        return bound + law.constant(points)

    law = LAWS[kind](0.2)
    found = find_posteriors(law, points, theta, L, 1e-11)
    h = 1e-5
    for index in ((1, 0), (3, 1)):
        step = np.zeros_like(theta)
        step[index] = h
        slope = (total(theta + step, L, 0.2) - total(theta - step, L, 0.2)) / (2 * h)
        assert found.g[index] == pytest.approx(slope, abs=1e-7)
    by_L = np.tril(found.g.T @ found.z - found.Q)
    for index in ((0, 0), (1, 0), (1, 1)):
        step = np.zeros_like(L)
        step[index] = h
        slope = (total(theta, L + step, 0.2) - total(theta, L - step, 0.2)) / (2 * h)
        assert by_L[index] == pytest.approx(slope, abs=1e-7)
    by_x = np.sum(law.by_log_parameter(points, law.rows(points), found))
    slope = (total(theta, L, 0.2 + h) - total(theta, L, 0.2 - h)) / (2 * h)
    assert by_x == pytest.approx(slope, abs=1e-7)


def test_derivative_by_each_gap():
    points, theta, L = draw("ordered")
    gaps, h = np.array([0.7, 0.9]), 1e-5

    def total(log_gaps):
        law = Ordered(np.exp(log_gaps))
        return find_posteriors(law, points, theta, L, 1e-11).bound.sum() + law.constant(points)

    law = Ordered(gaps)
    found = find_posteriors(law, points, theta, L, 1e-11)
    slopes = [
        (total(np.log(gaps) + step) - total(np.log(gaps) - step)) / (2 * h)
        for step in h * np.eye(2)
    ]
    got = law.by_log_parameter(points, law.rows(points), found)
    np.testing.assert_allclose(got, slopes, atol=1e-7)


def likelihood_of(kind, law, y, size, f):
    """p(y | f), written independently."""
    if kind == "counts":
        r, mu = 1 / law.parameter, size * np.exp(f)
        return nbinom.pmf(y, r, r / (r + mu))
    if kind == "shares":
        return binom.pmf(round((y + 1) / 2 * size), size, expit(f))
    cuts = np.concatenate([[-np.inf], law.cuts, [np.inf]])
    return expit(f - cuts[int(y)]) - expit(f - cuts[int(y) + 1])


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("variance", [1e-6, 0.5, 9.0])
def test_densities_average_over_f(kind, variance):
    points, _, _ = draw(kind)
    law, sd = LAWS[kind](0.2), np.sqrt(variance)
    mean = np.linspace(-2, 2, len(points.y))
    got = law.log_density(points, mean, np.full(len(mean), variance))
    for i, m in enumerate(mean):
        y, size = points.y[i], points.weight[i, 1]
        expected = quad(
            lambda t, y=y, size=size, m=m: (
                likelihood_of(kind, law, y, size, m + sd * t) * norm.pdf(t)
            ),
            -10, 10, limit=200,
        )[0]  # fmt: skip
        assert got[i] == pytest.approx(np.log(expected), abs=1e-5)


@pytest.mark.parametrize("kind", LAWS)
def test_bound_is_below_the_likelihood_and_near_it(kind):
    """One feature, by quadrature over w."""
    points, theta, _ = draw(kind, d=1, weighted=kind != "ordered")
    points = points if points.weight is None else points._replace(
        weight=np.column_stack([np.ones(len(points.y)), points.weight[:, 1]])
    )  # fmt: skip
    law, w = LAWS[kind](0.2), np.linspace(-10, 10, 4001)
    found = find_posteriors(law, points, theta, np.eye(1))
    for t in range(1, 4):
        rows = points.take(np.array([t]))
        size = np.ones(len(rows.y)) if rows.weight is None else rows.weight[:, 1]
        values = norm.logpdf(w)
        for x, y, m in zip(rows.X[:, 0], rows.y, size, strict=True):
            values = values + np.log(likelihood_of(kind, law, y, m, x * (theta[t, 0] + w)))
        exact = np.log(np.trapezoid(np.exp(values), w))
        bound = found.bound[t] + law.constant(rows)
        assert exact - 0.05 <= bound <= exact + 1e-6


def test_two_ordered_classes_are_the_binomial():
    X, y, offsets = np.ones((4, 1)), np.array([1.0, -1, 1, 1]), np.array([0, 1, 4])
    points, theta, L = Points(X, y, offsets), np.array([[0.3], [-0.2]]), np.eye(1)
    one = find_posteriors(Binomial(), points, theta, L)
    other = find_posteriors(Ordered(np.empty(0)), points, theta, L)
    np.testing.assert_allclose(one.bound, other.bound, atol=1e-9)
    np.testing.assert_allclose(one.z, other.z, atol=1e-8)


def test_trials_are_rows_repeated():
    """Three successes in five trials are three rows of +1 and two of -1."""
    one = Points(np.ones((1, 1)), np.array([2 * 3 / 5 - 1]), np.array([0, 1]), np.array([[1.0, 5]]))
    rows = Points(np.ones((5, 1)), np.array([1.0, 1, 1, -1, -1]), np.array([0, 5]))
    theta, L = np.array([[0.4]]), np.eye(1)
    a, b = (find_posteriors(Binomial(), points, theta, L) for points in (one, rows))
    assert a.z[0, 0] == pytest.approx(b.z[0, 0], abs=1e-8)
    assert a.bound[0] == pytest.approx(b.bound[0], abs=1e-9)


def test_small_alpha_is_a_poisson_law():
    y = np.array([0.0, 1, 7, 40])
    points = Points(np.ones((4, 1)), y, np.array([0, 4]))
    mean = np.log([1.0, 2, 6, 30])
    law = NegativeBinomial(NegativeBinomial.poisson(points))
    got = law.log_density(points, mean, np.zeros(4))
    np.testing.assert_allclose(got, poisson.logpmf(y, np.exp(mean)), atol=5e-3)


@pytest.mark.parametrize("alpha", [1e-4, 0.5, 50.0])
def test_zero_and_huge_counts_have_posteriors(engine, alpha):
    y = np.array([0.0, 0, 0, 1e9, 3, 0, 1e12])
    X = np.column_stack([np.ones(7), np.linspace(-1, 1, 7)])
    points, law = Points(X, y, np.array([0, 3, 4, 6, 7, 7])), NegativeBinomial(alpha)
    solved = solve_rows(law, points, np.zeros((5, 2)), 3 * np.eye(2))
    assert np.isfinite(solved.coef).all()
    assert np.isfinite(solved.state.covariance).all()
    assert not solved.coef[4].any()
    assert X[0] @ solved.coef[0] < 0
    at_mode = X[3] @ solved.coef[1]
    assert 0 < at_mode < np.log(1e9)
    if alpha < 1e-3:
        assert at_mode == pytest.approx(np.log(1e9), abs=1e-3)


def test_averages_of_narrow_likelihoods():
    """A count of a million is told to a thousandth, beside a prior of width 1."""
    y, r = 1e6, 1e4
    m, v, e = np.log(1e6), 1.0, np.log(r)
    got = log_average(np.array([y]), np.array([y + r]), np.array([e]), np.array([m]), np.array([v]))
    constant = gammaln(y + r) - gammaln(r) - gammaln(y + 1)
    t = np.linspace(-0.2, 0.2, 200001)
    mu = np.exp(m + t)
    density = np.exp(nbinom.logpmf(y, r, r / (r + mu))) * norm.pdf(t)
    assert got[0] + constant == pytest.approx(np.log(np.trapezoid(density, t)), abs=1e-6)
