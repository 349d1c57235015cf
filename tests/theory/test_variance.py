"""Var(tau)^2 and gaps: on environments, on samples, and against each other."""

import numpy as np
import pytest

from condmeta.environments import Circle, Clusters, SampledTaskSet
from condmeta.errors import DataError
from condmeta.tasks import TaskSet
from condmeta.theory import best_linear, gap, variance

CIRCLE = Circle(radius=3.0, center=[1, -1, 2, 0, 0.5, 0], d=6, sigma_w=0.8, n=1)
CLUSTERS = Clusters(
    [[2, 0], [0, 3], [-1, -1]], [[1, 0], [-0.5, 0.8], [-0.3, -0.9]], n=2, sigma_w=0.7
)


class Foreign:
    """Draw from another environment and know no closed form."""

    def __init__(self, inside, with_tau=False):
        self.inside, self.n = inside, inside.n
        if with_tau:
            self.tau = inside.tau

    def sample(self, n_tasks, random_state=None):
        return self.inside.sample(n_tasks, random_state)


def shrunk(env):
    """Return a function half-way between tau_rho and 1."""
    return lambda tasks: (env.tau(tasks) + 1) / 2


@pytest.mark.parametrize("env", [CIRCLE, CLUSTERS])
def test_named_functions_are_the_closed_forms(env):
    v = env.variances()
    assert variance(env, "zero") == (v.zero, 0.0)
    assert variance(env, "mean") == (v.mean, 0.0)
    assert variance(env, "best").value == variance(env, env.tau).value == v.tau
    assert variance(env, 0).value == pytest.approx(v.zero)
    assert variance(env, env.w_rho).value == pytest.approx(v.mean)
    assert variance(env, env.w_rho + 1).value == pytest.approx(v.mean + env.d)
    assert variance(env, "best").root == pytest.approx(np.sqrt(v.tau))


@pytest.mark.parametrize("env", [CIRCLE, CLUSTERS])
@pytest.mark.parametrize("tau", ["zero", "mean", 2.0, "function"])
def test_environment_and_sample_agree(env, tau):
    """Closed form, or tasks drawn around tau_rho, against the drawn weights themselves."""
    tau = shrunk(env) if tau == "function" else tau
    there = variance(env, tau)
    here = variance(env.sample(20_000, random_state=5), tau)
    assert abs(there.value - here.value) <= 4 * np.hypot(there.error, here.error)
    assert here.error > there.error


@pytest.mark.parametrize("env", [CIRCLE, CLUSTERS])
def test_an_environment_without_closed_forms_is_drawn_from(env):
    v = env.variances()
    for tau, expected in (("mean", v.mean), (env.tau, v.tau), ("zero", v.zero)):
        found = variance(Foreign(env), tau)
        assert 0 < abs(found.value - expected) <= 4 * found.error
    found = variance(Foreign(env, with_tau=True), "best")
    assert abs(found.value - v.tau) <= 4 * found.error
    with pytest.raises(DataError, match="Foreign has no method 'tau'"):
        variance(Foreign(env), "best")


def test_any_function_loses_its_distance_to_the_best():
    """Lemma: Var(tau)^2 - Var(tau_rho)^2 = E ||tau - tau_rho||^2; for the circle in closed form."""
    loss = variance(CIRCLE, shrunk(CIRCLE))
    # tau = (h + 1) / 2, so the distance is ||h - 1||^2 / 4 with h = c + r (cos, sin, 0, ...)
    expected = CIRCLE.variances().tau + (9 + ((CIRCLE.center - 1) ** 2).sum()) / 4
    assert abs(loss.value - expected) <= 4 * loss.error
    assert loss.error < 0.05


