"""Counts of which some columns share their coefficients: the gradient and the optimum."""

import numpy as np
import pytest

from condmeta.inner.likelihoods import NegativeBinomial
from condmeta.meta.ascent import Stopping
from condmeta.meta.logistic import RowModel
from condmeta.meta.prior import METRICS, Prior
from condmeta.meta.shared_rows import ColumnParts, SharedCountModel, learn_shared_counts
from condmeta.tasks.points import Points

PARTS = ColumnParts(np.array([0, 3]), np.array([1, 2]))


def draw(n_tasks=12, n=5, seed=0):
    """Return counts of three columns and a constant, the middle two with shared coefficients."""
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n_tasks, 1))
    X = np.column_stack([rng.normal(size=(n_tasks * n, 3)), np.ones(n_tasks * n)])
    own = np.column_stack([0.5 * Phi[:, 0], 0.5 + 0.3 * rng.normal(size=n_tasks)])
    f = np.einsum("ij,ij->i", X[:, [0, 3]], np.repeat(own, n, axis=0)) + X[:, 1:3] @ [0.6, -0.4]
    return Points(X, rng.poisson(np.exp(f)).astype(float), np.arange(n_tasks + 1) * n), Phi


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kappa", [0.0, 3.0, np.inf])
def test_gradient_is_that_of_the_objective(engine, metric, kappa):
    points, Phi = draw()
    model = SharedCountModel(points, PARTS, Phi, kappa)
    model.accuracy = 1e-10
    frame = model.frame(model.adopt(model.start(), metric), metric)
    x = 0.5 * np.random.default_rng(1).normal(size=frame.size)
    gradient = frame.pull(model.evaluate(frame.prior(x))[1])
    values = [
        [model.evaluate(frame.prior(x + sign * h))[0] for sign in (1, -1)]
        for h in 1e-5 * np.eye(frame.size)
    ]
    np.testing.assert_allclose(gradient, [(up - down) / 2e-5 for up, down in values], atol=1e-6)


def test_bound_is_that_of_a_prior_without_variance():
    """With zero rows of L the model of all columns has the same bound."""
    points, Phi = draw()
    shared = SharedCountModel(points, PARTS, Phi, np.inf)
    prior = shared.start()
    W, L = np.zeros((1, 4)), np.zeros((4, 4))
    W[0, PARTS.own], W[0, PARTS.shared] = prior.W[0], prior.beta
    L[np.ix_(PARTS.own, PARTS.own)] = prior.L
    whole = RowModel(points, Phi, np.inf, NegativeBinomial)
    bound = whole.likelihood(Prior(W, L, prior.s2), None, True)[0]
    assert shared.evaluate(prior)[0] == pytest.approx(bound, abs=1e-6)


def test_truth_is_found():
    points, Phi = draw(600, 8)
    found = learn_shared_counts(points, PARTS, Phi, "diagonal", 0.1, stopping=Stopping(1e-3, 300))
    np.testing.assert_allclose(found.prior.beta, [0.6, -0.4], atol=0.04)
    np.testing.assert_allclose(found.prior.W, [[0.5, 0.0], [0.0, 0.5]], atol=0.06)
    np.testing.assert_allclose(np.diag(found.prior.L), [0.0, 0.3], atol=0.08)
