"""The scores by which settings and candidates are chosen, against their definitions."""

from __future__ import annotations

import numpy as np
from scipy.integrate import quad
from scipy.linalg import block_diag
from scipy.special import expit
from scipy.stats import multivariate_normal, norm

import condmeta as cm
from condmeta.feature_maps import MeanInput
from condmeta.inner.likelihoods import Binomial
from condmeta.inner.row_posterior import Bernoulli
from condmeta.inner.squared import SquaredState
from condmeta.learners import ridge_learning
from condmeta.meta import logistic_choice, row_judge
from condmeta.meta.ascent import Stopping
from condmeta.meta.prior import LearnedPrior, Prior
from condmeta.meta.ridge import learn_prior
from condmeta.tasks.points import Points
from condmeta.tasks.splits import rows_by_content

T, N, D = 7, 5, 2


def dense_evidence(X, y, Phi, metric, kappa, prior):
    """Return the log density of y with M ~ N(0, H / kappa) and a flat b, less the BIC term of H."""
    rows = np.split(X, T)
    V = block_diag(*(x @ prior.H @ x.T + prior.s2 * np.eye(N) for x in rows))
    if np.isfinite(kappa):
        for column in Phi.T:
            Z = np.vstack([phi * x for phi, x in zip(column, rows, strict=True)])
            V += Z @ prior.H @ Z.T / kappa
    inverse = np.linalg.inv(V)
    of_b = X.T @ inverse @ X
    b = np.linalg.solve(of_b, X.T @ inverse @ y)
    distance = (y - X @ b) @ inverse @ (y - X @ b)
    logdets = np.linalg.slogdet(V)[1] + np.linalg.slogdet(of_b)[1]
    free = {"identity": 1, "diagonal": D, "full": D * (D + 1) / 2}[metric]
    return -(logdets + distance) / 2 - free / 2 * np.log(T)


def test_evidence_is_the_density_of_the_labels_with_the_map_integrated_out():
    """Up to a constant that all settings share."""
    rng = np.random.default_rng(0)
    X, Phi = rng.normal(size=(T * N, D)), rng.normal(size=(T, 2))
    w = Phi @ rng.normal(size=(2, D)) + rng.normal(size=(T, D))
    y = np.einsum("ij,ij->i", X, np.repeat(w, N, axis=0)) + 0.5 * rng.normal(size=T * N)
    stats = SquaredState.of(X, y, N * np.arange(T + 1))
    differences = []
    for metric in ("identity", "diagonal", "full"):
        for kappa in (np.inf, 10.0, 0.5):
            learned = learn_prior(stats, Phi, metric, kappa, stopping=Stopping(1e-7, 3000))
            found = logistic_choice.evidence(stats, Phi, metric, kappa, learned)
            expected = dense_evidence(X, y, Phi, metric, kappa, learned.prior)
            differences.append(found - expected)
    np.testing.assert_allclose(differences, differences[0], atol=1e-4)


def test_evidence_integrates_b_over_its_prior():
    rng = np.random.default_rng(0)
    X, P = rng.normal(size=(T * N, D)), np.array([3.0, 0.5])
    y = X @ [1.0, -0.5] + rng.normal(size=T * N)
    stats, none = SquaredState.of(X, y, N * np.arange(T + 1)), np.zeros((T, 0))
    differences = []
    for L in (np.diag([1.0, 0.3]), np.array([[0.5, 0.0], [0.4, 2.0]])):
        V = block_diag(*(x @ L @ L.T @ x.T + np.eye(N) for x in np.split(X, T)))
        inverse = np.linalg.inv(V)
        b = np.linalg.solve(X.T @ inverse @ X + np.diag(P), X.T @ inverse @ y)
        at_b = multivariate_normal(X @ b, V).logpdf(y) - P @ b**2 / 2
        learned = LearnedPrior(Prior(b[None], L, 1.0), at_b, 1)
        found = logistic_choice.evidence(stats, none, "full", np.inf, learned, np.sqrt(P))
        V += X @ np.diag(1 / P) @ X.T
        differences.append(found - multivariate_normal(np.zeros(len(y)), V).logpdf(y))
    np.testing.assert_allclose(differences, differences[0], atol=1e-6)


def test_log_loss_averages_over_the_posterior_of_the_weights():
    rng = np.random.default_rng(1)
    prior = Prior(np.array([[0.5], [0.3]]), np.array([[1.7]]), 1.0)
    Phi = rng.normal(size=(3, 1))
    halves = [
        Points(rng.normal(size=(n, 1)), np.sign(rng.normal(size=n)), cuts, weight)
        for n, cuts, weight in (
            (5, np.array([0, 0, 2, 5]), None),
            (6, np.array([0, 2, 3, 6]), np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0])),
        )
    ]
    support, query = halves
    found = row_judge.task_losses(Binomial(), prior.theta(Phi), prior.L, support, query)
    solved = Bernoulli(prior.L).solve_tasks(prior.theta(Phi), *support[:3])
    expected = np.zeros(3)
    for t in range(3):
        mean, variance = solved.coef[t, 0], solved.state.covariance[t, 0, 0]
        for i in range(*query.offsets[t : t + 2]):
            m, s = query.X[i, 0] * mean, abs(query.X[i, 0]) * np.sqrt(variance)
            chance = quad(lambda f, y=query.y[i], m=m, s=s: expit(y * f) * norm.pdf(f, m, s),
                          m - 12 * s, m + 12 * s)[0]  # fmt: skip
            expected[t] -= query.weight[i] * np.log(chance)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_task_without_points_is_judged_at_the_mean_features(monkeypatch):
    """Maps of points: half of the points give other features, and none give the mean ones."""
    seen = {}

    def choose(halves, Phi, shown, *rest):
        seen.update(Phi=Phi, shown=shown)
        return real(halves, Phi, shown, *rest)

    real = ridge_learning.choose
    monkeypatch.setattr(ridge_learning, "choose", choose)
    tasks = cm.environments.Circle(d=2, n=6).sample(30, random_state=0)
    learner = cm.ConditionalRidge(MeanInput(), scale="none", fit_intercept=False).fit(tasks)
    assert np.abs(seen["shown"].without).max() == 0
    Phi = np.array([part.mean(axis=0) for part in np.split(tasks.X, 30)])
    rows = tasks.X[rows_by_content(tasks)]
    half = np.array([part[1::2].mean(axis=0) for part in np.split(rows, 30)])
    scaled = (half - Phi.mean(axis=0)) / Phi.std(axis=0)
    order = [tasks.ids.tolist().index(i) for i in learner.fitted_.state.ids.tolist()]
    expected = scaled[order][learner.fitted_.state.sample]
    np.testing.assert_allclose(seen["shown"].with_support, expected, atol=1e-9)
