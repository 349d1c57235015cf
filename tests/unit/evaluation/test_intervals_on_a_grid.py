"""Intervals of counts and grades: labels on a grid, many of them at its end."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from scipy.stats import nbinom

import condmeta as cm
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
