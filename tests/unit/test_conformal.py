"""Intervals over tasks: the quantile by its definition, whose points count, and the sentences."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import condmeta as cm
from condmeta.errors import DataError
from condmeta.feature_maps import MeanInput
from condmeta.meta.conformal import LEVELS, Scores, tasks_needed

FIXED = {"theta": 0.0, "lam": 1.0, "scale": "none", "fit_intercept": False}


@pytest.fixture(scope="module")
def tasks():
    return cm.environments.Circle(d=2, n=8).sample(30, random_state=0)


@pytest.fixture(scope="module")
def ridge(tasks):
    learner = cm.ConditionalRidge(metric="identity", noise="shared")
    return cm.calibrate(learner, tasks, shots=(0, 1, 5))


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_quantile_by_its_definition(coverage):
    rng = np.random.default_rng(0)
    scores = [rng.exponential(size=n) for n in rng.integers(1, 9, size=15)]
    parts = [(r, np.full(len(r), float(len(r)))) for r in scores]
    q = Scores.of(parts[:7] + parts[7:]).quantile(coverage)

    def mass(r):
        return np.mean([np.mean(own <= r) for own in scores])

    level = coverage * (1 + 1 / 15)
    assert mass(q) >= level > mass(np.nextafter(q, 0))


@pytest.mark.parametrize("coverage", [0.001, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
def test_many_scores_are_kept_at_some_levels(coverage):
    """The quantile is never too small, and no larger than that of a level just above."""
    rng = np.random.default_rng(0)
    size = rng.integers(1, 9, size=30_000).astype(float)
    r = rng.exponential(size=size.size)
    kept = Scores.of([(r, size)])
    assert len(kept.r) <= len(LEVELS) + 1
    assert kept.weight.sum() == pytest.approx(1)
    order = np.argsort(r)
    total = np.cumsum(1 / size[order]) / (1 / size).sum()
    level = coverage * (1 + 1 / kept.n_tasks)
    above = min(level + 0.001, 1 - (1 - level) / 1.02)
    exact, next_up = (r[order][np.searchsorted(total, at)] for at in (level, above))
    assert exact <= kept.quantile(coverage) <= next_up


@pytest.mark.parametrize(("coverage", "needed"), [(0.5, 1), (0.8, 4), (0.9, 9), (0.99, 99)])
def test_tasks_needed(coverage, needed):
    assert tasks_needed(coverage) == needed
    assert coverage * (1 + 1 / needed) <= 1 + 1e-12
    few, enough = (
        Scores.of([(np.arange(1.0, T + 1), np.ones(T))]) for T in (needed - 1 or 1, needed)
    )
    assert enough.quantile(coverage) == needed  # the largest of all
    assert enough.reaches(coverage)
    assert few.reaches(coverage) == (needed == 1)


def test_a_fixed_bias_has_the_quantile_of_the_labels(tasks):
    """With theta = 0 and no points predictions are 0, whatever the folds: scores are |y|."""
    calibrated = cm.calibrate(cm.FixedBiasRegressor(**FIXED), tasks, shots=(0,))
    low, high = calibrated.predict_interval(tasks.X[:3], side_info={"s": 0.0}, coverage=0.8)
    q = np.sort(np.abs(tasks.y))[int(np.ceil(0.8 * (1 + 1 / 30) * 240 - 1e-9)) - 1]
    np.testing.assert_allclose(high, q)
    np.testing.assert_allclose(low, -q)


def test_each_task_has_the_interval_of_its_points(tasks, ridge):
    rows, at = tasks.X[:4], tasks.y[:4]

    def width(model, **whose):
        predicted, std = model.model.predict(rows, return_std=True, **whose)
        low, high = model.predict_interval(rows, **whose)
        np.testing.assert_allclose((low + high) / 2, predicted)
        return ((high - low) / 2 / std)[0]

    scores = ridge.calibration.scores
    q = {m: scores[m].quantile(0.9) for m in (0, 1, 5)}
    assert width(ridge, task=["new"] * 4, side_info={"new": {"s": 0.2}}) == pytest.approx(q[0])
    assert width(ridge, task=[0] * 4) == pytest.approx(q[5])  # it has eight
    four = ridge.adapt(rows, at, side_info={"s": 0.2})
    assert width(four) == pytest.approx(q[1])
    assert width(four.update(rows, at)) == pytest.approx(q[5])
    sides = {"a": {"s": 0.1}, "b": {"s": 0.2}}
    several = ridge.adapt(rows, at, task=["a", "b", "b", "b"], side_info=sides)
    assert width(several, task=["a"] * 4) == pytest.approx(q[1])
    assert width(several["b"]) == pytest.approx(q[1])
    assert len(q) == len(set(q.values()))


def test_order_of_rows_is_kept(tasks, ridge):
    order = np.random.default_rng(0).permutation(len(tasks.y))
    task = np.repeat(tasks.ids, tasks.sizes)[order]
    shuffled = cm.TaskSet.from_arrays(tasks.X[order], tasks.y[order], task, side_info=tasks.side)
    expected = ridge.predict_interval(tasks.X[order], task=task)
    np.testing.assert_allclose(ridge.predict_interval(shuffled), expected)
    models = ridge.adapt(shuffled)
    by_id = models.predict_interval(tasks.X[order], task=task)
    np.testing.assert_allclose(models.predict_interval(shuffled), by_id)


def test_delegates_and_updates(tasks):
    calibrated = cm.calibrate(cm.FixedBiasRegressor(**FIXED), tasks, shots=(0, 2))
    assert calibrated.n_tasks_calibrated_ == {0: 30, 2: 30}
    before = calibrated.predict(tasks.X[:2], task=[0, 0])
    calibrated.update(tasks.X[:3], tasks.y[:3], task=[0, 0, 0])
    assert calibrated.n_points(tasks.X[:2], task=[0, 1]).tolist() == [11, 8]
    assert not np.allclose(before, calibrated.predict(tasks.X[:2], task=[0, 0]))
    with pytest.raises(AttributeError, match="no attribute 'mystery'"):
        calibrated.mystery  # noqa: B018


def test_model_of_one_task_has_a_deviation_with_maps_of_points(tasks):
    learner = cm.ConditionalRidge(MeanInput(), metric="identity", noise="shared").fit(tasks)
    one = learner.adapt(tasks.X[:3], tasks.y[:3])
    several = learner.adapt(tasks.X[:3], tasks.y[:3], task=["a"] * 3)
    expected = several.predict(tasks.X[:5], task=["a"] * 5, return_std=True)
    np.testing.assert_allclose(one.predict(tasks.X[:5], return_std=True), expected)
    np.testing.assert_allclose(several["a"].predict(tasks.X[:5], return_std=True), expected)


def test_the_learner_that_chooses_can_be_calibrated(tasks):
    calibrated = cm.calibrate(cm.AutoRegressor(base=None), tasks[:20], shots=(0, 2), n_splits=2)
    scores = calibrated.calibration.scores
    for n, m in ((1, 0), (3, 2)):
        model = calibrated.adapt(tasks.X[:n], tasks.y[:n], side_info={"s": 0.1})
        low, high = model.predict_interval(tasks.X[:2])
        np.testing.assert_allclose((high - low) / 2, scores[m].quantile(0.9))
    low, high = calibrated.predict_interval(tasks[:1])
    np.testing.assert_allclose((high - low) / 2, scores[2].quantile(0.9))


def test_points_behind_predictions(tasks):
    learner = cm.FixedBiasRegressor(**FIXED).fit(tasks[:1])
    assert learner.n_points(tasks.X[:2]).tolist() == [8, 8]
    assert learner.n_points(tasks.X[:2], side_info={"s": 0.5}).tolist() == [0, 0]
    bare = cm.FixedBiasRegressor(keep_tasks=False, **FIXED).fit(tasks)
    assert bare.n_points(tasks.X[:2], task=[0, 1]).tolist() == [0, 0]


def test_errors(tasks, ridge):
    learner = cm.FixedBiasRegressor(**FIXED)
    few = cm.calibrate(learner, tasks[:6], shots=(0,))
    with pytest.raises(DataError, match="needs at least 9 tasks to calibrate on; there are 6"):
        few.predict_interval(tasks.X[:1], task=[0])
    with pytest.raises(DataError, match="needs at least 99 tasks"):
        ridge.predict_interval(tasks.X[:1], task=[0], coverage=0.99)
    for wrong in (90, 1.0, "all"):
        with pytest.raises(DataError, match=r"'coverage' parameter must be a float in \(0, 1\)"):
            ridge.predict_interval(tasks.X[:1], task=[0], coverage=wrong)
    late = cm.calibrate(learner, tasks, shots=(2, 5))
    with pytest.raises(DataError, match=r"fewer than 2 points\. Include 0 in the"):
        late.predict_interval(tasks.X[:1], side_info={"s": 0.1})
    with pytest.raises(DataError, match="No task has more than 50 points"):
        cm.calibrate(learner, tasks, shots=(50,))
    with pytest.raises(DataError, match=r"'n_splits' parameter must be an int in \[2, 30\]"):
        cm.calibrate(learner, tasks, n_splits=31)
    with pytest.raises(DataError, match=r"fit, adapt and get_params.*Got a Ridge"):
        cm.calibrate(Ridge(), tasks)
    with pytest.raises(DataError, match="Intervals are for numbers"):
        cm.calibrate(cm.ConditionalSGDClassifier(), tasks)
    with pytest.raises(DataError, match="needs the targets of the tasks"):
        cm.calibrate(learner, cm.TaskSet([[1.0]], None, [0, 1], [0]))
    with pytest.raises(DataError, match="pass it alone"):
        cm.calibrate(learner, tasks, tasks.y)
