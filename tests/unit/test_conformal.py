"""Intervals over tasks: the quantile by its definition, whose points count, and the sentences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import Ridge

import condmeta as cm
from condmeta.errors import DataError
from condmeta.feature_maps import MeanInput
from condmeta.meta.conformal import LEVELS, Scores, tasks_needed
from condmeta.meta.error_scale import HeldOut

FIXED = {"theta": 0.0, "lam": 1.0, "scale": "none", "fit_intercept": False}


@pytest.fixture(scope="module")
def tasks():
    return cm.environments.Circle(d=2, n=8).sample(30, random_state=0)


@pytest.fixture(scope="module")
def ridge(tasks):
    learner = cm.ConditionalRidge(metric="identity", noise="shared")
    return cm.calibrate(learner, tasks, shots=(0, 1, 5))


def scores_of(errors: list[np.ndarray]) -> Scores:
    """Return the scores of tasks with these errors, each of size 1."""
    task = np.repeat(np.arange(len(errors)), [len(e) for e in errors])
    one = np.ones(len(task))
    held = HeldOut(np.concatenate(errors), 0 * one, one, one / np.bincount(task)[task], task)
    return Scores.of(held, one)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_two_sides_by_their_definition(coverage):
    """Both sides grow together until tasks have the mass; the longer side has the longer tail."""
    rng = np.random.default_rng(0)
    errors = [rng.exponential(size=n) - 0.7 for n in rng.integers(1, 9, size=40)]
    below, above = scores_of(errors).reach(coverage)

    def mass(factor):
        inside = [(-factor * below <= e) & (e <= factor * above) for e in errors]
        return np.mean([each.mean() for each in inside])

    level = coverage * (1 + 1 / 40)
    assert mass(1 + 1e-9) >= level > mass(1 - 1e-9)
    assert above > 1.3 * below


def test_few_tasks_have_nearly_symmetric_intervals():
    """The difference of the tails is shrunken: few tasks say little about it."""
    rng = np.random.default_rng(0)
    errors = [rng.exponential(size=4) - 0.7 for _ in range(400)]
    ratios = []
    for count in (20, 40, 400):
        below, above = scores_of(errors[:count]).reach(0.8)
        ratios.append(above / below)
    assert 1 == ratios[0] < ratios[1] < ratios[2]
    low, high = np.quantile(np.concatenate(errors), [0.1, 0.9])
    assert ratios[2] == pytest.approx(high / -low, rel=0.15)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_quantile_by_its_definition(coverage):
    rng = np.random.default_rng(0)
    scores = [rng.exponential(size=n) for n in rng.integers(1, 9, size=30)]
    q = scores_of(scores).quantile(coverage)

    def mass(r):
        return np.mean([np.mean(own <= r) for own in scores])

    level = coverage * (1 + 1 / 30)
    assert mass(q) >= level > mass(np.nextafter(q, 0))


def covered_by_the_others(scores: list[np.ndarray], level: float) -> float:
    """Return the share of scores up to the conformal quantile of the other tasks, by definition."""
    shares = []
    for t, own in enumerate(scores):
        others = scores[:t] + scores[t + 1 :]
        r = np.sort(np.concatenate(others))
        mass = np.mean([np.mean(each[:, None] <= r, axis=0) for each in others], axis=0)
        reached = np.flatnonzero(mass >= level * (1 + 1 / len(others)) - 1e-9)
        shares.append(np.mean(own <= r[reached[0]]))
    return float(np.mean(shares))


@pytest.mark.parametrize("sizes", [[1] * 12, [10] * 12, [1, 3, 9, 2, 7, 7, 30, 4, 5, 6, 8, 2]])
def test_the_level_of_few_tasks_covers_each_of_them_by_the_others(sizes):
    rng = np.random.default_rng(1)
    scores = [np.exp(rng.normal()) * rng.exponential(size=n) for n in sizes]
    level = scores_of(scores).level(0.9) / (1 + 1 / 12)
    assert covered_by_the_others(scores, level) >= 0.9
    if sizes[0] == sizes[1] == 1:
        assert level == 0.9
    else:
        smaller = level - 2 / len(np.concatenate(scores))
        assert covered_by_the_others(scores, smaller) < 0.93
        assert level < 0.9


@pytest.mark.parametrize("rho", [0.2, 0.6])
def test_ten_tasks_of_many_rows_cover_no_more_than_they_should(rho):
    """A share rho of the variance of errors is that of tasks; 97 % were covered before."""
    rng, found = np.random.default_rng(0), []
    for _ in range(300):
        of_tasks, of_rows = rng.normal(size=(10, 1)), rng.normal(size=(10, 10))
        errors = np.sqrt(rho) * of_tasks + np.sqrt(1 - rho) * of_rows
        found.append(2 * norm.cdf(scores_of(list(errors)).quantile(0.9)) - 1)
    assert 0.89 <= np.mean(found) <= 0.92


@pytest.mark.parametrize("coverage", [0.001, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
def test_many_scores_are_kept_at_some_levels(coverage):
    """The quantile is never too small, and no larger than that of a level just above."""
    rng = np.random.default_rng(0)
    size = rng.integers(1, 9, size=30_000).astype(float)
    r = rng.exponential(size=size.size)
    task = np.floor(np.cumsum(1 / size) - 0.5 / size).astype(int)
    share = 1 / np.bincount(task)[task]
    one = np.ones(len(r))
    kept = Scores.of(HeldOut(r, 0 * one, one, share, task), one)
    assert len(kept.r) <= len(LEVELS) + 1
    assert kept.weight.sum() == pytest.approx(1)
    assert kept.above.all()
    size = 1 / share
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
        scores_of(list(np.arange(1.0, T + 1)[:, None])) for T in (needed - 1 or 1, needed)
    )
    assert enough.quantile(coverage) == needed  # the largest of all
    assert enough.reaches(coverage)
    assert few.reaches(coverage) == (needed == 1)


def test_a_fixed_bias_has_the_quantiles_of_the_labels(tasks):
    """With theta = 0 and no points predictions are 0, whatever the folds: errors are y."""
    calibrated = cm.calibrate(cm.FixedBiasRegressor(**FIXED), tasks, shots=(0,))
    low, high = calibrated.predict_interval(tasks.X[:3], side_info={"s": 0.0}, coverage=0.8)
    assert np.ptp(low) == np.ptp(high) == 0
    assert low[0] != -high[0]
    count = int(np.ceil(0.8 * (1 + 1 / 30) * 240 - 1e-9))
    inside = [np.sum((f * low[0] <= tasks.y) & (tasks.y <= f * high[0])) for f in (1, 1 - 1e-9)]
    assert inside == [count, count - 1]


def test_each_task_has_the_interval_of_its_points(tasks, ridge):
    rows, at = tasks.X[:4], tasks.y[:4]

    calibration = ridge.calibration

    def used(model, **whose):
        """Return the calibrated number of points that the interval belongs to."""
        predicted, std = model.model.predict(rows, return_std=True, **whose)
        ends = model.predict_interval(rows, **whose)
        same = []
        for m in (0, 1, 5):
            below, above = calibration.sizes[m].sizes(predicted, std)
            down, up = calibration.scores[m].reach(0.9)
            same.append(np.allclose(ends, [predicted - down * below, predicted + up * above]))
        assert sum(same) == 1
        return (0, 1, 5)[same.index(True)]

    assert used(ridge, task=["new"] * 4, side_info={"new": {"s": 0.2}}) == 0
    assert used(ridge, task=[0] * 4) == 5  # it has eight
    four = ridge.adapt(rows, at, side_info={"s": 0.2})
    assert used(four) == 1
    assert used(four.update(rows, at)) == 5
    sides = {"a": {"s": 0.1}, "b": {"s": 0.2}}
    several = ridge.adapt(rows, at, task=["a", "b", "b", "b"], side_info=sides)
    assert used(several, task=["a"] * 4) == 1
    assert used(several["b"]) == 1


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

    def check(found, predicted, m):
        below, above = calibrated.calibration.sizes[m].sizes(predicted, np.ones(len(predicted)))
        down, up = calibrated.calibration.scores[m].reach(0.9)
        np.testing.assert_allclose(found, [predicted - down * below, predicted + up * above])

    for n, m in ((1, 0), (3, 2)):
        model = calibrated.adapt(tasks.X[:n], tasks.y[:n], side_info={"s": 0.1})
        check(model.predict_interval(tasks.X[:2]), model.predict(tasks.X[:2]), m)
    check(calibrated.predict_interval(tasks[:1]), calibrated.predict(tasks[:1]), 2)


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
    with pytest.raises(DataError, match=r"fit, adapt and get_params.*Got Ridge"):
        cm.calibrate(Ridge(), tasks)
    with pytest.raises(DataError, match="Intervals are for numbers"):
        cm.calibrate(cm.ConditionalSGDClassifier(), tasks)
    with pytest.raises(DataError, match="needs the targets of the tasks"):
        cm.calibrate(learner, cm.TaskSet([[1.0]], None, [0, 1], [0]))
    with pytest.raises(DataError, match="pass it alone"):
        cm.calibrate(learner, tasks, tasks.y)


def _skewed(T: int, seed: int, n: int = 8):
    """Draw tasks whose labels are positive, and whose errors grow with the level."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(T), n)
    x = rng.uniform(0.2, 3.0, size=len(task))
    level = (1 + x) * np.exp(0.2 * rng.standard_normal(T))[task]
    return x[:, None], level * rng.gamma(4.0, 0.25, size=len(task)), task


