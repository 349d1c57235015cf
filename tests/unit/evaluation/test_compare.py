"""compare: errors on held-out tasks, an honest choice among them, and what to use."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import condmeta as cm
from condmeta.errors import DataError
from condmeta.evaluation.compare import _with_choice
from condmeta.evaluation.comparison import Comparison, by_task
from condmeta.learners.held_out import HeldOutAnswers, hold_out
from condmeta.meta.criteria import CRITERIA

FIXED = {"metric": "diagonal", "noise": "shared", "kappa": 1.0}


def draw(n_tasks=80, n=8, effect=1.5, spread=0.5, bend=0.0, seed=0):
    """Return a long table and a table of tasks."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n_tasks)
    w = effect * size[:, None] * [1.0, -1.0] + spread * rng.normal(size=(n_tasks, 2))
    task = np.repeat(np.arange(n_tasks), n)
    X = rng.uniform(-2, 2, size=(len(task), 2))
    f = np.einsum("ij,ij->i", X, w[task]) + bend * np.sin(3 * X[:, 0])
    ids = np.array([f"s{i}" for i in range(n_tasks)])
    rows = pd.DataFrame(
        {"store": ids[task], "a": X[:, 0], "b": X[:, 1], "y": f + 0.3 * rng.normal(size=len(f))}
    )
    rows["bought"] = np.where(rng.random(len(f)) < 1 / (1 + np.exp(-f)), "yes", "no")
    return rows, pd.DataFrame({"store": ids, "size": size})


def run(rows, stores, target="y", **options):
    return cm.compare(
        rows[["a", "b"]], rows[target], task=rows["store"], side_info=stores, **options
    )


def test_learners_and_plain_alternatives_at_every_number_of_points():
    found = run(*draw(), shots=(0, 3, 50))
    assert found.names == [
        "own data", "pooled", "unconditional", "conditional", "unconditional on base",
        "conditional on base", "task mean on base", "constant on base", "auto",
    ]  # fmt: skip
    assert found.shots == [0, 3]  # no task has more than 50 points
    frame = found.frame
    assert isinstance(frame, pd.DataFrame)
    assert frame["n_tasks"].tolist() == [80] * 18
    assert frame["n_rows"].tolist() == [640] * 9 + [400] * 9
    assert found.best[0] in ("conditional", "auto")
    assert (frame.groupby("shot")["behind"].min() == 0).all()
    told = frame.set_index(["shot", "learner"])["error"]
    assert told[0, "conditional"] < 0.6 * told[0, "unconditional"]


def test_weights_count_where_rows_judge():
    rows, stores = draw(30)
    twice = np.tile([1.0, 2.0], 120)
    own = {"pooled": cm.PooledRegressor(lam=0.1), "ridge": cm.ConditionalRidge(None, **FIXED)}
    found = run(rows, stores, learners=own, shots=(0,), sample_weight=twice)
    trial = found.trials[0]
    assert (trial.weight == twice[trial.row]).all()
    losses = np.abs(trial.answers - trial.y[:, None])
    assert found.errors[0] == pytest.approx(np.average(losses, axis=0, weights=trial.weight))
    again = np.repeat(np.arange(len(trial.y)), trial.weight.astype(int))
    expected = by_task(losses[again], trial.task[again])
    assert found.frame["se"].to_numpy() == pytest.approx(expected)
    by_default = run(rows, stores, shots=(0,), base=None, sample_weight=twice)
    assert by_default.names[-1] == "auto"
    assert by_default.gains[0].gain > 0.3


def test_errors_are_those_of_a_plain_loop():
    rows, _ = draw(30)
    tasks = cm.TaskSet.from_frame(rows[["store", "a", "b", "y"]], task="store", target="y")
    learner = cm.PooledRegressor(lam=0.1)
    found = cm.compare(tasks, learners={"pooled": learner}, shots=(2,), order="first")
    (trial,) = hold_out({"pooled": learner}, tasks, None, (2,), "first", 0)
    off = np.abs(trial.answers[:, 0] - trial.y)
    row = found.frame
    np.testing.assert_allclose(row["error"], off.mean())
    means = off.reshape(30, 6).mean(axis=1)  # tasks of equal size: the textbook standard error
    np.testing.assert_allclose(row["se"], means.std(ddof=1) / np.sqrt(30))
    assert found.model.predict(tasks).shape == (240,)


def test_the_choice_is_made_by_other_tasks():
    # The first candidate is right in fold 0 alone, the second in fold 1 alone.
    task, fold = np.repeat(np.arange(4), 5), np.array([0, 0, 1, 1])
    y = np.zeros(20)
    right = np.column_stack([fold[task] != 0, fold[task] != 1]).astype(float)
    trial = HeldOutAnswers(0, np.arange(4), fold, task, np.arange(20), y, right)
    said = _with_choice(trial, CRITERIA["absolute"], None).answers[:, 2]
    assert said.tolist() == [1.0] * 20  # either fold gets what was right in the other


def test_the_advice_names_the_simplest_that_is_not_behind():
    found = run(*draw(), shots=(0, 3))
    assert found.advice == (
        "Use ConditionalRidge(): the best on held-out tasks, or within noise of it, at every "
        "number of points (0, 3)."
    )
    assert isinstance(found.model, cm.ConditionalRidge)
    assert found.advantage.pays
    assert found.side_sentence.startswith("Side information explains ")
    assert "at 0 points" in repr(found)


