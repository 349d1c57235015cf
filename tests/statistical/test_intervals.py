"""Intervals cover 90 % of the labels of new tasks, within 2 points and two standard errors."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import condmeta as cm
from condmeta.feature_maps import CircleMap, MeanInput

SHOTS = (0, 1, 5, 20)
QUICK = {"metric": "identity", "noise": "shared"}
FOLDER = Path(os.environ.get("CONDMETA_DATA", "no such folder"))


def check(learner, train, test):
    calibrated = cm.calibrate(learner, train, shots=SHOTS)
    for m in SHOTS:
        judged = test.subset(np.flatnonzero(test.sizes >= m + 4))
        if not len(judged):
            continue
        support, query = judged.split_points(m, "random", 0)
        low, high = calibrated.adapt(support).predict_interval(query)
        hit = (low <= query.restore_order(query.y)) & (query.restore_order(query.y) <= high)
        task = query.restore_order(np.repeat(np.arange(len(query)), query.sizes))
        by_task = np.bincount(task, hit, len(query)) / query.sizes
        slack = 0.02 + 2 * by_task.std() / np.sqrt(len(by_task))
        assert abs(by_task.mean() - 0.9) <= slack, f"{learner}, {m} points: {by_task.mean():.3f}"


@pytest.mark.parametrize(
    ("name", "feature_map"),
    [("one-cluster", MeanInput()), ("two-clusters-mean-0", MeanInput()), ("circle", CircleMap())],
)
def test_on_the_papers_environments(name, feature_map):
    environment = cm.environments.paper_environment(name, n=26)
    train, test = environment.sample(200, 0), environment.sample(300, 1)
    check(cm.ConditionalRidge(feature_map, **QUICK), train, test)
    check(cm.PooledRegressor(), train, test)


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["lenk", "schools"])
def test_on_real_tasks(name):
    file = {"lenk": "lenk_data.mat", "schools": "schoolData.mat"}[name]
    if not (FOLDER / file).exists():
        pytest.skip("CONDMETA_DATA names no folder with the data")
    options = {"lenk": {"constant": False}, "schools": {}}[name]
    tasks = getattr(cm.datasets, f"load_{name}")(**options)
    train, test = tasks.split_tasks(0.6, random_state=0)
    check(cm.ConditionalRidge(**QUICK), train, test)
    check(cm.PooledRegressor(), train, test)
