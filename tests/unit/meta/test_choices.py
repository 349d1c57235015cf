"""The scores by which settings and candidates are chosen, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import block_diag
from scipy.special import expit
from scipy.stats import multivariate_normal, norm
from sklearn.linear_model import QuantileRegressor

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
from condmeta.meta.stacking import (
    CRITERIA,
    LOG_LOSS,
    absolute_weights,
    best_blend,
    best_weights,
    convex_weights,
    median_line,
)  # fmt: skip
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


@pytest.mark.parametrize("name", ["squared", "absolute"])
def test_a_combination_must_win_on_tasks_that_it_was_not_fitted_to(name):
    """Candidates of pure noise fit the rows that they are fitted to, and no others."""
    alone = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y, noise = rng.normal(size=24), rng.normal(size=(24, 6))
        answers = np.column_stack([np.zeros(24), noise])
        weights = best_weights(answers, y, np.arange(24), CRITERIA[name])
        assert weights.sum() == pytest.approx(1)
        alone += weights.max() == 1
    assert alone >= 12


def test_a_line_must_win_on_tasks_that_it_was_not_fitted_to():
    """Half of the tasks are 1 above their predictions, the others 10: no line serves both."""
    task = np.repeat(np.arange(20), 5)
    mixed = np.random.default_rng(0).normal(size=100)
    apart = mixed + np.where(task % 2 == 0, 1.0, 10.0)
    blend = best_blend(mixed[:, None], apart, task, CRITERIA["absolute"])
    assert (blend.shift, blend.slope) == (0.0, 1.0)
    alike = best_blend(mixed[:, None], mixed + 4.0, task, CRITERIA["absolute"])
    assert alike.shift == pytest.approx(4.0)


def test_complementary_candidates_are_combined():
    rng = np.random.default_rng(3)
    parts = rng.normal(size=(2, 200))
    answers = 2 * parts.T
    weights = best_weights(answers, parts.sum(axis=0), np.arange(200), CRITERIA["squared"])
    np.testing.assert_allclose(weights, 0.5, atol=0.02)


@pytest.mark.parametrize("criterion", [*CRITERIA.values(), LOG_LOSS], ids=lambda c: c.title)
def test_weights_repeat_rows(criterion):
    rng = np.random.default_rng(4)
    y = np.sign(rng.normal(size=40))
    answers = expit(rng.normal(size=(40, 3)) + y[:, None])
    task, times = np.arange(40) // 2, np.arange(40) % 3 + 1
    weighted = best_weights(answers, y, task, criterion, times.astype(float))
    parts = (np.repeat(part, times, axis=0) for part in (answers, y, task))
    np.testing.assert_allclose(weighted, best_weights(*parts, criterion), atol=1e-3)


def test_weighted_mixtures_are_those_of_repeated_rows():
    rng = np.random.default_rng(2)
    y, times = np.sign(rng.normal(size=40)), np.arange(40) % 4 + 1
    answers = expit(1.5 * rng.normal(size=(40, 2)) + y[:, None])
    found = LOG_LOSS.weights(answers, y, times.astype(float))
    expected = LOG_LOSS.weights(np.repeat(answers, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert 0.1 < found[0] < 0.9
    assert abs(found[0] - LOG_LOSS.weights(answers, y)[0]) > 0.01


def test_mixture_weights_minimise_the_log_loss():
    rng = np.random.default_rng(5)
    y = np.sign(rng.normal(size=60))
    answers = expit(0.7 * rng.normal(size=(60, 2)) + y[:, None])
    found = LOG_LOSS.weights(answers, y)
    grid = np.linspace(0, 1, 2001)
    losses = [LOG_LOSS.losses(answers @ [[a], [1 - a]], y).mean() for a in grid]
    assert found[0] == pytest.approx(grid[int(np.argmin(losses))], abs=2e-3)


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


def skewed_predictions(seed=0, n=600):
    """Return means (n, 2) of exponential labels, the labels and their tasks."""
    rng = np.random.default_rng(seed)
    mean = rng.uniform(1, 5, size=n)
    return np.column_stack([mean, mean + 0.1]), rng.exponential(mean), np.arange(n) // 4


def test_the_median_line_is_the_least_absolute_deviation():
    answers, y, _ = skewed_predictions()
    weight = np.arange(len(y)) % 3 + 1.0
    for m in (None, weight):
        exact = QuantileRegressor(quantile=0.5, alpha=0).fit(answers[:, :1], y, sample_weight=m)
        shift, slope = median_line(answers[:, 0], y, m)
        lost = [np.average(np.abs(y - a - b * answers[:, 0]), weights=m)
                for a, b in ((shift, slope), (exact.intercept_, exact.coef_[0]))]  # fmt: skip
        assert lost[0] < 1.001 * lost[1]
    assert slope == pytest.approx(np.log(2), abs=0.1)  # the median of an exponential of mean 1


def test_means_of_skewed_labels_become_medians():
    answers, y, task = skewed_predictions()
    blend = best_blend(answers, y, task, CRITERIA["absolute"])
    new, label, _ = skewed_predictions(1)
    np.testing.assert_allclose(blend.of(new), blend.shift + blend.slope * (new @ blend.weights))
    assert np.abs(label - blend.of(new)).mean() < 0.97 * np.abs(label - new[:, 0]).mean()
    assert best_blend(answers, y, task, CRITERIA["squared"])[1:] == (0.0, 1.0)


def test_lines_are_left_out_where_labels_lie_evenly():
    left_out = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = rng.normal(size=24)
        y = p + rng.standard_cauchy(size=24)
        found = best_blend(p[:, None], y, np.arange(24), CRITERIA["absolute"])
        left_out += found[1:] == (0.0, 1.0)
    assert left_out >= 38
    alone = best_blend(p[:1, None], y[:1], np.zeros(1, int), CRITERIA["absolute"])
    assert alone[1:] == (0.0, 1.0)


def test_predictions_without_error_need_no_line():
    y = np.arange(20.0)
    np.testing.assert_allclose(median_line(y, y), [0, 1], atol=1e-9)


def test_absolute_weights_beat_those_of_squares_under_wild_labels():
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    answers = np.column_stack([y + 0.1 * rng.normal(size=400), np.zeros(400)])
    wild = np.where(np.arange(400) % 10 == 0, -30 * y, y)  # a tenth of the labels is nonsense
    lost = [np.abs(wild - answers @ f(answers, wild)).mean()
            for f in (absolute_weights, convex_weights)]  # fmt: skip
    assert lost[0] < 0.95 * lost[1]
