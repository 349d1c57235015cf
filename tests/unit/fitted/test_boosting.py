"""Boosted trees as a shared model: what is chosen, on tasks that the trees did not see."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from condmeta.fitted import boosting
from condmeta.fitted.boosting import BoostingRows, TreeSetting, TreeTrial, fit_boosting

N_TASKS, N = 60, 15


def draw(f, noise, seed=0, level=0.0, weight=None):
    """Return rows of tasks with labels f(Z) + a level of each task + noise(rng, size)."""
    rng = np.random.default_rng(seed)
    Z = rng.uniform(-2, 2, size=(N_TASKS * N, 3))
    task = np.repeat(np.arange(N_TASKS), N)
    y = f(Z) + level * rng.normal(size=N_TASKS)[task] + noise(rng, len(Z))
    return BoostingRows(Z, y, weight, task, task % 5)


def bent(Z):
    return np.sin(3 * Z[:, 0]) + (Z[:, 1] > 0)


def straight(Z):
    return Z @ [1.0, -2.0, 0.5]


def normal(rng, size):
    return 0.3 * rng.normal(size=size)


def skewed(rng, size):
    return rng.exponential(size=size) ** 2


def test_a_linear_model_comes_first_where_it_is_right():
    rows = draw(straight, normal)
    model, unseen = fit_boosting(rows, "squared")
    np.testing.assert_allclose(model.line.slope, [1.0, -2.0, 0.5], atol=0.05)
    far = 10 * np.eye(3)  # trees alone are constant beyond the training range
    np.testing.assert_allclose(model.predict(far), straight(far), atol=1.0)
    assert np.mean((unseen - rows.y) ** 2) < 1.1 * 0.3**2


def test_trees_catch_what_is_bent():
    rows = draw(bent, normal)
    _, unseen = fit_boosting(rows, "squared")
    assert np.mean((unseen - rows.y) ** 2) < 2 * 0.3**2
    assert np.mean((rows.y - rows.y.mean()) ** 2) > 5 * 0.3**2


def test_the_absolute_error_asks_for_medians():
    rows = draw(straight, skewed)
    median, mean = (fit_boosting(rows, criterion)[1] for criterion in ("absolute", "squared"))
    assert np.median(rows.y - median) == pytest.approx(0, abs=0.15)
    assert np.mean(rows.y - mean) == pytest.approx(0, abs=0.15)
    assert np.abs(rows.y - median).mean() < 0.95 * np.abs(rows.y - mean).mean()


def test_predictions_of_a_task_come_from_trees_that_have_not_seen_it():
    rows = draw(bent, normal)
    trial = TreeTrial(rows, TreeSetting("squared", linear=False, leaves=8))
    trial.grow_on()
    for fold in range(5):
        left = rows.fold == fold
        trees = HistGradientBoostingRegressor(
            max_leaf_nodes=8, max_iter=trial.count, early_stopping=False, random_state=0
        )
        expected = trees.fit(rows.Z[~left], rows.y[~left]).predict(rows.Z[left])
        np.testing.assert_allclose(trial.unseen[left], expected, rtol=1e-9, atol=1e-12)


def test_the_number_of_trees_is_the_best_of_those_tried():
    rows = draw(bent, normal)
    trial = TreeTrial(rows, TreeSetting("squared", linear=False, leaves=8))
    trial.grow_on()
    assert trial.count in sum(boosting.STAGES, ())
    pure = draw(lambda Z: np.zeros(len(Z)), normal)
    assert TreeTrial(pure, TreeSetting("squared", linear=True, leaves=8)).count <= 5


def test_what_a_task_corrects_itself_does_not_decide_alone():
    """Large levels of tasks would drown what settings differ by."""
    rows = draw(bent, normal, level=20.0)
    poor, good = np.zeros(len(rows.y)), bent(rows.Z)
    plain = [np.mean((rows.y - f) ** 2) for f in (poor, good)]
    levelled = boosting._losses(np.array([poor, good]), rows, "squared") - plain
    assert levelled[1] < 0.2 * levelled[0]


def test_the_level_of_a_task_leaves_the_row_out():
    residual, task, weight = np.array([1.0, 3.0, 5.0, 0.0]), np.array([0, 0, 0, 1]), np.ones(4)
    level = boosting._level(residual, task, weight)
    ratio = (3 + 5) / level[0] - 2
    assert ratio > 0
    np.testing.assert_allclose(level[:3], np.array([8, 6, 4]) / (2 + ratio))
    assert level[3] == 0


def test_weights_repeat_rows():
    rows = draw(bent, normal)
    twice = np.where(rows.task % 2 == 0, 2, 1)
    repeated = BoostingRows(*(None if p is None else np.repeat(p, twice, axis=0) for p in rows))
    weighted = rows._replace(weight=twice.astype(float))
    one, other = (boosting.fit_line(part) for part in (weighted, repeated))
    np.testing.assert_allclose(one.slope, other.slope, rtol=1e-6)
    left, right = (boosting._losses(np.zeros((1, len(p.y))), p, "absolute")
                   for p in (weighted, repeated))  # fmt: skip
    assert left[0] == pytest.approx(right[0], rel=0.02)  # levels leave one row out, or one copy


def test_one_class_in_a_fold_is_no_tree():
    rows = draw(bent, normal)
    rows = rows._replace(y=np.where(rows.task % 5 == 0, 1.0, -1.0))  # a fold holds one class alone
    _, unseen = fit_boosting(rows, "log loss")
    assert (unseen[rows.fold == 0] == -boosting.LARGEST_LOG_ODDS).all()
    assert np.isfinite(unseen).all()


def test_settings_of_large_data_are_chosen_on_some_tasks(monkeypatch):
    rows = draw(straight, normal)
    monkeypatch.setattr(boosting, "MOST_ROWS", 500)
    few = boosting._sample(rows)
    assert 300 < len(few.y) <= 500
    assert set(few.fold) == set(range(5))
    for task in np.unique(few.task):
        assert (few.task == task).sum() == N
    model, unseen = fit_boosting(rows, "squared")
    assert len(unseen) == len(rows.y)
    assert np.mean((unseen - rows.y) ** 2) < 1.2 * 0.3**2
    assert np.mean((model.predict(rows.Z) - rows.y) ** 2) < 1.2 * 0.3**2


def test_more_trees_must_be_better(monkeypatch):
    monkeypatch.setattr(boosting, "STAGES", ((5,), (100,)))
    trial = TreeTrial(draw(lambda Z: np.zeros(len(Z)), normal), TreeSetting("squared", False, 16))
    loss = trial.loss
    trial.grow_on()
    assert trial.count == 5
    assert trial.loss == loss
