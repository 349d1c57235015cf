"""Intervals of counts and grades: labels on a grid, many of them at its end."""

from __future__ import annotations

from math import inf

import numpy as np
import pandas as pd
import pytest
from scipy.stats import nbinom

import condmeta as cm
from condmeta.errors import DataError
from condmeta.meta.conformal import Calibration
from condmeta.meta.error_scale import HeldOut

T, N = 400, 5
SHAPE = 0.7  # of negative binomial counts: most are few, some are many


def law(predicted):
    """Return the distribution of counts with these medians, about."""
    mean = 2 * predicted
    return nbinom(SHAPE, SHAPE / (SHAPE + mean))


def counts(seed=0):
    """Return held-out errors of counts; between a tenth and nine tenths of them are 0."""
    rng = np.random.default_rng(seed)
    predicted = 6 * rng.uniform(0.05, 1, size=T * N) ** 2
    y = law(predicted).rvs(random_state=rng)
    task, share = np.repeat(np.arange(T), N), np.full(T * N, 1 / N)
    return HeldOut(y - predicted, predicted, np.ones(T * N), share, task)


def coverage(calibration, predicted):
    """Return the exact probability of a count inside its interval, and both ends."""
    n = np.zeros(len(predicted), int)
    low, high = calibration.interval(predicted, np.ones(len(n)), n, 0.9)
    inside = law(predicted).cdf(np.floor(high)) - law(predicted).cdf(np.ceil(low) - 1)
    return inside, low, high


def test_counts_are_covered_at_every_level():
    predicted = np.sort(counts(1).predicted)
    inside, low, high = coverage(Calibration({0: counts()}, (0.0, inf), 1.0), predicted)
    assert min(part.mean() for part in np.array_split(inside, 5)) > 0.85
    assert 0.88 < inside.mean() < 0.93
    assert (low == 0).all()  # 0 is the most frequent count everywhere
    assert high.mean() == pytest.approx(law(predicted).ppf(0.9).mean(), rel=0.1)


def marks(seed, n_tasks=T):
    """Return held-out errors of marks 1 to 5; all predictions lie between two marks."""
    rng = np.random.default_rng(seed)
    predicted = 3.7 + 0.1 * rng.normal(size=n_tasks * N)
    y = np.clip(np.rint(predicted + 0.8 * rng.normal(size=len(predicted))), 1, 5)
    task, share = np.repeat(np.arange(n_tasks), N), np.full(len(y), 1 / N)
    return HeldOut(y - predicted, predicted, np.ones(len(y)), share, task)


def test_marks_are_not_covered_more_often_than_asked():
    """Spread labels shape the widths alone: counted by them, the coverage was .93."""
    fresh = marks(1, 4000)
    n = np.zeros(len(fresh.error), int)
    found = []
    for seed in range(2, 6):
        calibration = Calibration({0: marks(seed)}, (1.0, 5.0), 1.0)
        low, high = calibration.interval(fresh.predicted, fresh.std, n, 0.9)
        y = fresh.predicted + fresh.error
        found.append(np.mean((low <= y + 1e-9) & (y - 1e-9 <= high)))
    assert 0.89 < np.mean(found) < 0.92


def test_fine_steps_change_nothing():
    held = counts()
    mean = np.linspace(0.1, 8, 50)
    fine, none = (coverage(Calibration({0: held}, (0.0, inf), step), mean) for step in (0.01, 0.0))
    np.testing.assert_array_equal(fine[1:], none[1:])


def _grades(T=60):
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(T * 8, 1)), np.repeat(np.arange(T), 8)
    y = np.clip(np.rint(5 + 3 * X[:, 0] + rng.normal(size=T)[task] + rng.normal(size=T * 8)), 1, 9)
    return X, y, task


def test_grades_end_where_the_scale_ends():
    X, y, task = _grades()
    found = cm.calibrate(cm.ConditionalRidge(), X, y, task=task, shots=(0,))
    assert found.calibration.bounds == (0.0, 9.0)  # no grade is negative; many are the best
    assert cm.calibrate(cm.ConditionalRidge(), X, y - 5, task=task, shots=(0,)).calibration.bounds \
        == (-4.0, 4.0)  # fmt: skip
    noise = np.random.default_rng(1).normal(size=len(y))
    free = cm.calibrate(cm.ConditionalRidge(), X, y - 5 + noise, task=task, shots=(0,))
    assert free.calibration.bounds == (-inf, inf)


def test_offsets_leave_bounds_in_the_units_of_y():
    X, y, task = _grades()
    offset = 3 * X[:, 0]
    found = cm.calibrate(cm.ConditionalRidge(), X, y, task=task, shots=(0,), offset=offset)
    low, high = found.predict_interval(X, task=task, offset=offset)
    assert (low.min(), high.max()) == pytest.approx((0.0, 9.0))
    assert 0.85 < np.mean((low <= y) & (y <= high)) < 0.99
    predicted = found.predict(X, task=task, offset=offset)
    assert ((low <= predicted) & (predicted <= high)).all()
    assert (predicted.min(), predicted.max()) == (0.0, 9.0)  # no line ends there


def test_a_forgotten_offset_is_an_error(tmp_path):
    X, y, task = _grades()
    found = cm.calibrate(cm.ConditionalRidge(), X, y, task=task, shots=(0,), offset=3 * X[:, 0])
    found.save(tmp_path / "grades.condmeta")
    for model in (found, cm.load(tmp_path / "grades.condmeta")):
        one = model.adapt(X[:3], y[:3], offset=3 * X[:3, 0])
        assert (one.predict(X[:3], offset=3 * X[:3, 0]) != one.predict(X[:3], offset=0)).any()
        for call in (
            lambda model=model: model.predict(X, task=task),
            lambda model=model: model.predict_interval(X, task=task),
            lambda model=model: model.adapt(X[:3], y[:3]),
            lambda model=model: model.update(X[:3], y[:3], task=task[:3]),
            lambda one=one: one.predict(X[:3]),
            lambda one=one: one.update(X[:3], y[:3]),
        ):
            with pytest.raises(DataError, match="fitted with an offset: give offset= here as well"):
                call()


@pytest.mark.parametrize("shown", [None, 3])
def test_predictions_lie_in_their_intervals(shown):
    """A line goes below 0 where labels cannot, and the interval is cut there."""
    X, y, task = _grades()
    found = cm.calibrate(cm.ConditionalRidge(), X, y, task=task, shots=(0, 3))
    far = np.linspace(-9, 9, 50)[:, None]
    if shown is None:
        model, call = found, {"task": np.full(50, task[0])}
    else:
        model, call = found.adapt(X[:shown], y[:shown]), {}
    low, high = model.predict_interval(far, **call)
    predicted, std = model.predict(far, return_std=True, **call)
    assert (model.model.predict(far, **call) < low).any()
    assert ((low <= predicted) & (predicted <= high)).all()
    np.testing.assert_array_equal(predicted, model.predict(far, **call))
    assert std.shape == (50,)


def test_predictions_of_tables_lie_in_their_intervals():
    X, y, task = _grades()
    rows = pd.DataFrame({"pupil": task, "hours": X[:, 0], "grade": y})
    linear = cm.ConditionalRidge(x_transform=None, y_transform=None)
    model = cm.TableModel(linear, task="pupil", target="grade", intervals=True).fit(rows)
    with pytest.warns(UserWarning, match="far outside the training range"):
        found = model.predict_frame(rows.assign(hours=3 * rows["hours"]), coverage=0.9)
    assert found["prediction"].between(found["lower"], found["upper"]).all()
