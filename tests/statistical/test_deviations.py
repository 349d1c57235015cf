"""Standard deviations of predictions hold with few tasks."""

import os
from unittest import mock

import pytest

with mock.patch.dict(os.environ):  # the package limits threads for the processes it starts
    from benchmarks.deviations import GOAL, TASKS, coverage


@pytest.mark.parametrize("n_tasks", TASKS)
def test_they_cover_with_few_tasks(n_tasks):
    ours, before = coverage(n_tasks, draws=25)
    assert GOAL[0] < ours.mean() < GOAL[1]
    assert ours.mean() > before.mean()
