"""Averages of priors, and the covariance of theta of tasks that a map has not seen."""

from __future__ import annotations

import numpy as np
import pytest

import condmeta as cm
from condmeta.inner.squared import SquaredState
from condmeta.meta.map_covariance import information_of_theta, map_covariance
from condmeta.meta.prior import Prior
from condmeta.meta.prior_mixture import bootstrap_weights, evidence_weights, mix
from condmeta.meta.unseen_map import unseen_covariance


def test_weights_say_how_often_a_setting_is_the_best():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=400)
    losses = {"a": noise, "same": noise + 1e-9, "b": rng.normal(size=400), "bad": noise + 1}
    weights = bootstrap_weights(losses)
    assert sum(weights.values()) == pytest.approx(1)
    assert "bad" not in weights
    assert "same" not in weights  # the first of equals is the simplest
    assert 0.05 < weights["b"] < 0.95


def test_evidence_weighs_as_bayes_formula_does():
    weights = evidence_weights({"a": 10.0, "b": 10.0 + np.log(3), "bad": 90.0})
    assert weights == pytest.approx({"a": 0.75, "b": 0.25})


def test_mixture_has_the_moments_of_drawn_weights():
    rng = np.random.default_rng(0)
    Phi = rng.normal(size=(5, 2))
    priors = [
        Prior(rng.normal(size=(3, 2)), np.tril(rng.normal(size=(2, 2))), s2) for s2 in (1.0, 4.0)
    ]
    found = mix(priors, (0.3, 0.7), Phi)
    n = 200_000
    task, which = rng.integers(5, size=n), (rng.random(n) < 0.7).astype(int)
    mean = np.array([prior.theta(Phi) for prior in priors])
    L = np.array([prior.L for prior in priors])
    w = mean[which, task] + np.einsum("nij,nj->ni", L[which], rng.normal(size=(n, 2)))
    np.testing.assert_allclose(found.theta(Phi), np.tensordot([0.3, 0.7], mean, 1), atol=1e-12)
    around = w - found.theta(Phi)[task]
    np.testing.assert_allclose(found.H, around.T @ around / n, atol=0.05)
    assert found.s2 == pytest.approx(4**0.7)


@pytest.mark.parametrize("kappa", [2.0, np.inf])
def test_covariance_of_an_unseen_task_is_that_of_a_map_learned_without_it(kappa):
    """Against the inverse of the information of all other tasks."""
    rng = np.random.default_rng(1)
    T, n, d, k = 9, 6, 2, 2
    X, Phi = rng.normal(size=(T * n, d)), rng.normal(size=(T, k))
    stats = SquaredState.of(X, rng.normal(size=T * n), n * np.arange(T + 1))
    L, s2 = np.tril(rng.normal(size=(d, d))), np.full(T, 0.7)
    found = unseen_covariance(stats, Phi, np.zeros((T, d)), L, s2, kappa)
    expected = []
    for t in range(T):
        rest = np.delete(np.arange(T), t)
        without = map_covariance(
            stats.take(rest), Phi[rest], np.zeros((T - 1, d)), L, s2[rest], kappa, robust=False
        )
        expected.append(without.of_theta(np.append(Phi[t], 1.0)[None])[0])
    np.testing.assert_allclose(found, np.mean(expected, axis=0), rtol=1e-6)
    assert information_of_theta(stats.gram, L, s2).shape == (T, d, d)


@pytest.mark.parametrize("n_tasks", [1, 2])
def test_one_or_two_tasks_leave_a_finite_covariance(n_tasks):
    rows = np.tile(np.eye(2), (n_tasks, 1))
    stats = SquaredState.of(rows, np.ones(len(rows)), 2 * np.arange(n_tasks + 1))
    parts = np.empty((n_tasks, 0)), np.zeros((n_tasks, 2)), np.eye(2), np.ones(n_tasks)
    found = unseen_covariance(stats, *parts, np.inf)
    assert np.isfinite(found).all()
    assert found.any() == (n_tasks == 2)


def test_probabilities_of_few_tasks_are_drawn_to_the_middle():
    """H alone leaves out that the map was estimated; a task's weights vary by more than H."""
    rng = np.random.default_rng(0)
    task, X = np.repeat(np.arange(20), 8), rng.normal(size=(160, 2))
    y = X[:, 0] + rng.normal(size=160) > 0
    model = cm.ConditionalLogistic(metric="identity").fit(X, y, task=task)
    factor = model.fitted_.inner.factor
    assert (np.linalg.eigvalsh(factor @ factor.T - model.H_) > 0).all()
