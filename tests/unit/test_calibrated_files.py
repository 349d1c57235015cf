"""The calibration of intervals is part of the file."""

from __future__ import annotations

import numpy as np
import pytest

import condmeta as cm
from condmeta.persistence import read_card

TASKS, FRESH = (
    cm.environments.Circle(d=2, n=8)
    .sample(60, random_state=0)
    .split_tasks((40, 20), random_state=0)
)


@pytest.mark.parametrize("learner", [cm.ConditionalRidge(), cm.PooledRegressor(lam=1.0)])
def test_intervals_survive_the_file(tmp_path, learner):
    calibrated = cm.calibrate(learner, TASKS, shots=(0, 2))
    calibrated.save(tmp_path / "m.condmeta")
    again = cm.load(tmp_path / "m.condmeta")
    assert isinstance(again, cm.Calibrated)
    assert again.n_tasks_calibrated_ == {0: 40, 2: 40}
    for tasks in (FRESH, TASKS):
        for mine, theirs in zip(
            again.predict_interval(tasks), calibrated.predict_interval(tasks), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)
    support, query = FRESH.split_points(3, random_state=0)
    mine = again.adapt(support).predict_interval(query)
    np.testing.assert_array_equal(mine, calibrated.adapt(support).predict_interval(query))
    again.update(TASKS[:1])
    assert read_card(tmp_path / "m.condmeta")["tasks_calibrated"] == {"0": 40, "2": 40}


def test_a_calibration_of_an_earlier_version_is_symmetric(tmp_path):
    """It holds scores alone, without their side: widths are in units of the deviation."""
    calibrated = cm.calibrate(cm.ConditionalRidge(), TASKS, shots=(0,))
    old = calibrated.calibration.scores[0]._replace(above=None)
    vars(calibrated.calibration).clear()
    calibrated.calibration.scores = {0: old}
    calibrated.save(tmp_path / "m.condmeta")
    again = cm.load(tmp_path / "m.condmeta")
    predicted, std = again.model.predict(FRESH, return_std=True)
    low, high = again.predict_interval(FRESH)
    np.testing.assert_allclose(high - predicted, std * old.quantile(0.9))
    np.testing.assert_allclose(predicted - low, std * old.quantile(0.9))
