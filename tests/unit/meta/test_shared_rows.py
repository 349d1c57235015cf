"""Some columns share their coefficients, for each likelihood: the gradient and the optimum."""

import numpy as np
import pytest

from condmeta.inner.likelihoods import Binomial, NegativeBinomial, Ordered
from condmeta.meta.ascent import Stopping
from condmeta.meta.logistic import RowModel
from condmeta.meta.prior import METRICS, Prior
from condmeta.meta.shared_rows import ColumnParts, SharedRowModel, learn_shared_rows, shifted
from condmeta.tasks.points import Points

PARTS = ColumnParts(np.array([0, 3]), np.array([1, 2]))


def binary(rng, f):
    return np.where(rng.logistic(size=len(f)) < f, 1.0, -1.0), None


def counts(rng, f):
    return rng.poisson(np.exp(f)).astype(float), None


def ordered(rng, f):
    return np.digitize(f + rng.logistic(size=len(f)), [0.0, 1.0, 2.5]).astype(float), None


def shares(rng, f):
    trials = rng.integers(1, 9, len(f))
    share = rng.binomial(trials, 1 / (1 + np.exp(-f))) / trials
    return 2 * share - 1, np.column_stack([rng.integers(1, 3, len(f)), trials]).astype(float)


KINDS = {
    counts: NegativeBinomial, binary: Binomial, shares: Binomial, ordered: Ordered,
}  # fmt: skip


def draw(labels=counts, n_tasks=12, n=5, seed=0):
    """Return labels of three columns and a constant, the middle two with shared coefficients."""
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n_tasks, 1))
    X = np.column_stack([rng.normal(size=(n_tasks * n, 3)), np.ones(n_tasks * n)])
    own = np.column_stack([0.5 * Phi[:, 0], 0.5 + 0.3 * rng.normal(size=n_tasks)])
    f = np.einsum("ij,ij->i", X[:, [0, 3]], np.repeat(own, n, axis=0)) + X[:, 1:3] @ [0.6, -0.4]
    y, weight = labels(rng, f)
    return Points(X, y, np.arange(n_tasks + 1) * n, weight), Phi


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kappa", [0.0, 3.0, np.inf])
@pytest.mark.parametrize("labels", KINDS)
def test_gradient_is_that_of_the_objective(engine, metric, kappa, labels):
    points, Phi = draw(labels)
    model = SharedRowModel(points, PARTS, Phi, kappa, KINDS[labels])
    model.accuracy = 1e-10
    frame = model.frame(model.adopt(model.start(), metric), metric)
    x = 0.5 * np.random.default_rng(1).normal(size=frame.size)
    gradient = frame.pull(model.evaluate(frame.prior(x))[1])
    values = [
        [model.evaluate(frame.prior(x + sign * h))[0] for sign in (1, -1)]
        for h in 1e-5 * np.eye(frame.size)
    ]
    np.testing.assert_allclose(gradient, [(up - down) / 2e-5 for up, down in values], atol=1e-6)


@pytest.mark.parametrize("labels", KINDS)
def test_bound_is_that_of_a_prior_without_variance(labels):
    """With zero rows of L the model of all columns has the same bound; kappa = 0: flat priors."""
    points, Phi = draw(labels)
    Phi = Phi[:, :0]
    shared = SharedRowModel(points, PARTS, Phi, 0.0, KINDS[labels])
    prior = shared.start()
    W, L = np.zeros((1, 4)), np.zeros((4, 4))
    W[0, PARTS.own], W[0, PARTS.shared] = prior.W[0], prior.beta
    L[np.ix_(PARTS.own, PARTS.own)] = prior.L
    whole = RowModel(points, Phi, 0.0, KINDS[labels])
    bound = whole.likelihood(Prior(W, L, prior.s2), None, True)[0]
    assert shared.evaluate(prior)[0] == pytest.approx(bound, abs=1e-6)


@pytest.mark.parametrize("labels", KINDS)
def test_log_densities_count_the_fixed_part(labels):
    """Held-out rows are judged as if the fixed part were in the mean of their scores."""
    points, _ = draw(labels)
    law = KINDS[labels](KINDS[labels].first(points))
    mean, shift = np.random.default_rng(2).normal(size=(2, len(points.y)))
    found = law.log_density(shifted(points, shift), mean, np.full(len(mean), 0.5))
    expected = law.log_density(points, mean + shift, np.full(len(mean), 0.5))
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize(("labels", "close"), [(counts, 1.0), (binary, 2.5), (ordered, 2.0)])
def test_truth_is_found(labels, close):
    points, Phi = draw(labels, 600, 8)
    found = learn_shared_rows(
        points, PARTS, Phi, "diagonal", 0.1, likelihood=KINDS[labels], stopping=Stopping(1e-3, 300)
    )
    np.testing.assert_allclose(found.prior.beta, [0.6, -0.4], atol=0.04 * close)
    np.testing.assert_allclose(found.prior.W, [[0.5, 0.0], [0.0, 0.5]], atol=0.06 * close)
    np.testing.assert_allclose(np.diag(found.prior.L), [0.0, 0.3], atol=0.08 * close)
