"""The learned prior: its objective, gradient and optimum, and the choice of its settings."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import native
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from condmeta.inner.squared import SquaredState
from condmeta.meta.ascent import Stopping
from condmeta.meta.blocks import OneBlock
from condmeta.meta.prior import METRICS, Frame, Prior, PriorModel, inverse_curvature
from condmeta.meta.ridge import RidgeModel, learn_from_blocks, learn_prior
from condmeta.meta.ridge_choice import RidgeOptions, choose
from condmeta.meta.ridge_judge import HeldOutFeatures, SplitStatistics
from condmeta.meta.setting_path import evidence


def draw(n_tasks=30, n=5, d=2, k=2, seed=0, effect=1.0, noise=0.5):
    """Return rows of tasks whose weights are linear in Phi, and Phi standardised."""
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n_tasks, k))
    Phi = (Phi - Phi.mean(axis=0)) / Phi.std(axis=0)
    W = effect * Phi @ rng.normal(size=(k, d)) + [1.0] * d + 0.3 * rng.normal(size=(n_tasks, d))
    X = rng.normal(size=(n_tasks, n, d))
    y = np.einsum("tnd,td->tn", X, W) + noise * rng.normal(size=(n_tasks, n))
    return X, y, Phi


def flat(X, y):
    return X.reshape(-1, X.shape[2]), y.ravel(), np.arange(len(X) + 1) * X.shape[1]


def dense_objective(X, y, Phi, W, H, s2, kappa):
    """J by the definition: dense normal densities, and the ridge."""
    total = 0.0
    for rows, label, mean in zip(X, y, Phi @ W[:-1] + W[-1], strict=True):
        cov = s2 * np.eye(len(label)) + rows @ H @ rows.T
        total += multivariate_normal.logpdf(label, rows @ mean, cov)
    M = W[:-1].T
    return total - kappa / 2 * np.trace(M.T @ np.linalg.inv(H) @ M)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kappa", [0.0, 3.0, np.inf])
@pytest.mark.parametrize("away", [0.5, 0.0])  # at the start L is diagonal, whatever the metric
def test_gradient_is_that_of_the_objective(engine, metric, kappa, away):
    X, y, Phi = draw(9, 4, 3)
    model = RidgeModel(OneBlock.of(SquaredState.of(*flat(X, y)), Phi), kappa)
    frame = Frame.around(model, model.adopt(model.start(), metric), metric)
    x = away * np.random.default_rng(1).normal(size=frame.size)
    gradient = frame.pull(model.evaluate(frame.prior(x))[1])
    values = [
        [model.evaluate(frame.prior(x + sign * h))[0] for sign in (1, -1)]
        for h in 1e-5 * np.eye(frame.size)
    ]
    np.testing.assert_allclose(gradient, [(up - down) / 2e-5 for up, down in values], atol=1e-7)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kappa", [0.5, 10.0])
def test_objective_is_the_definition(metric, kappa):
    X, y, Phi = draw(8, 4, 3)
    found = learn_prior(SquaredState.of(*flat(X, y)), Phi, metric, kappa)
    prior = found.prior
    expected = dense_objective(X, y, Phi, prior.W, prior.H, prior.s2, kappa)
    assert found.objective == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kappa", [0.1, 10.0, np.inf])
def test_objective_never_falls(metric, kappa):
    X, y, Phi = draw(20, 3, 4)
    trace: list[float] = []
    learn_prior(
        SquaredState.of(*flat(X, y)), Phi, metric, kappa, stopping=Stopping(1e-6, 300), trace=trace
    )
    assert len(trace) > 3
    assert np.diff(trace).min() >= -1e-9 * abs(trace[-1])


def test_optimum_is_that_of_a_general_optimiser():
    X, y, Phi = draw(25, 4, 2, 1)
    kappa = 2.0

    def loss(x):
        H = np.diag(np.exp(x[4:6]))
        return -dense_objective(X, y, Phi, x[:4].reshape(2, 2), H, np.exp(x[6]), kappa)

    start = np.concatenate([np.ones(4), [-2.0, -2.0, -1.0]])
    theirs = minimize(loss, start, method="BFGS", options={"gtol": 1e-4})
    ours = learn_prior(
        SquaredState.of(*flat(X, y)), Phi, "diagonal", kappa, stopping=Stopping(1e-6, 300)
    )
    assert ours.objective == pytest.approx(-theirs.fun, abs=1e-6)
    np.testing.assert_allclose(ours.prior.W.ravel(), theirs.x[:4], atol=1e-4)
    np.testing.assert_allclose(np.diag(ours.prior.H), np.exp(theirs.x[4:6]), atol=1e-4)


@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_engines_find_the_same_prior(monkeypatch, noise):
    X, y, Phi = draw(40, 5, 3)
    blocks, found = OneBlock.of(SquaredState.of(*flat(X, y)), Phi), []
    delta = np.full(Phi.shape[1], noise) if noise else None
    for engine in ("numpy", ""):
        monkeypatch.setenv("CONDMETA_ENGINE", engine)
        found.append(learn_from_blocks(blocks, "full", 1.0, delta=delta))
    ours, theirs = found
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-10)
    for name in ("W", "H", "s2"):
        pair = (getattr(each.prior, name) for each in found)
        np.testing.assert_allclose(*pair, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kappa", [1.0, np.inf])
def test_curvature_is_that_of_second_differences(metric, kappa):
    X, y, Phi = draw(40, 6, 2, 1)
    model = RidgeModel(OneBlock.of(SquaredState.of(*flat(X, y)), Phi), kappa)
    prior = learn_prior(SquaredState.of(*flat(X, y)), Phi, metric, kappa).prior
    frame = model.frame(model.adopt(prior, metric), metric)
    p, h = frame.size, 0.05

    def value(*steps):
        return model.slope(frame, h * np.sum(steps, axis=0))[0]

    unit = np.eye(p)
    hessian = [[(value(a, b) - value(a, -b) - value(-a, b) + value(-a, -b)) / (4 * h * h)
                for a in unit] for b in unit]  # fmt: skip
    found = inverse_curvature(model, prior, metric)
    np.testing.assert_allclose(found @ -np.array(hessian), np.eye(p), atol=2e-2)


def test_known_curvature_saves_passes(monkeypatch):
    monkeypatch.setattr("condmeta.meta.ridge.SMALL", 0)
    X, y, Phi = draw(400, 3, 5, 2)
    rows, few = SquaredState.of(*flat(X, y)), SquaredState.of(*flat(X[:100], y[:100]))
    start = learn_prior(few, Phi[:100], "full", 0.25).prior
    inverse = inverse_curvature(RidgeModel(OneBlock.of(few, Phi[:100]), 0.25), start, "full")
    how = OneBlock.of(rows, Phi), "full", 1.0, start, None, Stopping(1e-4, 300)
    plain, quick = learn_from_blocks(*how), learn_from_blocks(*how, inverse=inverse)
    best = learn_from_blocks(*how[:-1], Stopping(1e-6, 500))
    assert quick.passes <= 0.7 * plain.passes
    assert best.objective - 1e-2 <= quick.objective <= best.objective + 1e-8


@native
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kappa", [0.0, 1.0, np.inf])
@pytest.mark.parametrize("shape", [(9, 1, 1), (30, 3, 2), (24, 9, 5), (12, 20, 17)])
def test_engines_climb_alike(metric, kappa, shape):
    T, d, k = shape
    X, y, Phi = draw(T, 6, d, k)
    model = RidgeModel(OneBlock.of(SquaredState.of(*flat(X, y)), Phi), kappa)
    frame = Frame.around(model, model.adopt(model.start(), metric), metric)
    # Few evaluations: near a singular H roundings grow with every step.
    stopping = Stopping(tol=1e-6, max_evaluations=7)
    ours, theirs = model.climb(frame, stopping), PriorModel.climb(model, frame, stopping)
    assert ours.passes == theirs.passes
    np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-11)
    np.testing.assert_allclose(ours.x, theirs.x, atol=1e-8)


def test_large_problems_find_the_same_prior(monkeypatch):
    X, y, Phi = draw(40, 5, 3)
    stats = SquaredState.of(*flat(X, y))
    small = learn_prior(stats, Phi, "full", 1.0)
    monkeypatch.setattr("condmeta.meta.ridge.SMALL", 0)
    large = learn_prior(stats, Phi, "full", 1.0)
    assert large.objective == pytest.approx(small.objective, abs=1e-8)
    np.testing.assert_allclose(large.prior.H, small.prior.H, rtol=1e-6)


def test_infinite_kappa_leaves_side_information_out():
    X, y, Phi = draw()
    stats = SquaredState.of(*flat(X, y))
    with_phi = learn_prior(stats, Phi, "diagonal", np.inf)
    without = learn_prior(stats, Phi[:, :0], "diagonal", 1.0)
    assert not with_phi.prior.W[:-1].any()
    assert np.array_equal(with_phi.prior.W[-1], without.prior.W[-1])
    tiny = learn_prior(stats, Phi, "diagonal", 1e9)
    np.testing.assert_allclose(tiny.prior.W[-1], with_phi.prior.W[-1], atol=1e-4)


def test_singular_metric_is_no_obstacle():
    """Tasks that differ in one direction only: H has rank one."""
    rng = np.random.default_rng(0)
    w = 1.0 + rng.normal(size=(200, 1)) * [1.0, 1.0, 0.0]
    X = rng.normal(size=(200, 5, 3))
    y = np.einsum("tnd,td->tn", X, w) + 0.3 * rng.normal(size=(200, 5))
    stats, Phi = SquaredState.of(*flat(X, y)), np.empty((200, 0))
    found = learn_prior(stats, Phi, "full", np.inf, stopping=Stopping(1e-5, 300))
    assert found.passes < 150
    np.testing.assert_allclose(found.prior.H, np.outer([1, 1, 0], [1, 1, 0]), atol=0.25)
    assert np.linalg.eigvalsh(found.prior.H)[:2].max() < 0.02


def test_variances_of_zero_take_few_evaluations():
    """One coefficient differs between tasks, fifteen do not."""
    rng = np.random.default_rng(0)
    X, task = (
        np.hstack([3 * rng.normal(size=(1600, 15)), np.ones((1600, 1))]),
        np.arange(1600) // 20,
    )
    y = 1.3 * rng.normal(size=80)[task] + 1.5 * rng.normal(size=1600)
    stats, Phi = SquaredState.of(X, y, np.arange(81) * 20), np.empty((80, 0))
    found = learn_prior(stats, Phi, "diagonal", np.inf, stopping=Stopping(1e-4, 300))
    assert found.passes <= 50
    best = learn_prior(stats, Phi, "diagonal", np.inf, stopping=Stopping(1e-7, 2000))
    assert found.objective == pytest.approx(best.objective, abs=1e-5)


def test_a_step_never_reaches_a_variance_of_zero():
    """A start far too wide, which a quasi-Newton step would shrink through zero."""
    X, y, Phi = draw(40, 6, 3, 2)
    stats = SquaredState.of(*flat(X, y))
    best = learn_prior(stats, Phi, "identity", 1.0, stopping=Stopping(1e-4, 300))
    for metric in METRICS:
        for wide in (1e3, 1e-3):
            start = Prior(np.zeros((3, 3)), wide * np.eye(3), 1.0 / wide)
            found = learn_prior(stats, Phi, metric, 1.0, start, stopping=Stopping(1e-4, 300))
            assert np.isfinite(found.objective)
            assert found.objective > best.objective - 1e-3


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("end", [0, 1])
def test_the_objective_is_a_number_wherever_a_line_search_may_look(metric, end):
    X, y, Phi = draw()
    model = RidgeModel(OneBlock.of(SquaredState.of(*flat(X, y)), Phi), 1.0)
    frame = Frame.around(model, model.start(), metric)
    ends = frame.bounds(*model.noise_range())[end]
    assert np.isfinite(ends).all()
    value, gradient = model.evaluate(frame.prior(ends))
    assert np.isfinite(value)
    assert np.isfinite(frame.pull(gradient)).all()


def test_labels_that_fit_exactly_have_a_little_noise():
    X, y, Phi = draw(10, 2, 3, 1)
    prior = learn_prior(SquaredState.of(*flat(X, X.sum(axis=2))), Phi, "full", 1.0).prior
    assert 0 < prior.s2 < 1e-6
    zero = SquaredState.of(*flat(X, 0 * y))
    assert np.isfinite(learn_prior(zero, Phi, "full", 1.0).prior.W).all()


def test_known_truth_is_found():
    X, y, Phi = draw(3000, 8, 2, 2, noise=0.5)
    prior = learn_prior(SquaredState.of(*flat(X, y)), Phi, "full", 0.1).prior
    assert prior.s2 == pytest.approx(0.25, rel=0.03)
    np.testing.assert_allclose(prior.H, 0.09 * np.eye(2), atol=0.01)


def halves_of(X, y) -> SplitStatistics:
    whole, one, two, query = (
        SquaredState.of(*flat(X[:, at], y[:, at]))
        for at in (slice(None), slice(1, 2), slice(1, None, 2), slice(0, None, 2))
    )
    return SplitStatistics(whole, (one, two), query)


def pick(X, y, Phi):
    fold = np.arange(len(X)) % 5
    features = HeldOutFeatures(Phi, Phi)
    return choose(halves_of(X, y), Phi, features, fold, RidgeOptions(), intercept=False).selection


def test_side_information_that_pays_is_used():
    choice = pick(*draw(60, 6, 2, 2))
    assert choice.method == "held-out tasks"
    assert choice.chosen.kappa <= 10


def test_noise_is_left_out():
    X, y, Phi = draw(60, 6, 3, 10, effect=0.0)
    assert pick(X, y, Phi).chosen.kappa >= 100


def test_settings_that_are_as_good_are_told_apart_by_the_density(monkeypatch):
    """All count as equally good here; the true H is not a multiple of the identity."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=(80, 2)) * [1.0, 0.02]
    X = rng.normal(size=(80, 20, 2))
    y = np.einsum("tnd,td->tn", X, w) + 0.3 * rng.normal(size=(80, 20))
    for name in "BAND", "TIE":
        monkeypatch.setattr(f"condmeta.meta.ridge_choice.{name}", 10.0)
    choice = pick(X, y, rng.normal(size=(80, 1)))
    assert len(choice.scores) == 16  # 15 pairs of metric and kappa, and a second noise of one
    assert choice.chosen.metric != "identity"
    assert choice.chosen.noise == "shared"
    assert choice.chosen.kappa >= 10  # the side information is noise


