"""The theory's settings from data: estimates against the known truth of environments."""

import numpy as np
import pytest

import condmeta as cm
from condmeta.environments import Circle, Clusters, paper_environment
from condmeta.errors import DataError
from condmeta.feature_maps import CircleMap, MeanInput
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
        (lambda t: suggest(TaskSet(t.X, None, t.offsets, t.ids), None), "needs tasks with targets"),
        (lambda t: suggest(t, None, folds=1), "folds must be from 2 to 6, the number of tasks"),
        (lambda t: suggest(t[:0], None), "folds must be from 2"),
        (lambda t: suggest(t, None, loss="squared"), "slopes of this loss are unbounded"),
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
