"""The plain alternatives, against scikit-learn's models of the same problem."""

import numpy as np
import pytest
from helpers import draw_problem
from sklearn.linear_model import LogisticRegression, Ridge

from condmeta import (
    FixedBiasClassifier,
    FixedBiasRegressor,
    IndependentClassifier,
    IndependentRegressor,
    PooledClassifier,
    PooledRegressor,
    inner,
)
from condmeta.meta.lam_choice import GRID

X, Y, TASK, SIDE = draw_problem()
LABELS = np.where(Y > 0, "yes", "no")
PLAIN = {"scale": "none", "fit_intercept": False}
LAM = 0.2


def test_pooled_is_ridge_on_all_rows(engine):
    learner = PooledRegressor(lam=LAM, **PLAIN).fit(X, Y, task=TASK)
    ridge = Ridge(alpha=LAM * len(Y), fit_intercept=False).fit(X, Y)
    np.testing.assert_allclose(learner.b_, ridge.coef_, rtol=1e-9)
    np.testing.assert_allclose(learner.predict(X, task=TASK), ridge.predict(X), rtol=1e-9)
    np.testing.assert_allclose(learner.predict(X, task=["new"] * len(Y)), ridge.predict(X))


def test_independent_is_ridge_on_the_rows_of_each_task(engine):
    learner = IndependentRegressor(lam=LAM, **PLAIN).fit(X, Y, task=TASK)
    predicted = learner.predict(X, task=TASK)
    for task in SIDE.ids:
        at = task == TASK
        ridge = Ridge(alpha=LAM * at.sum(), fit_intercept=False).fit(X[at], Y[at])
        np.testing.assert_allclose(predicted[at], ridge.predict(X[at]), rtol=1e-9)


@pytest.mark.parametrize("cls", [PooledClassifier, IndependentClassifier])
def test_classifiers_are_logistic_regression(engine, cls):
    learner = cls(lam=LAM, **PLAIN).fit(X, LABELS, task=TASK)
    proba = learner.predict_proba(X, task=TASK)
    groups = [slice(None)] if cls is PooledClassifier else [task == TASK for task in SIDE.ids]
    for at in groups:
        if len(set(LABELS[at])) == 2:
            model = LogisticRegression(C=1 / (LAM * len(Y[at])), fit_intercept=False, tol=1e-10)
            model.fit(X[at], LABELS[at])
            np.testing.assert_allclose(proba[at], model.predict_proba(X[at]), atol=1e-5)


@pytest.mark.parametrize("how", ["online", "batch"])
def test_fixed_bias_is_the_inner_algorithm(engine, how):
    theta = np.array([1.0, -2.0, 0.5])
    learner = FixedBiasRegressor(theta, inner=how, lam=LAM).fit(X, Y, task=TASK)
    predicted = learner.predict(X, task=TASK)
    for task in SIDE.ids:
        at = task == TASK
        run = getattr(inner, how)(theta, X[at], Y[at], LAM, "absolute")
        np.testing.assert_allclose(predicted[at], X[at] @ run.coef, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(learner.predict(X, task=["new"] * len(Y)), X @ theta)


def test_scalar_bias_broadcasts():
    one, three = (FixedBiasRegressor(t).fit(X, Y, task=TASK) for t in (2.0, [2.0, 2.0, 2.0]))
    np.testing.assert_array_equal(one.predict(X, task=TASK), three.predict(X, task=TASK))


@pytest.mark.parametrize("scale", ["none", "standard"])
def test_bias_is_in_the_units_of_the_user(scale):
    theta = [1.0, -2.0, 0.5, 7.0]  # the intercept last
    learner = FixedBiasRegressor(theta, fit_intercept=True, scale=scale)
    learner.fit(3 * X + 1, Y, task=TASK)
    np.testing.assert_allclose(learner.theta_for(), theta)
    np.testing.assert_allclose(learner.predict(X, task=["new"] * len(Y)), X @ theta[:3] + 7.0)


def test_bias_without_an_intercept_passes_through_the_centre():
    learner = FixedBiasRegressor([1.0, -2.0, 0.5], fit_intercept=True, scale="standard")
    learner.fit(X, Y, task=TASK)
    centre = learner.predict(X.mean(axis=0)[None], task=["new"])
    np.testing.assert_allclose(centre, [learner.y_offset_])
    assert learner.y_offset_ == np.median(Y)


def test_independent_without_points_predicts_the_offset():
    learner = IndependentRegressor(lam=LAM).fit(X, Y + 5, task=TASK)
    assert learner.y_offset_ == pytest.approx(np.mean(Y + 5))
    np.testing.assert_allclose(learner.predict(X, task=["new"] * len(Y)), learner.y_offset_)


@pytest.mark.parametrize("cls", [IndependentRegressor, PooledRegressor, FixedBiasRegressor])
def test_lam_is_chosen_from_the_data(cls):
    rng = np.random.default_rng(0)
    x, task = rng.normal(size=(200, 3)), np.repeat(np.arange(20), 10)
    w = rng.normal(size=3)
    clean = cls(lam="cv", loss="squared", inner="batch", **PLAIN).fit(x, x @ w, task=task)
    assert clean.lam_ == GRID[0]  # nothing to regularise
    noise = cls(lam="cv", loss="squared", inner="batch", **PLAIN)
    noise.fit(x, rng.normal(size=200), task=task)
    assert noise.lam_ > 0.1  # nothing to learn
    assert noise.lam_ in GRID
    assert noise.lam == "cv"


def test_of_equal_lams_the_largest_is_taken():
    learner = IndependentRegressor(**PLAIN).fit(X, np.zeros(len(Y)), task=TASK)
    assert learner.lam_ == GRID[-1]


def test_pooled_holds_out_tasks_and_independent_rows():
    """A column for each task predicts further rows of the task, and nothing of another task."""
    task = np.repeat(np.arange(10), 10)
    columns, y = np.eye(10)[task], np.arange(1.0, 11.0)[task]
    assert IndependentRegressor(**PLAIN).fit(columns, y, task=task).lam_ == GRID[0]
    assert PooledRegressor(**PLAIN).fit(columns, y, task=task).lam_ == GRID[-1]


def test_lam_with_nothing_to_hold_out():
    learner = IndependentRegressor().fit(X, Y, task=np.arange(len(Y)))
    assert learner.lam_ == 1.0


def test_lam_passes_over_values_that_diverge():
    learner = FixedBiasRegressor(lam="cv", loss="squared").fit(20 * X, Y, task=TASK)
    assert learner.lam_ in GRID
    assert np.isfinite(learner.predict(20 * X, task=TASK)).all()


def test_given_lam_is_kept():
    assert IndependentRegressor(lam=LAM).fit(X, Y, task=TASK).lam_ == LAM


def test_fixed_bias_classifier_starts_at_theta():
    learner = FixedBiasClassifier([5.0, 0.0, 0.0], lam=1e6).fit(X, LABELS, task=TASK)
    np.testing.assert_array_equal(learner.predict(X, task=TASK) == "yes", X[:, 0] > 0)


@pytest.mark.parametrize("cls", [PooledRegressor, IndependentRegressor, FixedBiasRegressor])
def test_side_information_is_kept_out(cls):
    one = cls(lam=LAM).fit(X, Y, task=TASK).predict(X, task=TASK)
    two = cls(lam=LAM).fit(X, Y, task=TASK, side_info=SIDE).predict(X, task=TASK)
    np.testing.assert_array_equal(one, two)
