"""The learned prior for two classes: its gradient, optimum and truth, and its choice."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from condmeta.meta.ascent import Stopping
from condmeta.meta.logistic import RowModel, learn_prior
from condmeta.meta.logistic_choice import choose
from condmeta.meta.prior import METRICS, Frame
from condmeta.meta.ridge_choice import KAPPAS
from condmeta.meta.row_judge import RowJudge, ShownPoints
from condmeta.tasks.points import Points


def draw(n_tasks, n, d=2, k=2, effect=1.0, spread=1.0, seed=0):
    """Return points of tasks whose weights are linear in Phi, and Phi standardised."""
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n_tasks, k))
    Phi = (Phi - Phi.mean(axis=0)) / Phi.std(axis=0)
    W = effect * Phi @ rng.normal(size=(k, d)) + 0.5 + spread * rng.normal(size=(n_tasks, d))
    X = rng.normal(size=(n_tasks * n, d))
    f = np.einsum("ij,ij->i", X, np.repeat(W, n, axis=0))
    y = np.where(rng.random(len(f)) < expit(f), 1.0, -1.0)
    return Points(X, y, np.arange(n_tasks + 1) * n), Phi


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kappa", [0.0, 3.0, np.inf])
def test_gradient_is_that_of_the_objective(engine, metric, kappa):
    points, Phi = draw(9, 4, 3)
    model = RowModel(points, Phi, kappa, accuracy=1e-10)
    frame = Frame.around(model, model.adopt(model.start(), metric), metric)
    x = 0.5 * np.random.default_rng(1).normal(size=frame.size)
    gradient = frame.pull(model.evaluate(frame.prior(x))[1])
    values = [
        [model.evaluate(frame.prior(x + sign * h))[0] for sign in (1, -1)]
        for h in 1e-5 * np.eye(frame.size)
    ]
    np.testing.assert_allclose(gradient, [(up - down) / 2e-5 for up, down in values], atol=1e-7)


@pytest.mark.parametrize("metric", METRICS)
def test_objective_never_falls(metric):
    points, Phi = draw(40, 5, 3)
    trace: list[float] = []
    found = learn_prior(points, Phi, metric, 1.0, stopping=Stopping(1e-5, 300), trace=trace)
    assert len(trace) > 3
    assert np.diff(trace).min() >= -1e-8 * abs(trace[-1])
    model = RowModel(points, Phi, 1.0)
    slope = Frame.around(model, found.prior, metric).pull(model.evaluate(found.prior)[1])
    assert np.abs(slope).max() < 1e-3


def test_known_truth_is_found():
    """The bound makes H smaller, here by less than a fifth; W is known to a standard error."""
    points, Phi = draw(2000, 20)
    prior = learn_prior(points, Phi, "full", 0.1).prior
    np.testing.assert_allclose(prior.H, np.eye(2), atol=0.2)
    rng = np.random.default_rng(0)
    rng.normal(size=Phi.shape)
    np.testing.assert_allclose(prior.W[:-1], rng.normal(size=(2, 2)), atol=0.15)
    np.testing.assert_allclose(prior.W[-1], 0.5, atol=0.1)


def test_metric_is_finite_where_all_tasks_are_separable():
    """Three points in five dimensions: the likelihood, unlike Laplace's, has its top inside."""
    points, Phi = draw(400, 3, 5, 1)
    H = learn_prior(points, Phi, "identity", 1.0).prior.H
    assert 0.1 < H[0, 0] < 2


def test_infinite_kappa_leaves_side_information_out():
    points, Phi = draw(50, 5)
    with_phi = learn_prior(points, Phi, "diagonal", np.inf).prior
    without = learn_prior(points, Phi[:, :0], "diagonal", 1.0).prior
    assert not with_phi.W[:-1].any()
    np.testing.assert_array_equal(with_phi.W[-1], without.W[-1])


def pick(points, Phi):
    T, d = len(Phi), points.X.shape[1]
    X, y = points.X.reshape(T, -1, d), points.y.reshape(T, -1)
    first, second = (
        Points(X[:, at].reshape(-1, d), y[:, at].ravel(), np.arange(T + 1) * y[:, at].shape[1])
        for at in (slice(1, None, 2), slice(0, None, 2))
    )
    none = points.where(np.zeros(len(points.y), bool))
    trials = [
        ShownPoints(first, second, Phi),
        ShownPoints(second, first, Phi),
        ShownPoints(none, points, Phi),
    ]
    return choose(RowJudge(points, Phi, trials, np.arange(T) % 5), tuple(METRICS), KAPPAS)


def test_side_information_that_pays_is_used():
    choice = pick(*draw(200, 6))
    assert choice.method == "held-out tasks"
    assert choice.chosen.kappa <= 10
    assert choice.scores[choice.chosen] == min(choice.scores.values())


def test_noise_is_left_out():
    assert pick(*draw(80, 6, 2, 8, effect=0.0)).chosen.kappa >= 100


@pytest.mark.parametrize("n_tasks", [15, 29])
def test_few_tasks_are_chosen_by_the_evidence(n_tasks):
    choice = pick(*draw(n_tasks, 20, 2, 1))
    assert choice.method == "evidence"
    assert choice.chosen.kappa <= 10
    assert pick(*draw(15, 20, 2, 1, effect=0.0)).chosen.kappa >= 10