def test_few_tasks_are_chosen_by_the_evidence():
    choice = pick(*draw(12, 6, 2, 1))
    assert choice.method == "evidence"
    assert choice.chosen.noise == "shared"
    assert choice.chosen.kappa <= 10
    assert pick(*draw(12, 6, 2, 1, effect=0.0)).chosen.kappa >= 10


def test_evidence_is_the_density_with_the_map_integrated_out():
    """Differences of the evidence, against one joint normal with a wide prior on b."""
    X, y, Phi = draw(6, 3, 2, 2)
    stats, wide = SquaredState.of(*flat(X, y)), 1e7
    ours, theirs = [], []
    for kappa in (0.5, 20.0):
        learned = learn_prior(stats, Phi, "diagonal", kappa, stopping=Stopping(1e-5, 300))
        ours.append(evidence(stats, Phi, "diagonal", kappa, learned))
        H, s2 = learned.prior.H, learned.prior.s2
        rows = [
            np.einsum("nd,a->nad", x, phi).reshape(3, -1) for x, phi in zip(X, Phi, strict=True)
        ]
        design = np.vstack(rows)
        cov = design @ np.kron(np.eye(2), H / kappa) @ design.T
        flat_X = X.reshape(-1, 2)
        cov += wide * flat_X @ flat_X.T + s2 * np.eye(18)
        same = np.repeat(np.arange(6), 3)[:, None] == np.repeat(np.arange(6), 3)
        cov += same * (flat_X @ H @ flat_X.T)
        theirs.append(multivariate_normal.logpdf(y.ravel(), cov=cov))
    assert np.diff(ours) == pytest.approx(np.diff(theirs), abs=1e-3)


