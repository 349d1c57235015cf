"""Calibration: no task is judged by a fit that saw it, and intervals are those of the scores."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

import condmeta as cm
from condmeta.meta.conformal import Calibration
from condmeta.meta.error_scale import HeldOut


class Models(NamedTuple):
    """Tasks that were adapted, and those that the fit had seen."""

    ids: set
    seen: set

    def predict(self, X, *, task):
        assert not self.seen & set(task), "a task is judged by a fit that saw it"
        return np.zeros(len(X))


class Witness(RegressorMixin, BaseEstimator):
    """A learner that remembers the tasks that it was fitted to."""

    def fit(self, tasks):
        self.seen_ = set(tasks.ids.tolist())
        return self

    def adapt(self, tasks):
        return Models(set(tasks.ids.tolist()), self.seen_)

    def predict(self, X, *, task=None, side_info=None):
        return np.zeros(len(X))

    def n_points(self, X, **given):
        return np.zeros(len(X), int)


def draw(T=20, n=4):
    rng = np.random.default_rng(0)
    return cm.TaskSet.from_arrays(
        rng.normal(size=(T * n, 1)), rng.normal(size=T * n), np.repeat(np.arange(T), n)
    )


def test_no_task_is_judged_by_a_fit_that_saw_it():
    tasks = draw()
    found = cm.calibrate(Witness(), tasks, shots=(0, 2))
    assert found.n_tasks_calibrated_ == {0: 20, 2: 20}
    # All errors are |y|: the half-width is the quantile of |y| at the level of 20 tasks.
    level = found.calibration.scores[0].level(0.5)
    low, high = found.predict_interval(np.zeros((1, 1)), coverage=0.5)
    q = np.sort(np.abs(tasks.y))[int(np.ceil(level * 80 - 1e-9)) - 1]
    assert (low[0], high[0]) == pytest.approx((-q, q))


def test_levels_that_a_fold_has_not_seen_are_no_news():
    tasks = draw()
    kind = {t: {"kind": "rare" if t == 7 else "usual"} for t in range(20)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ids = np.repeat(tasks.ids, tasks.sizes)
        cm.calibrate(cm.ConditionalRidge(), tasks.X, tasks.y, task=ids, side_info=kind, shots=(0,))
        cm.advantage(tasks.X, tasks.y, task=ids, side_info=kind, shots=(0,))


def test_intervals_of_few_tasks_are_multiples_of_the_standard_deviation():
    tasks = cm.environments.Circle(d=2, n=6).sample(18, random_state=0)
    found = cm.calibrate(cm.ConditionalRidge(), tasks, shots=(0, 2))
    predicted, std = found.model.predict(tasks, return_std=True)
    low, high = found.predict_interval(tasks, coverage=0.8)
    width = found.calibration.scores[2].quantile(0.8)
    np.testing.assert_allclose(high - predicted, width * std)
    np.testing.assert_allclose(predicted - low, width * std)
    assert np.ptp(std) > 0.1 * std.mean()


def test_a_number_of_points_has_its_own_width():
    one = np.ones(12)
    few, many = (HeldOut(np.full(12, r), 0 * one, one, one, np.arange(12)) for r in (5.0, 1.0))
    n = np.array([0, 3, 4, 9])
    low, high = Calibration({0: few, 4: many}).interval(np.arange(4.0), np.ones(4), n, 0.5)
    assert (np.arange(4) - low).tolist() == [5.0, 5.0, 1.0, 1.0]
    assert (high - np.arange(4)).tolist() == [5.0, 5.0, 1.0, 1.0]
