import numpy as np
import pandas as pd
import pytest

import condmeta as cm
from condmeta.errors import DataError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ [1.0, -2.0, 0.5] + RNG.normal(size=60)
TASK = np.repeat([f"t{i}" for i in range(12)], 5)
TASKS = cm.TaskSet.from_arrays(X, Y, TASK)


def test_folds_hold_out_every_task_once():
    held = []
    for train, support, query in cm.TaskSplit(4, random_state=1).split(TASKS):
        assert support.ids.tolist() == query.ids.tolist()
        assert not set(train.ids) & set(query.ids)
        assert len(train) + len(query) == 12
        np.testing.assert_array_equal(support.sizes + query.sizes, 5)
        held += query.ids.tolist()
    assert sorted(held) == sorted(TASKS.ids)


def test_held_out_counts_and_shares():
    for held_out, count in ((3, 3), (0.25, 3), (0.5, 6)):
        folds = list(cm.TaskSplit(2, held_out=held_out, random_state=0).split(TASKS))
        assert [len(fold.query) for fold in folds] == [count, count]
        assert folds[0].query.ids.tolist() != folds[1].query.ids.tolist()


def test_first_points_are_the_support():
    (fold,) = cm.TaskSplit(1, held_out=2, support=2, order="first", random_state=0).split(TASKS)
    for task in fold.support.ids:
        rows = np.flatnonzero(task == TASK)
        np.testing.assert_array_equal(fold.support[fold.support.position(task)].X, X[rows[:2]])
        np.testing.assert_array_equal(fold.query[fold.query.position(task)].X, X[rows[2:]])


def test_seed_decides_the_split():
    first, again, other = (
        [fold.query.ids.tolist() for fold in cm.TaskSplit(3, random_state=seed).split(TASKS)]
        for seed in (7, 7, 8)
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("split", "sentence"),
    [
        (cm.TaskSplit(13), r"'n_splits' parameter of TaskSplit must be an int in \[2, 12\]"),
        (cm.TaskSplit(1), r"Got 1 instead"),
        (cm.TaskSplit(1, held_out=12), "must leave tasks on both sides: 12 tasks"),
        (cm.TaskSplit(2, support=5), "no held-out task has a point left to judge by"),
    ],
)
def test_splits_that_cannot_be(split, sentence):
    with pytest.raises(DataError, match=sentence):
        list(split.split(TASKS))


def test_cross_validate_tasks_judges_every_task_as_by_hand():
    learner = cm.FixedBiasRegressor(theta=[1.0, -2.0, 0.5], inner="batch", lam=0.3)
    split = cm.TaskSplit(3, support=2, random_state=0)
    table = cm.cross_validate_tasks(learner, TASKS, split=split)
    assert sorted(table["task"]) == sorted(TASKS.ids)
    errors = dict(zip(table["task"], table["error"], strict=True))
    for train, support, query in split.split(TASKS):
        learner.fit(train)
        for (Xs, ys, task, *_), (Xq, yq, *_) in zip(support, query, strict=True):
            model = learner.adapt(Xs, ys)
            assert errors[task] == pytest.approx(np.mean(np.abs(model.predict(Xq) - yq)))


def test_cross_validate_tasks_takes_frames_and_gives_them_back():
    frame = pd.DataFrame(X, columns=list("abc"))
    table = cm.cross_validate_tasks(
        cm.PooledRegressor(lam=1.0), frame, Y, task=pd.Series(TASK, name="store"), split=3
    )
    assert isinstance(table, pd.DataFrame)
    assert list(table.columns) == ["fold", "store", "n_support", "n_query", "error"]
    with pytest.raises(DataError, match="pass it alone"):
        cm.cross_validate_tasks(cm.PooledRegressor(), TASKS, Y)
