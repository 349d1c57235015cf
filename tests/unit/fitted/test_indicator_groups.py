"""Groups of indicators are categories to trees."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

import condmeta as cm
from condmeta.fitted import boosting
from condmeta.fitted.boosted_trees import BoostedTrees
from condmeta.fitted.boosting import BoostingRows, fit_boosting
from condmeta.fitted.indicator_groups import CategorySplits, IndicatorGroups
from condmeta.fitted.shared_model import fit_shared_model
from condmeta.persistence.fields import InvalidFieldError
from condmeta.persistence.registry import find_by_class
from condmeta.tasks import TaskSet, TaskTable

LEVELS = 12
RNG = np.random.default_rng(0)
LEVEL = RNG.integers(LEVELS, size=900)
NUMBER = RNG.normal(size=900)
EFFECT = RNG.normal(size=LEVELS)
MEAN = EFFECT[LEVEL] * (1 + (NUMBER > 0))
Y = MEAN + 0.3 * RNG.normal(size=900)
ONE_HOT = np.eye(LEVELS)[LEVEL]
Z = np.column_stack([NUMBER, ONE_HOT[:, 1:]])  # the first level has no indicator


def test_indicators_that_exclude_each_other_are_one_category():
    both = np.column_stack([NUMBER > 0, Z, NUMBER > 1, NUMBER > 0.5]).astype(float)
    groups = IndicatorGroups.learn(both)
    np.testing.assert_array_equal(groups.group, [-1, -1, *[0] * (LEVELS - 1), -1, -1])
    np.testing.assert_array_equal(groups.apply(both)[:, 0], LEVEL)
    np.testing.assert_array_equal(groups.apply(both)[:, 1:], both[:, groups.group < 0])
    scaled = IndicatorGroups.learn((both - both.mean(axis=0)) / both.std(axis=0))
    np.testing.assert_array_equal(scaled.group, groups.group)
    assert IndicatorGroups.learn(RNG.normal(size=(50, 3))).count == 0


def test_no_category_has_more_levels_than_trees_take(monkeypatch):
    monkeypatch.setattr("condmeta.fitted.indicator_groups.MOST_LEVELS", 5)
    assert np.bincount(IndicatorGroups.learn(ONE_HOT).group).tolist() == [5, 5, 2]


@pytest.mark.parametrize("seen", [slice(None), LEVEL > 3])
def test_trees_as_arrays_split_levels_as_scikit_learn_does(seen):
    groups = IndicatorGroups.learn(Z)
    coded = groups.apply(Z)
    model = HistGradientBoostingRegressor(
        max_iter=20, categorical_features=[0], random_state=0
    ).fit(coded[seen], Y[seen])
    found = BoostedTrees.of(model, groups=groups).predict(Z)
    assert np.array_equal(found, model.predict(coded))  # also of levels not seen


def test_categories_need_fewer_splits(monkeypatch):
    task = np.repeat(np.arange(90), 10)
    rows = BoostingRows(Z, Y, None, task, task % 5)
    _, unseen = fit_boosting(rows, "squared")
    monkeypatch.setattr(
        boosting.IndicatorGroups, "learn", lambda Z: IndicatorGroups(np.full(Z.shape[1], -1), Z[0])
    )
    _, one_hot = fit_boosting(rows, "squared")
    assert np.mean((unseen - MEAN) ** 2) < 0.7 * np.mean((one_hot - MEAN) ** 2)


def _tasks(order=slice(None), rows=slice(None)):
    """Return 45 tasks of 20 rows with a category as side information, in other orders."""
    number = np.arange(45)[order]
    at = (20 * number[:, None] + np.arange(20)[rows]).ravel()
    offsets = np.arange(0, 901, 20)
    side = TaskTable({"kind": [f"k{n % 7}" for n in number]}, ids=number)
    y = Y + EFFECT[np.repeat(np.arange(45) % 7, 20)]
    return TaskSet(Z[at], y[at], offsets, number, side), at


def test_a_shared_model_has_the_same_bits_in_any_order():
    tasks, _ = _tasks()
    found = fit_shared_model("boosting", tasks, False, "absolute")
    other, at = _tasks(RNG.permutation(45), RNG.permutation(20))
    again = fit_shared_model("boosting", other, False, "absolute")
    assert np.array_equal(again.unseen, found.unseen[at])
    assert np.array_equal(again.model.model.value, found.model.model.value)


def test_a_file_keeps_categories(tmp_path):
    tasks, _ = _tasks()
    learner = cm.ConditionalRidge(base="boosting").fit(tasks)
    assert learner.fitted_.predictor.shared.model.splits.groups.count == 2
    learner.save(tmp_path / "m.condmeta")
    assert np.array_equal(cm.load(tmp_path / "m.condmeta").predict(tasks), learner.predict(tasks))


@pytest.mark.parametrize(
    ("field", "wrong", "names"),
    [
        ("chosen", np.array([0, -1, 3]), "chosen"),
        ("left", np.ones((2, 2), bool), "left"),
        ("groups", IndicatorGroups(np.array([0, 0, 0, 0, -1]), np.zeros(5)), "left"),
    ],
)
def test_splits_that_do_not_fit_are_refused(field, wrong, names):
    groups = IndicatorGroups(np.array([0, 0, -1]), np.zeros(3))
    right = CategorySplits(groups, np.array([0, -1, 1]), np.ones((2, 3), bool))
    rule = find_by_class(CategorySplits).rule
    state = right._asdict()
    rule(state, {"sets": 2, "levels": 3})
    state[field] = wrong
    with pytest.raises(InvalidFieldError, match=names):
        rule(state, {"sets": 2, "levels": state["left"].shape[1]})
