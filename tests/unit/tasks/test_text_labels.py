"""Targets that are names of classes, from a table to a saved classifier."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import condmeta as cm
from condmeta.errors import DataError

rng = np.random.default_rng(0)
T, N = 20, 8
TASK = np.repeat(np.arange(T), N)
SIDE = rng.normal(size=T)
X = rng.normal(size=(T * N, 2))
Y = np.where(X[:, 0] + SIDE[TASK] + 0.3 * rng.normal(size=T * N) > 0, "yes", "no")
FRAME = pd.DataFrame({"shop": TASK, "a": X[:, 0], "b": X[:, 1], "size": SIDE[TASK], "bought": Y})
TASKS = cm.TaskSet.from_frame(FRAME, "shop", "bought", side=["size"])
CLASSIFIERS = [
    cm.ConditionalLogistic(), cm.ConditionalSGDClassifier(), cm.PooledClassifier(),
    cm.IndependentClassifier(), cm.AutoClassifier(base=None),
]  # fmt: skip


def test_all_ways_to_make_a_set_hold_the_names():
    table = cm.TaskTable({"size": SIDE}, ids=range(T))
    arrays = cm.TaskSet.from_arrays(X, Y, TASK, table)
    parts = cm.TaskSet.from_tasks([(X[t == TASK], Y[t == TASK].tolist()) for t in range(T)])
    other = cm.TaskSet.from_frame(pl.from_pandas(FRAME), "shop", "bought", side=["size"])
    for tasks in (TASKS, arrays, parts, other):
        assert tasks.y.tolist() == Y.tolist()
    assert arrays[2].y.tolist() == Y[TASK == 2].tolist()


def test_splits_and_tables_keep_them():
    support, query = TASKS.split_points(3, random_state=0)
    assert set(support.y) == {"yes", "no"}
    assert len(support.y) + len(query.y) == len(Y)
    first, rest = TASKS.split_tasks(5, random_state=0)
    assert len(first.y) + len(rest.y) == len(Y)
    pd.testing.assert_frame_equal(TASKS.to_frame(side=True)[FRAME.columns], FRAME)


@pytest.mark.parametrize("learner", CLASSIFIERS, ids=lambda one: type(one).__name__)
def test_classifiers_fit_adapt_and_are_saved(learner, tmp_path):
    model = learner.fit(TASKS)
    by_arrays = type(learner)(**learner.get_params()).fit(
        FRAME[["a", "b"]], Y, task=FRAME["shop"], side_info=TASKS.side
    )
    expected = by_arrays.predict(FRAME[["a", "b"]], task=FRAME["shop"])
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.predict(TASKS).tolist() == expected.tolist()
    adapted = model.adapt(TASKS).predict(FRAME[["a", "b"]], task=FRAME["shop"])
    assert set(adapted) <= {"no", "yes"}
    model.save(tmp_path / "a.condmeta")
    again = cm.load(tmp_path / "a.condmeta")
    assert again.predict(TASKS).tolist() == expected.tolist()


def test_tools_read_them():
    found = cm.compare(TASKS, shots=(0, 2), base=None)
    assert found.positive == "yes"
    assert "yes" in found.to_html()
    model = cm.ConditionalLogistic().fit(TASKS)
    assert cm.check(model, TASKS).verdict == "keep"
    errors = cm.cross_validate_tasks(cm.ConditionalLogistic(), TASKS)["error"]
    assert 0 < errors.mean() < 0.3  # the share of wrong labels


@pytest.mark.parametrize("tool", ["advantage", "calibrate", "suggest"])
def test_tools_for_numbers_say_so(tool):
    call = {
        "advantage": lambda: cm.advantage(TASKS),
        "calibrate": lambda: cm.calibrate(cm.ConditionalRidge(), TASKS),
        "suggest": lambda: cm.theory.suggest(TASKS, SIDE[:, None]),
    }[tool]
    with pytest.raises(DataError, match=f"{tool} is for numbers, and the targets are classes such"):
        call()


def test_regressors_name_the_remedy():
    with pytest.raises(DataError, match=r"y holds text \('.*', \.\.\.\); .* use a classifier such"):
        cm.ConditionalRidge().fit(TASKS)


def test_gaps_and_mixtures_are_refused():
    with pytest.raises(DataError, match="y has no label in row 2: fill it or drop the row"):
        cm.TaskSet.from_arrays(X[:3], ["yes", "no", None], TASK[:3])
    with pytest.raises(DataError, match=r"Column 'bought' mixes text and numbers \('no' and 1\)"):
        cm.TaskSet.from_frame(FRAME[:2].assign(bought=["no", 1]), "shop", "bought")
    with pytest.raises(DataError, match=r"y mixes text and numbers \('no' and 1\.0\)"):
        cm.TaskSet.from_tasks([(X[:1], ["no"]), (X[1:2], [1.0])])