def test_a_metric_leaves_the_collapsed_fit_of_a_simpler_one():
    rng = np.random.default_rng(0)
    T, n = 80, 20
    offsets = np.arange(T + 1) * n
    # One coefficient differs; many large columns, in which tasks do not, make an identity zero.
    X = np.hstack([3 * rng.normal(size=(T * n, 15)), np.ones((T * n, 1))])
    y = np.repeat(1.3 * rng.normal(size=T), n) + 1.5 * rng.normal(size=T * n)
    stats, Phi = SquaredState.of(X, y, offsets), np.empty((T, 0))
    simple = learn_prior(stats, Phi, "identity", np.inf).prior
    collapsed = simple._replace(L=1e-7 * np.eye(16), s2=float(y.var()))
    found = learn_prior(stats, Phi, "diagonal", np.inf, collapsed)
    best = learn_prior(stats, Phi, "diagonal", np.inf)
    np.testing.assert_allclose(found.objective, best.objective, atol=0.05)
    assert found.prior.H[-1, -1] > 1


def test_the_box_of_a_line_search_has_true_values_of_the_objective():
    """Far out J is lost in rounding errors: a step to W = 1e152 once seemed to raise it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5, 3)), rng.normal(size=(40, 5))
    moments = np.einsum("tni,tn->ti", X, y)
    stats = SquaredState(X.transpose(0, 2, 1) @ X, moments, (y**2).sum(axis=1), np.full(40, 5))
    model = RidgeModel(OneBlock.of(stats, np.empty((40, 0)), 1), 0.0)
    frame = model.frame(model.start(), "full")
    box = frame.bounds(*model.noise_range())
    start = model.slope(frame, np.zeros(frame.size))[0]
    for direction in rng.normal(size=(20, frame.start.W.size)):
        end = np.zeros(frame.size)
        end[: direction.size] = 1e300 * direction
        value = model.slope(frame, np.clip(end, *box))[0]
        assert np.isfinite(value)
        assert value < start