def test_gaps():
    assert gap(CIRCLE).value == pytest.approx(9.0)
    assert gap(CIRCLE, against="zero").value == pytest.approx(15.25)
    assert gap(CIRCLE, "mean", "zero").value == pytest.approx(6.25)
    assert gap(CLUSTERS).value == pytest.approx(2.608002567, abs=1e-9)
    tasks = CLUSTERS.sample(20_000, random_state=0)
    drawn = gap(tasks, CLUSTERS.tau)
    assert abs(drawn.value - 2.608002567) <= 4 * drawn.error
    # both functions see the same tasks: the gap of a function against itself is 0 exactly
    assert gap(tasks, CLUSTERS.tau, CLUSTERS.tau) == (0.0, 0.0)
    assert gap(CLUSTERS, shrunk(CLUSTERS), shrunk(CLUSTERS)).value == 0.0
    assert gap(CLUSTERS, shrunk(CLUSTERS)).value < gap(CLUSTERS).value


def test_samples_with_probabilities():
    W, p = [[0.0, 0], [2, 0], [0, 4]], [0.5, 0.25, 0.25]
    assert variance(W, "zero", p=p).value == 0.25 * 4 + 0.25 * 16
    assert variance(W, [0.5, 1.0], p=p).value == variance(W, "mean", p=p).value
    assert variance(W, W, p=p) == (0.0, 0.0)
    best = best_linear(W, [[0.0], [1], [0]], p=p)
    there = variance(W, best.map, side=[[0.0], [1], [0]], p=p)
    assert there.value == pytest.approx(best.variance)
    # the standard error of a plain mean
    drawn = np.random.default_rng(0).normal(size=(50, 1))
    squares = drawn[:, 0] ** 2
    assert variance(drawn, 0).error == pytest.approx(squares.std() / np.sqrt(50))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: variance(np.zeros((0, 2)), 0), r"shape \(T, d\), T >= 1. Got \(0, 2\)"),
        (lambda: variance([1.0, 2.0], 0), r"shape \(T, d\)"),
        (lambda: variance([[1.0], [np.nan]], 0), "task number 1 are not finite"),
        (lambda: variance([[1.0]], 0, p=[2.0]), "sum 1. Got the minimum 2 and the sum 2"),
        (lambda: variance([[1.0], [2]], 0, p=[1.5, -0.5]), "none negative"),
        (lambda: variance([[1.0]], 0, p=[0.5, 0.5]), "p must hold 1 finite numbers"),
        (lambda: variance([[1.0]], "best"), "'best' is only for environments"),
        (lambda: variance([[1.0]], lambda s: s), "give its argument as side="),
        (lambda: variance([[1.0, 2.0]], [1.0, 2, 3]), r"Got \(3,\) instead"),
        (lambda: variance([[1.0, 2.0]], np.inf), "tau must be finite"),
        (lambda: variance(CIRCLE, "worst"), "Got 'worst'"),
        (lambda: variance(CIRCLE, 0, p=[1.0]), "p and side are for a sample"),
        (lambda: variance(CIRCLE, 0, side=[1.0]), "p and side are for a sample"),
    ],
)
def test_wrong_arguments_raise(call, sentence):
    with pytest.raises(DataError, match=sentence):
        call()


def test_tasks_must_know_their_weights():
    tasks = CIRCLE.sample(3, random_state=0)
    with pytest.raises(DataError, match="true weights of these tasks are unknown"):
        variance(TaskSet(tasks.X, tasks.y, tasks.offsets, tasks.ids), 0)
    lost = SampledTaskSet(
        tasks.X, tasks.y, tasks.offsets, tasks.ids, weights=np.full((3, 6), np.nan)
    )
    with pytest.raises(DataError, match="task number 0 are not finite"):
        variance(lost, 0)

    class Plain:
        def sample(self, n_tasks, random_state=None):
            return TaskSet(tasks.X, tasks.y, tasks.offsets, tasks.ids)

    with pytest.raises(DataError, match=r"Plain\.sample must return a SampledTaskSet"):
        variance(Plain(), 0, n_tasks=3)
