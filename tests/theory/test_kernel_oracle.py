"""The best function in the space of a kernel, and the bounds that it gives."""

import numpy as np
import pytest

from condmeta.environments import Circle, Clusters
from condmeta.errors import DataError
from condmeta.feature_maps import CircleMap, Identity, MeanInput
from condmeta.kernels import FunctionKernel, GaussianKernel, LinearKernel, MeanEmbedding
from condmeta.theory import best_linear, guarantees, radii, variance

ENV = Circle(radius=3.0, center=1.0, d=4, n=6, sigma_w=0.7)
TASKS = ENV.sample(60, random_state=0)


def circle(a, b):
    """The kernel of the circle's own features."""
    return float(np.cos(2 * np.pi * (a[0] - b[0])))


def test_a_kernel_of_few_features_is_its_feature_map():
    for kernel, features in ((FunctionKernel(circle), CircleMap()), (LinearKernel(), Identity())):
        ours, written = best_linear(TASKS, kernel), best_linear(TASKS, features)
        for name in ("mean", "variance", "gap"):
            assert getattr(ours, name) == pytest.approx(getattr(written, name), rel=1e-8)
        assert ours.map.norm == pytest.approx(written.min_norm.norm, rel=1e-7)
        np.testing.assert_allclose(ours.map.b, written.min_norm.b, rtol=1e-6)
        np.testing.assert_allclose(ours.w_rho, written.moments.w_rho)
        one, two = radii(TASKS, kernel), radii(TASKS, features)
        np.testing.assert_allclose(one, two)


def test_probabilities_of_tasks_count_like_repetitions():
    count = np.random.default_rng(0).integers(1, 4, size=60)
    weighted = best_linear(TASKS, FunctionKernel(circle), p=count / count.sum())
    repeated = best_linear(TASKS, CircleMap(), p=count / count.sum())
    assert weighted.variance == pytest.approx(repeated.variance, rel=1e-8)
    assert weighted.map.norm == pytest.approx(repeated.min_norm.norm, rel=1e-7)


def test_a_kernel_on_points_is_the_mean_embedding():
    env = Clusters([[3.0, 0], [0, 1]], [[1.0, 1], [-1, 0]], n=5)
    tasks = env.sample(40, random_state=0)
    ours = best_linear(tasks, MeanEmbedding(LinearKernel()))
    assert ours.variance == pytest.approx(best_linear(tasks, MeanInput()).variance, rel=1e-8)


def test_in_an_environment_a_universal_kernel_finds_the_best_function_and_not_zero():
    """On its own tasks the function reproduces every weight: the variance must come from others."""
    kernel = GaussianKernel(0.2)
    assert best_linear(TASKS, GaussianKernel(1e-4)).variance < 1e-9
    best = best_linear(ENV, kernel)
    truth = ENV.variances()
    assert truth.tau <= best.variance <= 1.05 * truth.tau
    assert best.mean == truth.mean
    fresh = variance(ENV.sample(5000, random_state=99), best.map)
    assert abs(fresh.value - best.variance) <= 4 * fresh.error


@pytest.mark.parametrize("T", [10, 1000])
def test_the_bound_of_a_kernel_trades_norm_for_variance(T):
    """With the circle's kernel it equals, up to drawn tasks, the bound of the circle's features."""
    written = guarantees(ENV, CircleMap(), T)
    ours = guarantees(ENV, FunctionKernel(circle), T, n_tasks=150)
    assert ours.independent.value == pytest.approx(written.independent.value, rel=0.05)
    assert ours.conditional.value <= 1.05 * written.conditional.value
    smooth = guarantees(ENV, GaussianKernel(0.3), T, n_tasks=400)
    assert smooth.conditional.value < smooth.unconditional.value or T == 10


def test_the_bound_holds_for_the_kernel_learner():
    from condmeta import KernelConditionalSGDRegressor
    from condmeta.theory import excess_risk

    env = Circle(radius=3.0, d=3, n=6, inputs="gaussian", x_center=0.0, noise=0.5)
    kernel = GaussianKernel(0.3)
    bound = guarantees(env, kernel, 100, n_tasks=500).conditional
    learner = KernelConditionalSGDRegressor(
        kernel, feature_map=Identity(), inner="batch", lam=bound.lam, meta_step=bound.meta_step
    )
    test = env.sample(400, random_state=1)
    model = learner.fit(env.sample(100, random_state=0))
    risks = excess_risk(env, test, model.adapt(test).coef_)
    assert 0 < risks.mean() + 3 * risks.std() / 20 <= bound.value


def test_what_is_missing_is_said():
    with pytest.raises(DataError, match="give a SampledTaskSet"):
        best_linear(TASKS.weights, LinearKernel())
    points = Clusters([[3.0, 0]], [[1.0, 1]], n=5).sample(3, random_state=0)
    with pytest.raises(DataError, match="GaussianKernel reads a side table, which these tasks do"):
        best_linear(points, GaussianKernel())
    with pytest.raises(DataError, match="Omit p"):
        best_linear(ENV, LinearKernel(), p=[1.0])
