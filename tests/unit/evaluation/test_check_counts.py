"""`check` of counts and ordered classes: new labels of the same model are kept, others are not."""

from __future__ import annotations

import numpy as np
import pytest

import condmeta as cm
from condmeta.evaluation.drawn_labels import deviance
from condmeta.tasks.weights import Weighted

N_TASKS, N = 150, 8


@pytest.fixture(scope="module")
def setting():
    """Return X, task, exposure, side table, and a function that draws counts."""
    rng = np.random.default_rng(0)
    s, task = rng.normal(size=N_TASKS), np.repeat(np.arange(N_TASKS), N)
    X, exposure = rng.normal(size=(len(task), 1)), rng.uniform(0.5, 3.0, size=len(task))
    level = 1 + 0.5 * s + 0.4 * rng.normal(size=N_TASKS)
    mean = exposure * np.exp(level[task] + 0.3 * X[:, 0])

    def draw(seed):
        rng = np.random.default_rng(seed)
        return rng.poisson(mean * rng.gamma(2.0, 0.5, size=len(task))).astype(float)

    return X, task, exposure, cm.TaskTable({"s": s}, range(N_TASKS)), draw


def test_counts(setting):
    X, task, exposure, side, draw = setting
    model = cm.ConditionalCount(metric="diagonal", kappa=1.0)
    model.fit(X, draw(1), task=task, exposure=exposure, side_info=side)

    def report(y):
        weight = Weighted(None, exposure, "exposure")
        return cm.check(model, cm.TaskSet.from_arrays(X, y, task, side_info=side, weight=weight))

    same = report(draw(2))
    assert same.verdict == "keep"
    assert same.ground == "the model"
    assert "deviance" in same.frame.columns
    assert np.mean(np.abs(same.frame["z"]) < 2) > 0.9
    assert report(3 * draw(2)).verdict == "refit"
    broken = draw(2)
    broken[:N] = 200.0
    assert report(broken).frame["verdict"].iloc[0] != "keep"


def test_ordered_classes(setting):
    X, task, _, side, draw = setting
    classes = [np.digitize(draw(seed), [1, 4, 9]) for seed in (1, 2)]
    model = cm.ConditionalOrdinal(metric="diagonal", kappa=1.0)
    model.fit(X, classes[0], task=task, side_info=side)
    assert cm.check(model, X, classes[1], task=task).verdict == "keep"
    assert cm.check(model, X, 3 - classes[1], task=task).verdict == "refit"


def test_deviance_is_scikit_learns_at_its_limit():
    from sklearn.metrics import mean_poisson_deviance

    y, mean = np.array([0.0, 1, 5]), np.array([0.5, 2, 4])
    found = deviance(y, mean, 1e-9).mean()
    assert found == pytest.approx(mean_poisson_deviance(y, mean), abs=1e-5)
