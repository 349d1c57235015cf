"""The theory's settings from data: estimates against the known truth of environments."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.linear_model import Ridge

import condmeta as cm
from condmeta.environments import Circle, Clusters, paper_environment
from condmeta.errors import DataError
from condmeta.feature_maps import CircleMap, MeanInput
from condmeta.paper.theory.suggest import PENALTIES, _cross_fit, residual_variance
from condmeta.tasks import TaskSet
from condmeta.theory import best_linear, bound_learned, excess_risk, suggest


@pytest.mark.parametrize("noise", [0.3, 2.0])
@pytest.mark.parametrize(
    ("env", "phi"),
    [
        (Circle(radius=4.0, d=6, n=8, center=1.0, inputs="gaussian", x_center=0.0), CircleMap()),
        (Circle(radius=4.0, d=6, n=8, center=1.0), CircleMap()),
        (Clusters(np.eye(3) * 4, np.eye(3) * 3, n=6), MeanInput()),
    ],
    ids=["circle", "unit circle", "clusters"],
)
def test_estimates_are_near_the_truth(env, phi, noise):
    env.noise = noise
    best = best_linear(env, phi)
    found = suggest(env.sample(1000, random_state=0), phi)
    # V within 15 % (its square within 30 %), the norm within 15 %
    assert np.sqrt(found.variance.value / best.variance) == pytest.approx(1, abs=0.15)
    assert found.map.norm / best.min_norm.norm == pytest.approx(1, abs=0.15)
    assert found.variance.error < 0.1 * best.variance
    assert best.excess(*found.map) < 0.1 * best.variance


def test_no_gap_is_seen_where_there_is_none_and_the_noise_is_separated():
    """All of the spread of the labels around the map is noise: V^2 is 0 within its error."""
    env = Circle(radius=4.0, d=4, n=8, sigma_w=0.0, noise=2.0, inputs="gaussian")
    found = suggest(env.sample(500, random_state=1), CircleMap())
    assert found.variance.value < 0.15
    assert (
        found.lam
        <= bound_learned(
            found.variance.error**0.5, found.map.norm, 8, 500, R=found.R, K=found.K, inner="online"
        ).lam
    )


@pytest.mark.parametrize("noise", [0.5, None])
def test_weights_that_are_not_spherical_are_off_by_a_factor_of_two_at_most(noise):
    """Two clusters without features: all of the spread is along one direction. V in [V, 2.1 V]."""
    env = paper_environment("two-clusters-mean-4", n=10, noise=noise)
    found = suggest(env.sample(300, random_state=0), None)
    assert 1 <= np.sqrt(found.variance.value / env.variances().mean) <= 2.1
    assert found.map.norm == pytest.approx(np.linalg.norm(env.w_rho), rel=0.1)
    assert found.map.M.shape == (20, 0)


def test_the_suggestion_is_theorem_2_at_the_estimates():
    tasks = Circle(d=4, n=9).sample(60, random_state=0)
    for inner in ("batch", "online"):
        found = suggest(tasks, CircleMap(), T=500, inner=inner, how="max", loss="huber")
        again = bound_learned(
            found.variance.root, found.map.norm, 9, 500, L=1.35, R=found.R, K=found.K, inner=inner
        )
        np.testing.assert_allclose(found.bound, again)
        assert (found.lam, found.meta_step) == (found.bound.lam, found.bound.meta_step)
    assert pytest.approx(1) == found.K
    ragged = TaskSet.from_tasks([(t.X[: 1 + i % 9], t.y[: 1 + i % 9]) for i, t in enumerate(tasks)])
    sizes = ragged.sizes
    assert suggest(ragged, None).n == pytest.approx(1 / np.mean(1 / sizes))


def test_suggested_settings_learn():
    """Better than independent learning at its own theory's lam, and near the true-V settings."""
    env = Circle(radius=4.0, d=6, n=8, inputs="gaussian", noise=0.5)
    train, test = env.sample(300, random_state=0), env.sample(300, random_state=1)
    found = suggest(train, CircleMap(), inner="batch")
    best = best_linear(env, CircleMap())
    truth = bound_learned(best.variance**0.5, best.map.norm, 8, 300, R=found.R, K=1.0)

    def risk(settings, phi=None):
        learner = cm.ConditionalSGDRegressor(
            phi, inner="batch", lam=settings.lam, meta_step=settings.meta_step
        )
        return excess_risk(env, test, learner.fit(train).adapt(test).coef_).mean()

    assert risk(found, CircleMap()) < 1.1 * risk(truth, CircleMap())
    assert risk(found, CircleMap()) < 0.7 * risk(suggest(train, None, inner="batch"))