def test_errors_that_grow_with_the_level_are_covered_at_every_level():
    X, y, task = _skewed(300, 0)
    learner = cm.ConditionalRidge(metric="identity", noise="shared")
    calibrated = cm.calibrate(learner, X, y, task=task, shots=(0,))
    X, y, task = _skewed(400, 1)
    ids = [f"new {t}" for t in task]
    low, high = calibrated.predict_interval(X, task=ids)
    inside = (low <= y) & (y <= high)
    fifth = np.argsort(np.argsort(X[:, 0])) * 5 // len(y)
    shares = [inside[fifth == group].mean() for group in range(5)]
    assert min(shares) > 0.86, shares
    assert inside.mean() == pytest.approx(0.9, abs=0.02)
    predicted = calibrated.predict(X, task=ids)
    assert ((high - predicted) > 1.2 * (predicted - low)).mean() > 0.9
    assert np.corrcoef(high - low, X[:, 0])[0, 1] > 0.8


def test_intervals_end_where_labels_must():
    X, y, task = _skewed(60, 0)
    learner = cm.FixedBiasRegressor(**FIXED)

    def least(labels, **options):
        calibrated = cm.calibrate(learner, X, labels, task=task, shots=(0, 2), **options)
        ends = np.array(calibrated.predict_interval(-X, task=task))
        return float(ends.min()), float(ends.max())

    assert least(y)[0] == 0.0
    assert least(y, bounds=None)[0] < 0
    assert least(-y)[1] == 0.0
    assert least(y - 1)[0] < 0
    assert least(y, bounds=(0, 30))[1] <= 30
    for wrong in ((1, 0), "all", 3):
        with pytest.raises(DataError, match=r"'bounds' parameter must be \"auto\", None, or two"):
            least(y, bounds=wrong)
    with pytest.raises(DataError, match=r"'bounds' parameter is \(0, 1\), but a label is"):
        least(y, bounds=(0, 1))


