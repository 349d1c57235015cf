"""What ConditionalCount chooses beside its prior: splines of x, and the start of new tasks."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import PoissonRegressor
from sklearn.preprocessing import PolynomialFeatures

import condmeta as cm
from condmeta.errors import DataError, ReadingNote
from condmeta.meta.pooled_rows import pooled_priors
from condmeta.meta.row_judge import ROUGH
from condmeta.tasks.points import Points


def panel(rate, n_tasks=60, n=8, seed=0):
    """Return inputs, counts with a log rate of x and of a task's mean input, and tasks."""
    rng = np.random.default_rng(seed)
    mean, task = rng.normal(size=n_tasks), np.repeat(np.arange(n_tasks), n)
    x = mean[task] + 0.7 * rng.normal(size=len(task))
    level = 0.2 * rng.normal(size=n_tasks)
    return x[:, None], rng.poisson(np.exp(rate(x, mean[task]) + level[task])) * 1.0, task


def line(x, mean):
    return 2 + 0.4 * x


def bend(x, mean):
    return 2 + 0.9 * np.cos(2 * x)


def between(x, mean):
    return 2 + 0.6 * x - 1.1 * mean


def density(model, X, y, task, shown):
    """Return the mean log density of the last counts of new tasks that show their first."""
    place = np.arange(len(y)) % 8
    first, last = place < shown, place >= 4
    models = model.adapt(X[first], y[first], task=task[first]) if shown else model.adapt(task=task)
    return models.predict_distribution(X[last], task=task[last]).log_density(y[last]).mean()


def test_splines_are_taken_where_log_rates_bend():
    X, y, task = panel(bend)
    model = cm.ConditionalCount().fit(X, y, task=task)
    straight = cm.ConditionalCount(x_transform=None).fit(X, y, task=task)
    assert (model.x_transform_, straight.x_transform_) == ("splines", None)
    assert [row["x_transform"] for row in model.transform_choice_] == ["splines", None]
    new = panel(bend, seed=1)
    for shown in (0, 3):
        assert density(model, *new, shown) > density(straight, *new, shown) + 0.1


@pytest.mark.parametrize("seed", range(3))
def test_straight_log_rates_stay_straight(seed):
    X, y, task = panel(line, seed=seed)
    model = cm.ConditionalCount().fit(X, y, task=task)
    assert model.x_transform_ is None
    straight = cm.ConditionalCount(x_transform=None).fit(X, y, task=task)
    np.testing.assert_array_equal(model.b_, straight.b_)


def test_exposures_are_read_when_splines_are_chosen():
    X, y, task = panel(bend)
    rng = np.random.default_rng(5)
    exposure = rng.uniform(1, 50, size=len(y))
    counts = rng.poisson(exposure * np.exp(bend(X[:, 0], 0) - 2)) * 1.0
    model = cm.ConditionalCount().fit(X, counts, task=task, exposure=exposure)
    assert model.x_transform_ == "splines"
    mean = model.predict([[0.0], [1.5]], task=["new"] * 2, exposure=[10.0, 10.0])
    np.testing.assert_allclose(mean, 10 * np.exp([0.9, 0.9 * np.cos(3)]), rtol=0.15)


def test_new_tasks_have_a_pooled_start_where_levels_go_with_inputs():
    X, y, task = panel(between)
    model = cm.ConditionalCount().fit(X, y, task=task)
    prior = cm.ConditionalCount(cold_start="prior").fit(X, y, task=task)
    assert (model.cold_start_, prior.cold_start_) == ("pooled", "prior")
    new = panel(between, seed=1)
    assert density(model, *new, 0) > density(prior, *new, 0) + 0.1
    assert density(model, *new, 3) == density(prior, *new, 3)  # points: the prior


def test_a_pooled_start_passes_to_the_prior_with_the_first_points():
    X, y, task = panel(between)
    call = {"task": ["new"] * 3}
    model = cm.ConditionalCount(cold_start="pooled").fit(X, y, task=task)
    prior = cm.ConditionalCount(cold_start="prior").fit(X, y, task=task)
    one = model.adapt(task=["new"])["new"]
    cold = one.predict(X[:5])
    np.testing.assert_allclose(cold, model.predict(X[:5], task=["new"] * 5), rtol=1e-12)
    assert np.abs(cold / prior.predict(X[:5], task=["new"] * 5) - 1).max() > 0.05
    one.update(X[:3], y[:3])
    expected = prior.adapt(X[:3], y[:3], **call).predict(X[:5], task=["new"] * 5)
    np.testing.assert_allclose(one.predict(X[:5]), expected, rtol=1e-9)
    model.update(X[:3], y[:3], **call)
    np.testing.assert_allclose(model.predict(X[:5], task=["new"] * 5), expected, rtol=1e-9)


