"""Targets that are modelled on another scale: labels go in, labels come out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import yeojohnson
from sklearn.base import clone

import condmeta as cm
from condmeta.errors import DataError
from condmeta.fitted.target import TargetScale

FIXED = {"metric": "diagonal", "noise": "shared", "context": False, "cold_start": "prior"}


def draw(n_tasks=60, n=8, seed=0):
    """Return prices: logarithms are linear."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), n)
    X = rng.normal(size=(len(task), 2))
    level = rng.normal(size=n_tasks)
    return X, np.exp(X @ [1.0, 0.5] + level[task] + 0.2 * rng.normal(size=len(task))), task


@pytest.mark.parametrize("power", [0.0, 0.6, 1.0, 1.4, 2.0])
def test_yeo_johnson_is_that_of_scipy(power):
    y = np.linspace(-30, 50, 101)
    scale = TargetScale("yeo-johnson", power, 2.0, -np.inf, np.inf)
    values = scale.apply(y)
    np.testing.assert_allclose(values, yeojohnson(y / 2.0, lmbda=power), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(scale.undo(values), y, rtol=1e-8, atol=1e-8)
    h = 1e-6
    slope = 2 * h / (scale.apply(y + h) - scale.apply(y - h))
    np.testing.assert_allclose(scale.slope(y), slope, rtol=1e-4)


def test_the_power_is_that_of_scipy():
    y = np.random.default_rng(0).gamma(2.0, size=20_000) * 1e4
    assert TargetScale.learn("yeo-johnson", y**2).power == 0.0  # no power is below 0
    y = np.sqrt(y)
    scale = TargetScale.learn("yeo-johnson", y)
    _, best = yeojohnson(y / scale.unit)
    assert scale.power == pytest.approx(best, abs=0.05)
    weight = np.random.default_rng(1).integers(1, 4, size=300)
    weighted = TargetScale.learn("yeo-johnson", y[:300], weight.astype(float))
    assert weighted == TargetScale.learn("yeo-johnson", np.repeat(y[:300], weight))


def test_log_is_a_fit_to_logarithms():
    X, y, task = draw()
    old, new = task < 50, task == 55
    model = cm.ConditionalRidge(y_transform="log", **FIXED).fit(X[old], y[old], task=task[old])
    plain = cm.ConditionalRidge(**FIXED).fit(X[old], np.log(y[old]), task=task[old])
    np.testing.assert_allclose(model.M_, plain.M_)
    few = np.flatnonzero(new)[:3]
    one, other = (m.adapt(X[few], v[few]) for m, v in ((model, y), (plain, np.log(y))))
    predicted, std = one.predict(X[new], return_std=True)
    center, spread = other.predict(X[new], return_std=True)
    np.testing.assert_allclose(predicted, np.exp(center))
    np.testing.assert_allclose(std, np.exp(center) * spread)
    ids = np.repeat("a", new.sum())
    many = model.adapt(X[few], y[few], task=ids[:3]).predict(X[new], task=ids, return_std=True)
    np.testing.assert_allclose(many, (predicted, std))
    one.update(X[few], y[few])
    np.testing.assert_allclose(one.coef_, other.update(X[few], np.log(y[few])).coef_)
    known = task[old]
    both = model.predict(X[old], task=known, return_std=True)
    inner = plain.predict(X[old], task=known, return_std=True)
    np.testing.assert_allclose(both, (np.exp(inner[0]), np.exp(inner[0]) * inner[1]))


@pytest.mark.parametrize("scale", ["log", "yeo-johnson"])
def test_skewed_targets_are_predicted_better(scale):
    X, y, task = draw(n_tasks=120)
    old = task < 80
    errors = {}
    for name in (None, scale):
        model = cm.ConditionalRidge(y_transform=name).fit(X[old], y[old], task=task[old])
        few = ~old & (np.arange(len(y)) % 8 < 3)
        models = model.adapt(X[few], y[few], task=task[few])
        asked = ~old & ~few
        errors[name] = np.abs(models.predict(X[asked], task=task[asked]) - y[asked]).mean()
    assert errors[scale] < 0.7 * errors[None]


def test_chunks_updates_files_bases_and_checks_know_the_scale(tmp_path):
    X, y, task = draw()
    learner = cm.ConditionalRidge(y_transform="log", **FIXED)
    model = clone(learner).fit(X, y, task=task)
    early = np.arange(len(y)) % 8 < 5
    parts = clone(learner).fit(X[early], y[early], task=task[early])
    parts.update(X[~early], y[~early], task=task[~early])
    parts._model = parts.fitted_._replace(tau=None)  # learn again
    np.testing.assert_allclose(parts.predict(X, task=task), model.predict(X, task=task), rtol=1e-6)
    model.save(tmp_path / "model")
    again = cm.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X, task=task), model.predict(X, task=task))
    based = clone(learner).set_params(base="boosting").fit(X, y, task=task)
    assert (based.predict(X, task=task) > 0).all()
    late = cm.check(parts, cm.TaskSet.from_arrays(X, y, task))
    assert late.verdict == "keep"


