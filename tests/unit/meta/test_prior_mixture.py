"""Averages of priors, and the covariance of theta of tasks that a map has not seen."""

from __future__ import annotations

import numpy as np
import pytest

import condmeta as cm
from condmeta.meta.prior import Prior
from condmeta.meta.prior_mixture import bootstrap_weights, evidence_weights, mix


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


def test_probabilities_of_few_tasks_are_drawn_to_the_middle():
    """H alone leaves out that the map was estimated; a task's weights vary by more than H."""
    rng = np.random.default_rng(0)
    task, X = np.repeat(np.arange(20), 8), rng.normal(size=(160, 2))
    y = X[:, 0] + rng.normal(size=160) > 0
    model = cm.ConditionalLogistic(metric="identity").fit(X, y, task=task)
    factor = model.fitted_.inner.factor
    assert (np.linalg.eigvalsh(factor @ factor.T - model.H_) > 0).all()
