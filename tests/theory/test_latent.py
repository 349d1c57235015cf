"""Appendix B.1, the general latent variable: its gap in closed forms, sums and Monte Carlo."""

import numpy as np
import pytest

from condmeta.environments import Clusters, Latent
from condmeta.errors import DataError
from condmeta.feature_maps import MeanInput
from condmeta.theory import best_linear, gap, variance

RNG = np.random.default_rng(5)
A, B = RNG.normal(size=(3, 2)), RNG.normal(size=(3, 2))


def normal(rng, T):
    return rng.normal(size=(T, 2))


def linear_gaussian(**options):
    """alpha ~ N(0, I), w(alpha) = A alpha, x(alpha) = B alpha: everything has a closed form."""
    options = {"n": 4, "sigma_x": 1.5, "sigma_w": 0.5} | options
    return Latent(normal, w=lambda a: a @ A.T, x=lambda a: a @ B.T, **options)


def exact_gap(env):
    """Tr(A P A^T), with P the variance of E[alpha | X], by Gaussian conditioning."""
    precision = np.eye(2) + env.n / env.sigma_x**2 * B.T @ B
    explained = np.eye(2) - np.linalg.inv(precision)
    return np.trace(A @ explained @ A.T)


def test_gap_of_a_linear_gaussian_latent_is_the_closed_form():
    env = linear_gaussian()
    found = env.variances()
    assert abs(found.gap - exact_gap(env)) <= 4 * found.error
    assert found.error < 0.04 * exact_gap(env)
    np.testing.assert_allclose(found.mean, 3 * 0.25 + np.trace(A @ A.T), rtol=0.06)
    # here tau_rho is linear in the mean input, so the best linear function has the same gap
    linear = best_linear(env, MeanInput())
    assert abs(linear.gap - exact_gap(env)) <= 4 * np.hypot(linear.error, found.error)


def test_tau_is_the_conditional_mean_of_a_gaussian():
    env = linear_gaussian(n_nodes=50_000)
    tasks = env.sample(50, random_state=3)
    means = tasks.X.reshape(50, env.n, 3).mean(axis=1)
    gain = env.n / env.sigma_x**2 * np.linalg.inv(
        np.eye(2) + env.n / env.sigma_x**2 * B.T @ B
    ) @ B.T  # fmt: skip
    np.testing.assert_allclose(env.tau(tasks), means @ gain.T @ A.T, atol=0.1)


def test_finitely_many_alpha_are_clusters():
    w, x, pi = RNG.normal(size=(3, 2)) * 3, RNG.normal(size=(3, 2)), np.array([0.5, 0.3, 0.2])
    clusters = Clusters(w, x, weights=pi, n=3, sigma_w=0.7)
    env = Latent(
        lambda rng, T: rng.choice(3, size=T, p=pi), w=lambda a: w[a], x=lambda a: x[a], n=3,
        sigma_w=0.7, n_nodes=5000,
    )  # fmt: skip
    ours, exact = env.variances(), clusters.variances()
    assert abs(ours.gap - exact.gap) <= 4 * ours.error
    tasks = clusters.sample(30, random_state=0)
    np.testing.assert_allclose(env.tau(tasks), clusters.tau(tasks), atol=0.1)


@pytest.mark.parametrize("spread", [0.6, lambda a: 0.2 + np.abs(a[:, 0])], ids=["one", "of alpha"])
def test_gap_by_drawing_tasks_and_by_the_double_integral(spread):
    """Var(w_rho)^2 - Var(tau_rho)^2 of drawn weights, and eq. gap_closed_form_final."""
    env = Latent(
        lambda rng, T: rng.uniform(size=(T, 1)), sigma_w=spread, n=2, sigma_x=0.4,
        w=lambda a: np.hstack([np.cos(6 * a), 3 * a**2]), x=lambda a: np.hstack([a, np.sin(5 * a)]),
    )  # fmt: skip
    ours = env.variances()
    tasks = env.sample(5000, random_state=7)
    drawn = gap(tasks, env.tau)  # from the drawn weights, not from w(alpha)
    assert abs(drawn.value - ours.gap) <= 4 * np.hypot(drawn.error, ours.error)
    mean = variance(tasks, "mean")
    assert abs(mean.value - ours.mean) <= 4 * np.sqrt(2) * mean.error
    # (1/2) E (1 - p(X|a) p(X|a') / p(X)) ||w(a) - w(a')||^2: draw X given a, average over a'
    rng, m = np.random.default_rng(0), 1000
    a = env.draw(rng, m)
    W, C = env.w(a), env.x(a)
    means = C + env.sigma_x / np.sqrt(env.n) * rng.normal(size=C.shape)  # sufficient
    logs = -env.n / (2 * env.sigma_x**2) * ((means[:, None] - C) ** 2).sum(axis=2)
    likelihood = np.exp(logs)
    ratio = likelihood / likelihood.mean(axis=1, keepdims=True)  # p(X|a') / p(X)
    distances = ((W[:, None] - W) ** 2).sum(axis=2)
    integral = ((1 - ratio) * distances).mean(axis=1) / 2
    assert abs(integral.mean() - ours.gap) <= 5 * integral.std() / np.sqrt(m)


def test_what_functions_must_return_is_said():
    with pytest.raises(DataError, match=r"'x' of Latent must return finite .* \(2000, 3\)"):
        Latent(normal, w=lambda a: a @ A.T, x=lambda a: a)
    with pytest.raises(DataError, match="'sigma_w' of Latent must not return negative"):
        Latent(normal, w=lambda a: a, x=lambda a: a, sigma_w=lambda a: a[:, 0])
