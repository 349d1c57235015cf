"""Limits and symmetries that hold whatever the data."""

import numpy as np
import pytest
from helpers import draw_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from condmeta import ConditionalSGDRegressor, FixedBiasRegressor, IndependentRegressor, TaskTable
from condmeta.feature_maps import Identity, MeanInput

seeds = st.integers(0, 10_000)
inners = st.sampled_from(["online", "batch"])
losses = st.sampled_from(["absolute", "squared", "huber", "pinball", "epsilon_insensitive"])
brief = settings(max_examples=25, deadline=None, derandomize=True, database=None)


class Zero:
    """A feature map that knows nothing."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.zeros((len(X), 3))


@brief
@given(seed=seeds, inner=inners, loss=losses, intercept=st.booleans())
def test_lam_to_infinity_gives_theta(seed, inner, loss, intercept):
    X, y, task, _ = draw_problem(seed=seed)
    theta = np.random.default_rng(seed).normal(size=3 + intercept)
    learner = FixedBiasRegressor(
        theta, inner=inner, loss=loss, lam=1e11, fit_intercept=intercept, scale="standard"
    ).fit(X, y, task=task)
    expected = X @ theta[:3] + (theta[3] if intercept else 0.0)
    np.testing.assert_allclose(learner.predict(X, task=task), expected, atol=1e-6)


@brief
@given(
    seed=seeds, inner=inners, loss=losses, averaging=st.sampled_from(["uniform", "linear", "last"])
)
def test_zero_feature_map_is_the_unconditional_learner(seed, inner, loss, averaging):
    X, y, task, side = draw_problem(seed=seed)
    params = {"inner": inner, "loss": loss, "averaging": averaging, "lam": 4.0}
    zero = ConditionalSGDRegressor(Zero(), **params).fit(X, y, task=task, side_info=side)
    none = ConditionalSGDRegressor(None, **params).fit(X, y, task=task)
    np.testing.assert_array_equal(zero.b_, none.b_)
    np.testing.assert_array_equal(zero.predict(X, task=task), none.predict(X, task=task))


@brief
@given(seed=seeds, inner=inners)
def test_rows_of_other_tasks_do_not_matter_to_a_task(seed, inner):
    """Where rows stand among those of other tasks is irrelevant, and so are the others' values."""
    X, y, task, _ = draw_problem(seed=seed)
    rng = np.random.default_rng(seed)
    learner = ConditionalSGDRegressor(inner=inner).fit(X, y, task=task)
    models = learner.adapt(X, y, task=task)
    # Draw the others' rows anew and mix: rows of "t0" keep their order, elsewhere they stand.
    mine = task == "t0"
    place = np.sort(rng.permutation(len(y))[: mine.sum()])
    X2, y2, task2 = rng.normal(size=X.shape), rng.normal(size=len(y)), np.full(len(y), "t1")
    X2[place], y2[place], task2[place] = X[mine], y[mine], "t0"
    moved = learner.adapt(X2, y2, task=task2)
    np.testing.assert_array_equal(moved["t0"].coef_, models["t0"].coef_)


@brief
@given(seed=seeds, factor=st.floats(1e-3, 1e3), intercept=st.booleans())
def test_scale_equivariance_of_the_squared_loss(seed, factor, intercept):
    X, y, task, side = draw_problem(seed=seed)
    call = {"task": task, "side_info": side}
    for learner in (
        IndependentRegressor(lam=0.3, fit_intercept=intercept),
        ConditionalSGDRegressor(
            Identity(), inner="batch", loss="squared", lam=0.3, fit_intercept=intercept
        ),
    ):
        one = learner.fit(X, y, **call).predict(X, task=task)
        many = learner.fit(X, factor * y, **call).predict(X, task=task)
        np.testing.assert_allclose(many, factor * one, rtol=1e-7, atol=1e-9 * factor)


@brief
@given(seed=seeds, shift=st.floats(-1e6, 1e6), inner=inners, loss=losses)
def test_translation_with_an_intercept(seed, shift, inner, loss):
    X, y, task, _ = draw_problem(seed=seed)
    learner = ConditionalSGDRegressor(
        inner=inner, loss=loss, lam=4.0, fit_intercept=True, scale="standard", tol=1e-12
    )
    one = learner.fit(X, y, task=task).predict(X, task=task)
    moved = learner.fit(X, y + shift, task=task).predict(X, task=task)
    np.testing.assert_allclose(moved - shift, one, rtol=0, atol=1e-6)


@brief
@given(seed=seeds, inner=inners)
def test_permuting_the_tasks_of_adapt_permutes_the_models(seed, inner):
    X, y, task, side = draw_problem(seed=seed)
    learner = ConditionalSGDRegressor(Identity(), inner=inner)
    learner.fit(X, y, task=task, side_info=side)
    models = learner.adapt(X, y, task=task, side_info=side)
    names = np.unique(task)
    order = np.random.default_rng(seed).permutation(names)
    rows = np.concatenate([np.flatnonzero(task == name) for name in order])
    turned = TaskTable(side.take(order.tolist()).numeric(), order)
    permuted = learner.adapt(X[rows], y[rows], task=task[rows], side_info=turned)
    assert list(permuted) == order.tolist()
    at = [models.ids.tolist().index(name) for name in order]
    np.testing.assert_allclose(permuted.coef_, models.coef_[at], rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(permuted.n_, models.n_[at])


@settings(brief, max_examples=8)
@given(seed=seeds, inner=inners, loss=losses)
def test_threads_give_the_same_bits(seed, inner, loss):
    X, y, task, _ = draw_problem(n_tasks=40, seed=seed)
    results = []
    for n_jobs in (1, 2):
        learner = ConditionalSGDRegressor(
            MeanInput(), inner=inner, loss=loss, lam=4.0, n_jobs=n_jobs
        ).fit(X, y, task=task)
        results.append((learner.M_, learner.predict(X, task=task),
                        learner.adapt(X, y, task=task).coef_))  # fmt: skip
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("inner", ["online", "batch"])
def test_same_seed_same_bits(engine, inner):
    X, y, task, _ = draw_problem(n_tasks=20)
    runs = [ConditionalSGDRegressor(inner=inner).fit(X, y, task=task) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].b_, runs[1].b_)
