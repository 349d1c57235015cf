"""Measured excess risk against Theorems 1 and 2, on clusters and circle, batch and online.

Risks are exact given the weights, tau sees no training point, and the bound must lie above the mean
plus four standard errors. It must also lie below 20 times the mean: a vacuous bound fails.
"""

import numpy as np
import pytest

import condmeta as cm
from condmeta.environments import Circle, Clusters
from condmeta.feature_maps import CircleMap, MeanInput
from condmeta.inner.algorithms import get_inner, solve_tasks
from condmeta.theory import bound_fixed, excess_risk, guarantees, radii, variance

N = 8  # training points of a task; clusters have as many that condition
CENTERS = {
    "w_centers": [[2, 0, 0], [0, 3, 0], [-1, -1, 1]],
    "x_centers": [[1, 0, 0.0], [-0.5, 0.8, 0], [-0.3, -0.9, 0.5]],
}
CIRCLE = Circle(
    radius=3, center=1.0, d=4, n=N, sigma_w=0.7, inputs="gaussian", x_center=0.5, noise=0.5
)
CLUSTERS = Clusters(**CENTERS, n=N, sigma_w=0.7, noise=0.5)
BOTH_HALVES = Clusters(**CENTERS, n=2 * N, sigma_w=0.7, noise=0.5)


def assert_bounded(risks, bound):
    risks = np.asarray(risks)
    assert risks.mean() + 4 * risks.std() / np.sqrt(risks.size) <= bound
    assert bound <= 20 * risks.mean()


@pytest.mark.parametrize("inner", ["batch", "online"])
@pytest.mark.parametrize("tau", ["best", "mean", "zero"])
@pytest.mark.parametrize("env", [CIRCLE, CLUSTERS], ids=["circle", "clusters"])
def test_theorem_1(env, tau, inner):
    if env is CLUSTERS:
        conditioning, train = BOTH_HALVES.sample(4000, random_state=0).split_points(
            N, order="first"
        )
    else:
        conditioning = train = env.sample(4000, random_state=0)
    biases = {"best": env.tau(conditioning), "mean": env.w_rho, "zero": np.zeros(env.d)}
    theta = np.ascontiguousarray(np.broadcast_to(biases[tau], train.weights.shape))
    V, R = variance(env, tau).root, radii(train).R
    best = bound_fixed(V, N, R=R, inner=inner)
    for factor in (0.5, 1.0, 4.0):
        lam = factor * best.lam
        run = solve_tasks(
            get_inner(inner, lam, "absolute", 1e-9), theta, train.X, train.y, train.offsets
        )
        bound = bound_fixed(V, N, R=R, inner=inner, lam=lam)
        assert_bounded(excess_risk(env, train, run.coef), bound.value)


@pytest.mark.parametrize("inner", ["batch", "online"])
@pytest.mark.parametrize("conditional", [True, False])
@pytest.mark.parametrize("T", [20, 200])
@pytest.mark.parametrize("env", [CIRCLE, CLUSTERS], ids=["circle", "clusters"])
def test_theorem_2(env, T, conditional, inner):
    phi = CircleMap() if env is CIRCLE else MeanInput()
    bound = guarantees(env, phi, T, n=N, inner=inner)[2 if conditional else 1]
    split = conditional and env is CLUSTERS
    source = BOTH_HALVES if split else env
    learner = cm.ConditionalSGDRegressor(
        phi if conditional else None, inner=inner, lam=bound.lam, meta_step=bound.meta_step,
        conditioning="split" if split else "shared", keep_tasks=False,
    )  # fmt: skip
    risks = []
    for seed in range(10):
        test = source.sample(300, random_state=1000 + seed)
        model = learner.fit(source.sample(T, random_state=seed))
        risks.append(excess_risk(env, test, model.adapt(test).coef_).mean())
    assert_bounded(risks, bound.value)


def test_more_tasks_bring_the_learned_map_to_the_best_one():
    """At Theorem 2's settings the excess risk falls towards that of tau_rho, as the bound does."""
    risks = []
    for T in (10, 100, 1000):
        bound = guarantees(CIRCLE, CircleMap(), T, n=N).conditional
        learner = cm.ConditionalSGDRegressor(
            CircleMap(), inner="batch", lam=bound.lam, meta_step=bound.meta_step, keep_tasks=False
        )
        test = CIRCLE.sample(500, random_state=99)
        model = learner.fit(CIRCLE.sample(T, random_state=1))
        risks.append(excess_risk(CIRCLE, test, model.adapt(test).coef_).mean())
    run = solve_tasks(
        get_inner("batch", bound.lam, "absolute", 1e-9), CIRCLE.tau(test), test.X, test.y,
        test.offsets,
    )  # fmt: skip
    floor = excess_risk(CIRCLE, test, run.coef).mean()
    assert risks[0] > risks[1] > risks[2] > floor
    assert risks[2] < 1.25 * floor
