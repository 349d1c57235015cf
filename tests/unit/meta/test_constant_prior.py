"""The weak prior of the map's constant: its density, units and gradient."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import invgamma, norm

from condmeta.inner.likelihoods import Binomial, NegativeBinomial, Ordered
from condmeta.meta.constant_prior import ConstantPrior
from condmeta.meta.logistic import learn_prior
from condmeta.tasks.points import Points


def draw(n_tasks=6, n=5, seed=0):
    """Tasks with two inputs and an intercept."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n_tasks * n, 2)), np.ones(n_tasks * n)])
    y = np.sign(X @ [0.7, -0.4, 0.3] + rng.logistic(size=len(X)))
    return Points(X, y, n * np.arange(n_tasks + 1))


def test_density_is_a_normal_one_with_an_unknown_variance():
    """The slopes share their variance; the intercept has its own."""
    points = draw()
    prior, sizes = ConstantPrior.of(points, Binomial, 1.0), points.X[:, :2].std(axis=0)

    def log_density(a):
        def mixed(log_v):
            v = np.exp(log_v)
            return np.prod(norm.pdf(a, scale=np.sqrt(v))) * invgamma.pdf(v, 0.5, scale=0.5) * v

        return np.log(quad(mixed, -30, 60, limit=500)[0])

    differences = [
        prior.cost(b)[0] + log_density(sizes * b[:2]) + log_density(b[2:])
        for b in np.array([[0.0, 0.0, 0.0], [1.0, -0.5, 2.0], [3.0, 4.0, -1.0]])
    ]
    np.testing.assert_allclose(differences, differences[0], atol=1e-6)


def test_gradient_and_its_bound():
    """The pull is at most that of one label on the intercept, of 1.5 on two slopes of unit size."""
    prior = ConstantPrior.of(draw(), Binomial, np.inf)
    b = np.array([0.4, -1.3, 0.9])
    steps = 1e-6 * np.eye(3)
    numeric = [(prior.cost(b + h)[0] - prior.cost(b - h)[0]) / 2e-6 for h in steps]
    np.testing.assert_allclose(prior.cost(b)[1], numeric, rtol=1e-6)
    for size in (0.1, 1.0, 10.0):
        pull = np.abs(prior.cost(size * b)[1])
        assert pull[2] <= 1.0
        assert np.linalg.norm(pull[:2] / prior.size[:2]) <= 1.5


def test_inputs_may_have_other_units_and_another_centre():
    points, b = draw(), np.array([0.4, -1.3, 0.9])
    units = np.array([1e200, 1e-6, 1.0])
    moved = points._replace(X=points.X * units + [3e200, -2e-6, 0.0])
    found, expected = (ConstantPrior.of(p, Binomial, 1.0) for p in (moved, points))
    np.testing.assert_allclose(found.cost(b / units)[0], expected.cost(b)[0], rtol=1e-9)
    np.testing.assert_allclose(found.root(b / units) / units, expected.root(b), rtol=1e-9)


def test_weights_are_repetitions():
    points, times = draw(), np.arange(30) % 3
    weighted = points._replace(weight=times.astype(float))
    offsets = np.r_[0, times.reshape(6, 5).sum(axis=1).cumsum()]
    repeated = Points(np.repeat(points.X, times, axis=0), np.repeat(points.y, times), offsets)
    found, expected = (ConstantPrior.of(p, Ordered, 1.0) for p in (weighted, repeated))
    np.testing.assert_allclose(found.size, expected.size)
    assert (expected.size > 0).all()


def test_one_task_has_a_flat_prior():
    points = draw(n_tasks=1)
    assert not ConstantPrior.of(points, Binomial, 1.0).size.any()


def test_the_intercept_of_ordered_classes_is_free():
    points = draw()
    ordered = points._replace(y=np.arange(30.0) % 3)
    assert ConstantPrior.of(ordered, Ordered, 1.0).cost(np.array([0.0, 0.0, 2.0]))[0] == 0
    assert ConstantPrior.of(points, Ordered, 1.0).cost(np.array([0.0, 0.0, 2.0]))[0] > 0


@pytest.mark.parametrize(("law", "kappa"), [(NegativeBinomial, 1.0), (Binomial, 0.0)])
def test_counts_and_maximum_likelihood_have_a_flat_prior(law, kappa):
    cost, gradient = ConstantPrior.of(draw(), law, kappa).cost(np.ones(3))
    assert cost == 0
    assert not gradient.any()


def test_few_tasks_shrink_b_and_many_hardly_do():
    ratios = []
    for n_tasks in (8, 400):
        points, none = draw(n_tasks), np.zeros((n_tasks, 0))
        shrunk, free = (learn_prior(points, none, "identity", k).prior.W[-1] for k in (1.0, 0.0))
        ratios.append(np.linalg.norm(shrunk) / np.linalg.norm(free))
    assert ratios[0] < 0.9
    assert 0.98 < ratios[1] < 1