@pytest.mark.parametrize(
    ("errors", "advised"),
    [
        ({"unconditional": 1.0, "conditional": 1.0}, "unconditional"),
        ({"unconditional": 1.009, "conditional": 1.0}, "unconditional"),
        ({"unconditional": 1.5, "conditional": 1.0}, "conditional"),
        ({"task mean on base": 1.005, "conditional on base": 1.0, "auto": 0.998},
         "task mean on base"),
        ({"conditional": 1.3, "conditional on base": 1.2, "auto": 1.0}, "auto"),
        ({"mine": 1.0, "yours": 1.009}, "mine"),
    ],
)  # fmt: skip
def test_of_learners_that_differ_by_nothing_the_simplest_is_advised(errors, advised):
    task = np.repeat(np.arange(20), 5)
    answers = np.tile(list(errors.values()), (100, 1))
    ids, rows = np.arange(20), np.arange(100)
    trial = HeldOutAnswers(0, ids, ids % 5, task, rows, np.zeros(100), answers)
    models = dict.fromkeys(errors)
    found = Comparison(
        list(errors), models, [trial], CRITERIA["absolute"], None, [], None, "random", None
    )
    assert found.advised == advised


def test_the_advice_has_a_base_where_that_is_best():
    found = run(*draw(160, bend=4.0, spread=0.1, effect=0.1), shots=(0, 5))
    assert found.call in (
        'ConditionalRidge(base="boosting")',
        'ConditionalRidge(feature_map=None, base="boosting")',
        "AutoRegressor()",
    )
    assert found.advice.startswith(f"Use {found.call}: ")


def test_two_values_are_classes():
    rows, stores = draw(60)
    found = run(rows, stores, "bought", shots=(0, 3), base=None)
    assert found.names == ["own data", "pooled", "unconditional", "conditional", "auto"]
    assert found.criterion.title == "log loss"
    assert set(found.model.predict(rows[["a", "b"]], task=rows["store"])) == {"yes", "no"}
    assert found.side_sentence.startswith("Side information pays: on new tasks it cuts the error")
    own = {"pooled": cm.PooledClassifier()}
    given = run(rows, stores, "bought", shots=(3,), learners=own)
    at = found.names.index("pooled")
    assert given.errors[0, 0] == pytest.approx(found.errors[1, at], rel=0.02)
    assert set(given.model.predict(rows[["a", "b"]], task=rows["store"])) <= {"yes", "no"}


def test_classes_on_a_base():
    found = run(*draw(100, bend=6.0, spread=0.1, effect=0.1), "bought", shots=(0, 5))
    assert found.names == [
        "own data", "pooled", "unconditional", "conditional", "unconditional on base",
        "conditional on base", "auto",
    ]  # fmt: skip
    assert found.errors[:, 4:].max() < 0.9 * found.errors[:, :4].min()
    assert found.call in (
        'ConditionalLogistic(base="boosting")',
        'ConditionalLogistic(feature_map=None, base="boosting")',
        "AutoClassifier()",
    )


def test_without_side_information():
    rows, _ = draw(40)
    found = cm.compare(rows[["a", "b"]], rows["y"], task=rows["store"], base=None, shots=(0, 3))
    assert found.names == ["own data", "pooled", "unconditional", "auto"]
    assert (found.advantage, found.gains, found.side_sentence) == (None, [], "")


def test_progress_is_told():
    told = []
    run(*draw(30), shots=(0,), base=None, progress=told.append)
    assert told[0] == "fitting: own data"
    assert "fold 5 of 5: tasks held out" in told


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"learners": {}}, "must be a dict of name -> learner"),
        ({"learners": {"x": object()}}, "'x' cannot be compared: it needs fit, adapt"),
        ({"learners": {"x": cm.PooledClassifier()}}, "needs regressors; 'x' is a PooledClassifier"),
        ({"order": "day"}, "'order' parameter must be 'random' or 'first'"),
        ({"criterion": "log"}, "must be one of 'absolute', 'squared'"),
        ({"shots": ()}, "'shots' parameter must hold at least one int of at least 0"),
        ({"shots": (100,)}, "needs 10 with more than 100 points. There are 0"),
    ],
)
def test_bad_calls(change, sentence):
    with pytest.raises(DataError, match=sentence):
        run(*draw(20), **change)


def test_task_may_be_the_name_of_a_column():
    rows, stores = draw(20)
    options = {"side_info": stores, "shots": (0,), "base": None}
    named = cm.compare(rows[["store", "a", "b"]], rows["y"], task="store", **options)
    given = cm.compare(rows[["a", "b"]], rows["y"], task=rows["store"], **options)
    assert np.array_equal(named.errors, given.errors)


def test_bad_targets():
    rows, stores = draw(20)
    rows["colour"] = "red"
    with pytest.raises(
        DataError, match=r"y holds the single class \['red'\]: classifiers need at least"
    ):
        run(rows, stores, "colour")
    for target, gap in (("y", np.nan), ("bought", None)):
        gaps = rows.assign(**{target: rows[target].mask(rows.index == 7, gap)})
        with pytest.raises(DataError, match="Row 7 has NaN in y: fill it or drop the row"):
            run(gaps, stores, target)
    few = rows[rows["store"].isin(["s1", "s2"])]
    with pytest.raises(DataError, match=r"needs 10 with more than 0 points\. There are 2"):
        run(few, None)


def test_standard_errors_by_task():
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(50), 4)
    losses = np.column_stack([np.repeat(rng.normal(size=50), 4), rng.normal(size=200)])
    se = by_task(losses, task)
    assert se[0] == pytest.approx(losses[::4, 0].std(ddof=1) / np.sqrt(50))
    assert se[1] == pytest.approx(1 / np.sqrt(200), rel=0.2)
    assert np.isinf(by_task(losses[:4], task[:4])).all()