def test_a_pooled_start_is_in_the_file(tmp_path):
    X, y, task = panel(between)
    model = cm.ConditionalCount(cold_start="pooled").fit(X, y, task=task)
    model.save(tmp_path / "model.condmeta")
    again = cm.load(tmp_path / "model.condmeta")
    ours, theirs = (each.predict_distribution(X, task=["new"] * len(X)) for each in (model, again))
    np.testing.assert_array_equal(ours.location, theirs.location)
    np.testing.assert_array_equal(ours.variance, theirs.variance)


def test_the_pooled_model_is_near_a_poisson_regression_of_all_rows():
    X, y, _ = panel(line)
    rows = np.column_stack([X, np.ones(len(X))])
    points = Points(rows, y, 8 * np.arange(61))
    ((_, found),) = pooled_priors(points, np.empty((60, 0)), (np.inf,), 1e-4, ROUGH)
    known = PoissonRegressor(alpha=0, tol=1e-8).fit(X, y)
    assert found.W[-1, 0] == pytest.approx(known.coef_[0], abs=0.05)
    level = found.W[-1, 1] + found.L[1, 1] ** 2 / 2  # of the mean
    assert level == pytest.approx(known.intercept_, abs=0.05)


def test_words_that_are_no_cold_start_are_refused():
    X, y, task = panel(line, n_tasks=20)
    with pytest.raises(DataError, match="'cold_start' parameter of ConditionalCount must be"):
        cm.ConditionalCount(cold_start="mixture").fit(X, y, task=task)


@pytest.mark.parametrize("count", [5.0, 40.0])
def test_constant_counts_are_predicted_for_new_tasks_too(count):
    X, _, task = panel(line)
    model = cm.ConditionalCount().fit(X, np.full(len(X), count), task=task)
    found = model.predict(X, task=["new"] * len(X))
    np.testing.assert_allclose(found, count, rtol=2e-3)


def test_rare_counts_keep_what_is_open_about_the_map():
    """Without any event, or with a few, Pearson's statistic says nothing about dispersion."""
    X, y, task = panel(line)
    model = cm.ConditionalCount().fit(X, np.zeros(len(y)), task=task)
    assert model.predict_distribution(X[:1], task=["new"]).variance[0] > 0.1


def test_splines_update_and_merge_as_one_fit_does():
    X, y, task = panel(bend)
    given = cm.ConditionalCount().fit(X, y, task=task)
    later = np.arange(len(y)) % 8 == 7
    grown = cm.ConditionalCount().fit(X, y, task=task).update(X[later], y[later], task=task[later])
    twice = np.concatenate([np.arange(len(y)), np.flatnonzero(later)])
    expected = given.adapt(X[twice], y[twice], task=task[twice]).predict(X, task=task)
    np.testing.assert_allclose(grown.predict(X, task=task), expected, rtol=1e-8)
    parts = task < 30, task >= 30
    merged = cm.merge(*(cm.ConditionalCount().fit(X[at], y[at], task=task[at]) for at in parts))
    expected = given.predict(X, task=task)
    np.testing.assert_allclose(merged.predict(X, task=task), expected, rtol=1e-6)


def test_rows_of_a_transformer_cannot_be_learned_from_again():
    X, y, task = panel(line)
    given = cm.ConditionalCount(x_transform=PolynomialFeatures(2, include_bias=False))
    parts = [clone(given).fit(X[at], y[at], task=task[at]) for at in (task < 30, task >= 30)]
    with pytest.raises(DataError, match="fit again with all tasks, or with x_transform=None"):
        cm.merge(*parts)


def test_a_table_says_that_splines_were_taken():
    X, y, task = panel(bend)
    table = {"x": X[:, 0], "sold": y.astype(int), "store": task}
    pd = pytest.importorskip("pandas")
    model = cm.TableModel(task="store", target="sold", learner=cm.ConditionalCount())
    said = "has splines of the features.*For straight lines set x_transform=None[.]"
    with pytest.warns(ReadingNote, match=said):
        model.fit(pd.DataFrame(table))
