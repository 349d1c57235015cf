"""What tasks with no points, or few, are told where levels go with the inputs of a task."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import condmeta as cm


def panel(n_tasks=150, n=6, seed=0, between=-3.0, noise=1.0):
    """Return tasks whose level goes with the mean of their inputs; within tasks the slope is 1."""
    rng = np.random.default_rng(seed)
    mean, task = rng.normal(size=n_tasks), np.repeat(np.arange(n_tasks), n)
    X = (mean[task] + 0.5 * rng.normal(size=len(task)))[:, None]
    level = between * mean + 0.3 * rng.normal(size=n_tasks)
    return X, X[:, 0] + level[task] + noise * rng.normal(size=len(task)), task


def new_task_errors(model, X, y, task, shots):
    """Return the mean absolute error on the last four rows of tasks that show their first."""
    place = np.arange(len(y)) % 6
    asked = place >= 2
    errors = []
    for m in shots:
        shown = place < m
        models = model.adapt(X[shown], y[shown], task=task[shown]) if m else model.adapt(task=task)
        errors.append(np.abs(models.predict(X[asked], task=task[asked]) - y[asked]).mean())
    return errors


@pytest.fixture(scope="module")
def split():
    X, y, task = panel()
    old = task < 100
    return (X[old], y[old], task[old]), (X[~old], y[~old], task[~old])


def test_a_cold_start_does_not_lose_to_a_pooled_regression(split):
    (X, y, task), new = split
    model = cm.ConditionalRidge().fit(X, y, task=task)
    asked = np.arange(len(new[1])) % 6 >= 2
    pooled = np.abs(LinearRegression().fit(X, y).predict(new[0][asked]) - new[1][asked]).mean()
    without = cm.ConditionalRidge(context=False, cold_start="prior").fit(X, y, task=task)
    ours, theirs = (new_task_errors(each, *new, (0, 1, 2)) for each in (model, without))
    assert model.context_
    assert ours[0] < 1.02 * pooled < 0.7 * theirs[0]
    assert ours[1] < 0.93 * theirs[1]
    assert ours[2] < theirs[2]


def test_errors_in_a_context_are_close_to_those_of_the_true_model():
    """The posterior mean of the level with all parameters known, at 0, 1 and 2 points."""
    X, y, task = panel(n_tasks=500)
    old = task < 300
    model = cm.ConditionalRidge().fit(X[old], y[old], task=task[old])
    ours = new_task_errors(model, X[~old], y[~old], task[~old], (0, 1, 2))
    x, y = X[~old].reshape(-1, 6), y[~old].reshape(-1, 6)
    best = []
    for n in (0, 1, 2):
        # m_t given n + 1 inputs: the prior has variance 1, an input 1/4 around m_t
        known = 1 + 4 * (n + 1)
        mean = 4 * (x[:, :n].sum(axis=1)[:, None] + x[:, 2:]) / known
        variance = 9 / known + 0.09
        gap = (y - x)[:, :n].sum(axis=1)[:, None] + 3 * n * mean
        level = -3 * mean + variance / (n * variance + 1) * gap
        best.append(np.abs(x[:, 2:] + level - y[:, 2:]).mean())
    np.testing.assert_array_less(ours, 1.03 * np.array(best))


def test_a_context_is_not_used_where_levels_do_not_go_with_inputs():
    X, y, task = panel(between=0.0)
    old = task < 100
    new = X[~old], y[~old], task[~old]
    model = cm.ConditionalRidge().fit(X[old], y[old], task=task[old])
    assert not model.context_
    plain = cm.ConditionalRidge(context=False, cold_start="prior")
    plain.fit(X[old], y[old], task=task[old])
    ours, theirs = (new_task_errors(each, *new, (0, 1, 2)) for each in (model, plain))
    np.testing.assert_allclose(ours, theirs, rtol=0.01)
    np.testing.assert_array_equal(plain.adapt().coef_, plain.theta_mean_[:-1])


@pytest.mark.parametrize("cold_start", ["prior", "mixture", "pooled"])
def test_every_way_to_a_task_without_points_gives_the_same(split, cold_start, tmp_path):
    (X, y, task), (Xn, *_) = split
    side = cm.TaskTable({"s": np.arange(120.0) % 7}, ids=range(120))
    model = cm.ConditionalRidge(cold_start=cold_start, context=True)
    model.fit(X, y, task=task, side_info=side)
    expected = model.predict(Xn[:5], task=np.full(5, 110))  # known without points
    row = {"s": 110.0 % 7}
    one = model.adapt(side_info=row)
    sides = cm.TaskTable({"s": [row["s"], 0]}, ids=["u", "v"])
    many = model.adapt(task=["u", "v"], side_info=sides)
    model.save(tmp_path / "model")
    for found in (
        model.predict(Xn[:5], side_info=row),
        one.predict(Xn[:5]),
        many.predict(Xn[:5], task=["u"] * 5),
        cm.load(tmp_path / "model").predict(Xn[:5], side_info=row),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_a_pooled_start_is_the_pooled_regression_and_points_replace_it(split):
    (X, y, task), (Xn, yn, _) = split
    model = cm.ConditionalRidge(context=False, cold_start="pooled").fit(X, y, task=task)
    regression = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.adapt().coef_, regression.coef_, rtol=0.02)
    prior = cm.ConditionalRidge(context=False, cold_start="prior").fit(X, y, task=task)
    np.testing.assert_allclose(
        model.adapt().update(Xn[:2], yn[:2]).coef_, prior.adapt(Xn[:2], yn[:2]).coef_, rtol=1e-8
    )


def test_with_kappa_infinite_a_cold_start_does_not_use_side_information(split):
    (X, y, task), (Xn, *_) = split
    side = cm.TaskTable({"s": (2 * y[::6]).round()}, ids=range(100))  # it says a lot
    model = cm.ConditionalRidge(kappa=np.inf, cold_start="pooled")
    model.fit(X, y, task=task, side_info=side)
    one, other = (model.predict(Xn[:5], side_info={"s": s}) for s in (-5.0, 5.0))
    np.testing.assert_array_equal(one, other)
    model = cm.ConditionalRidge(cold_start="pooled").fit(X, y, task=task, side_info=side)
    one, other = (model.predict(Xn[:5], side_info={"s": s}) for s in (-5.0, 5.0))
    assert (other > one + 1).all()


def test_updates_in_a_context_are_adaptation_on_all_points(split):
    (X, y, task), (Xn, yn, _) = split
    model = cm.ConditionalRidge(context=True).fit(X, y, task=task)
    assert model.context_
    one = model.adapt(Xn[:2], yn[:2]).update(Xn[2:5], yn[2:5])
    np.testing.assert_allclose(one.coef_, model.adapt(Xn[:5], yn[:5]).coef_, rtol=1e-10)


def test_without_an_intercept_there_is_no_context(split):
    (X, y, task), _ = split
    model = cm.ConditionalRidge(fit_intercept=False).fit(X, y, task=task)
    assert (model.context_, model.cold_start_) == (False, "prior")


@pytest.mark.parametrize("scale", ["none", "standard", "rows"])
def test_units_of_inputs_do_not_matter(split, scale):
    (X, y, task), (Xn, *_) = split
    settings = {"metric": "diagonal", "noise": "shared", "context": True, "cold_start": "prior"}
    one, other = (
        cm.ConditionalRidge(scale=scale, **settings).fit(1e3 * X * k, y, task=task)
        for k in (1.0, 1.0 if scale == "none" else 8.0)
    )
    k = 1.0 if scale == "none" else 8.0
    found = other.adapt().predict(1e3 * k * Xn)
    np.testing.assert_allclose(found, one.adapt().predict(1e3 * Xn), rtol=1e-6)
