"""R and K of tasks: by hand, where sizes, inputs and features differ."""

import numpy as np
import pytest

from condmeta.tasks import TaskSet
from condmeta.theory import radii

X = [[3.0, 4.0], [0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 2.0]]
TASKS = TaskSet.from_arrays(X, np.zeros(5), task=["a", "a", "b", "c", "c"])
PHI = np.array([[1.0], [2.0], [0.5]])


def test_rms_averages_points_in_tasks_and_then_tasks():
    means = np.array([12.5, 1.0, 4.0])
    R, K = radii(TASKS, PHI)
    assert pytest.approx(means.mean()) == R**2
    assert pytest.approx(np.mean(means * [1.0, 4.0, 0.25]) / means.mean()) == K**2


def test_max_takes_the_largest_norms():
    assert radii(TASKS, PHI, how="max") == (5.0, 2.0)


def test_a_scale_of_features_or_inputs_is_a_scale_of_its_radius():
    scaled = TaskSet.from_arrays(7 * np.array(X), np.zeros(5), task=["a", "a", "b", "c", "c"])
    np.testing.assert_allclose(radii(scaled, 3 * PHI), np.multiply(radii(TASKS, PHI), [7, 3]))