def test_predictions_stay_near_the_labels_that_were_seen():
    X, y, task = draw()
    model = cm.ConditionalRidge(y_transform="log", **FIXED).fit(X, y, task=task)
    far = model.predict(np.array([[1e3, 1e3], [-1e3, -1e3]]), task=[0, 0])
    lowest = np.exp(np.log(y.min()) - 0.25 * np.ptp(np.log(y)))
    np.testing.assert_allclose(far, [y.max() + 0.25 * np.ptp(y), lowest])


def test_labels_without_a_logarithm_are_refused_and_nothing_changes():
    X, y, task = draw()
    learner = cm.ConditionalRidge(y_transform="log", **FIXED)
    with pytest.raises(DataError, match=r"y holds -1, which has no logarithm: y_transform='log' "):
        clone(learner).fit(X, -np.ones(len(y)), task=task)
    model = learner.fit(X, y, task=task)
    before = model.predict(X, task=task)
    with pytest.raises(DataError, match=r"y holds 0, which has no logarithm.*'yeo-johnson', or N"):
        model.update(X[:1], [0.0], task=[0])
    np.testing.assert_array_equal(model.predict(X, task=task), before)
    with pytest.raises(DataError, match="The 'y_transform' parameter of ConditionalRidge must be"):
        cm.ConditionalRidge(y_transform="sqrt").fit(X, y, task=task)


def test_squared_errors_ask_for_means(tmp_path):
    """The mean of exp(a + s z) over normal z is exp(a + s^2 / 2)."""
    X, y, task = draw()
    how = {"y_transform": "log", "x_transform": None, **FIXED}
    median = cm.ConditionalRidge(**how).fit(X, y, task=task)
    mean = cm.ConditionalRidge(criterion="squared", **how).fit(X, y, task=task)
    factor = np.exp(mean.s2_ / 2)
    assert factor > 1.01
    inside = (y > np.quantile(y, 0.05)) & (y < np.quantile(y, 0.95))  # ends of the range are cut
    call = {"X": X[inside], "task": task[inside]}
    expected = factor * median.predict(**call)
    np.testing.assert_allclose(mean.predict(**call), expected, rtol=1e-6)
    one = mean.adapt(X[:3], y[:3]).predict(X[inside][:20])
    np.testing.assert_allclose(
        one, factor * median.adapt(X[:3], y[:3]).predict(X[inside][:20]), rtol=1e-6
    )
    mean.save(tmp_path / "mean.condmeta")
    loaded = cm.load(tmp_path / "mean.condmeta")
    np.testing.assert_array_equal(loaded.predict(**call), mean.predict(**call))
    mean.update(X[:8], y[:8] * 1.1, task=["new"] * 8)
    assert np.isfinite(mean.predict(X[:2], task=["new"] * 2)).all()


def test_check_judges_means_as_it_judges_medians():
    """Both have the same residuals on the scale of the model."""
    X, y, task = draw(n_tasks=80, n=12)
    old, found = task < 60, []
    for criterion in ("absolute", "squared"):
        model = cm.ConditionalRidge(y_transform="log", criterion=criterion, **FIXED)
        model.fit(X[old], y[old], task=task[old])
        found.append(cm.check(model, X[~old], y[~old], task=task[~old]).frame.set_index("task"))
    medians, means = found
    np.testing.assert_allclose(means["z"].loc[medians.index], medians["z"], rtol=1e-6)
    assert (means["rmse"].loc[medians.index] != medians["rmse"]).all()