def test_an_offset_moves_labels_and_both_ends(tasks):
    learner = cm.ConditionalRidge(metric="identity", noise="shared")
    task = np.repeat(tasks.ids, tasks.sizes)
    offset = np.linspace(-3, 3, len(task))
    given = {"task": task, "side_info": tasks.side, "shots": (0, 2)}
    plain = cm.calibrate(learner, tasks.X, tasks.y, **given)
    moved = cm.calibrate(learner, tasks.X, tasks.y + offset, offset=offset, **given)
    new = {"task": ["new"] * 6, "side_info": {"new": {"s": 0.2}}}
    expected = plain.predict_interval(tasks.X[:6], **new)
    found = moved.predict_interval(tasks.X[:6], offset=offset[:6], **new)
    np.testing.assert_allclose(found, np.add(expected, offset[:6]))
    one, other = (
        made.adapt(tasks.X[:4], tasks.y[:4] + o, side_info={"s": 0.1}, **also)
        for made, o, also in ((plain, 0, {}), (moved, 5.0, {"offset": np.full(4, 5.0)}))
    )
    np.testing.assert_allclose(
        one.predict_interval(tasks.X[:3]), other.predict_interval(tasks.X[:3], offset=0)
    )
    with pytest.raises(DataError, match="offset has shape"):
        moved.predict_interval(tasks.X[:6], offset=offset[:5], **new)
    with pytest.raises(DataError, match="offset= works only with X and y"):
        cm.calibrate(learner, tasks, offset=offset)


def test_weights_of_two_are_rows_given_twice():
    """Errors of a task are weighted as if its rows were repeated, and so is the fit."""
    rng = np.random.default_rng(0)
    X, y, task = _skewed(30, 2, n=4)
    weight = rng.integers(1, 3, size=len(y))
    fixed = {"metric": "identity", "noise": "shared", "kappa": 1.0}  # a copy may judge, or be shown
    fixed |= {"x_transform": None, "y_transform": None}
    learner = cm.ConditionalRidge(context=False, cold_start="prior", **fixed)
    options = {"shots": (0,), "bounds": None}
    weighted = cm.calibrate(learner, X, y, task=task, sample_weight=weight, **options)
    again = np.repeat(np.arange(len(y)), weight)
    repeated = cm.calibrate(learner, X[again], y[again], task=task[again], **options)
    other = cm.calibrate(learner, X, y, task=task, **options)
    new = {"task": ["new"] * 3, "coverage": 0.8}
    found, expected, plain = (
        np.array(made.predict_interval(X[:3], **new)) for made in (weighted, repeated, other)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert not np.allclose(found, plain, rtol=1e-2)
    model = weighted.adapt(X[:4], y[:4], sample_weight=weight[:4])
    np.testing.assert_allclose(
        model.predict(X[:2]),
        weighted.model.adapt(X[:4], y[:4], sample_weight=weight[:4]).predict(X[:2]),
    )