def test_the_unit_of_y():
    """y in other units: V and the norm scale with it, lam with its inverse (L = 1)."""
    tasks = Circle(d=4, n=9, noise=0.5).sample(80, random_state=0)
    one, other = suggest(tasks, CircleMap()), suggest(tasks.with_target(tasks.y * 8), CircleMap())
    assert other.lam == pytest.approx(one.lam / 8, rel=1e-4)
    assert other.meta_step == pytest.approx(one.meta_step * 8)
    assert other.variance.value == pytest.approx(one.variance.value * 64, rel=1e-4)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda t: suggest(TaskSet(t.X, None, t.offsets, t.ids), None),
            "needs the targets of",
        ),
        (lambda t: suggest(t, None, folds=1), "folds must be from 2 to 6, the number of tasks"),
        (lambda t: suggest(t[:0], None), "at least 2 tasks with points. Got 0"),
        (lambda t: suggest(t[:1], None), "at least 2 tasks with points. Got 1"),
        (lambda t: suggest(t, None, loss="squared"), "the loss 'squared': its slopes are unbound"),
        (lambda t: suggest(t, np.ones((2, 1))), "one row per task"),
        (
            lambda t: suggest(t.with_target(0 * t.y), None),
            r"\(V = 0\), so the lam of the theory is",
        ),
    ],
)
def test_wrong_arguments_raise(change, sentence):
    tasks = Circle(d=3, n=4).sample(6, random_state=0)
    with pytest.raises(DataError, match=sentence):
        change(tasks)


def gaussian_tasks(v, noise, T=40, n=6, d=2, seed=0):
    """Draw residuals X u + noise, u ~ N(0, v I), of tasks with random inputs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T * n, d))
    u = np.repeat(rng.normal(scale=np.sqrt(v), size=(T, d)), n, axis=0)
    y = (X * u).sum(axis=1) + rng.normal(scale=np.sqrt(noise), size=T * n)
    return TaskSet.from_arrays(X, y, task=np.repeat(np.arange(T), n)), y


def minus_log_likelihood(parameters, tasks, residuals):
    """Of dense normal distributions, task by task: cov = v X X^T + noise I."""
    v, noise = parameters
    total = 0.0
    for lo, hi in pairwise(tasks.offsets):
        X = tasks.X[lo:hi]
        law = multivariate_normal(cov=v * X @ X.T + noise * np.eye(hi - lo))
        total -= law.logpdf(residuals[lo:hi])
    return total


def test_variance_and_its_error_are_those_of_maximum_likelihood():
    """The optimum by another optimiser; the error from the information matrix."""
    tasks, residuals = gaussian_tasks(v=0.7, noise=1.5)
    found = residual_variance(tasks, residuals)
    best = minimize(
        minus_log_likelihood, [1.0, 1.0], (tasks, residuals), "Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-10},
    )  # fmt: skip
    assert found.value == pytest.approx(2 * best.x[0], rel=1e-5)
    # The expected information in closed form: tr(C^-1 A C^-1 B) / 2, A and B the derivatives.
    v, noise = best.x
    information = np.zeros((2, 2))
    for lo, hi in pairwise(tasks.offsets):
        G = tasks.X[lo:hi] @ tasks.X[lo:hi].T
        inverse = np.linalg.inv(v * G + noise * np.eye(hi - lo))
        parts = inverse @ G, inverse
        information += [[np.trace(a @ b) / 2 for b in parts] for a in parts]
    error = 2 * np.sqrt(np.linalg.inv(information)[0, 0])
    assert found.error == pytest.approx(error, rel=1e-4)


def test_residuals_are_those_of_a_map_that_did_not_see_the_fold():
    """Labels without any relation: a map that saw them would leave smaller residuals."""
    rng = np.random.default_rng(3)
    X, y, features = rng.normal(size=(24, 2)), rng.normal(size=24), rng.normal(size=(12, 3))
    tasks = TaskSet.from_arrays(X, y, task=np.repeat(np.arange(12), 2))
    residuals, _ = _cross_fit(tasks, features, folds=3)
    rows = np.repeat(np.column_stack([features, np.ones(12)]), 2, axis=0)
    design = (X[:, :, None] * rows[:, None, :]).reshape(24, -1)
    unit = np.trace(design.T @ design) / design.shape[1]
    candidates = []
    for penalty in PENALTIES * unit:
        left = np.empty(24)
        for fold in np.array_split(np.arange(24), 3):
            rest = np.setdiff1d(np.arange(24), fold)
            ridge = Ridge(alpha=penalty, fit_intercept=False).fit(design[rest], y[rest])
            left[fold] = y[fold] - ridge.predict(design[fold])
        candidates.append(left)
    best = min(candidates, key=lambda left: np.mean(left**2))
    np.testing.assert_allclose(residuals, best, rtol=1e-6, atol=1e-8)
