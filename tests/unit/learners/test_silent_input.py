"""Input that used to be read as something else, without a word."""

import numpy as np
import pytest

import condmeta as cm
from condmeta.errors import DataError

X = np.random.default_rng(0).normal(size=(10, 2))
Y, TASK = X[:, 0], np.repeat([0, 1], 5)
MASKED_X = np.ma.masked_array(X, mask=np.arange(20).reshape(10, 2) == 3)
MASKED_Y = np.ma.masked_array(Y, mask=np.arange(10) == 3)


def pooled():
    return cm.PooledRegressor(lam=1.0)


@pytest.mark.parametrize(
    ("what", "call"),
    {
        "X": lambda: pooled().fit(MASKED_X, Y, task=TASK),
        "y": lambda: pooled().fit(X, MASKED_Y, task=TASK),
        "sample_weight": lambda: pooled().fit(X, Y, task=TASK, sample_weight=MASKED_Y**2),
        "offset": lambda: cm.ConditionalRidge().fit(X, Y, task=TASK, offset=MASKED_Y),
        "The task column": lambda: pooled().fit(X, Y, task=np.ma.masked_equal(TASK, 1)),
    }.items(),
)
def test_masked_values_are_refused(what, call):
    match = f"^{what} has masked values, and condmeta does not read masks: fill them, or drop"
    with pytest.raises(DataError, match=match):
        call()


def test_masked_rows_are_refused_everywhere():
    model = pooled().fit(X, Y, task=TASK)
    for call in (
        lambda: model.predict(MASKED_X, task=TASK),
        lambda: model.adapt(MASKED_X, Y),
        lambda: model.adapt(X, Y).predict(MASKED_X),
        lambda: cm.TaskSet.from_arrays(MASKED_X, Y, TASK),
        lambda: cm.TaskSet.from_arrays(X, MASKED_Y, TASK),
        lambda: pooled().fit(list(MASKED_X), Y, task=TASK),
        lambda: cm.TaskTable(MASKED_X, ids=range(10)),
    ):
        with pytest.raises(DataError, match="masked values"):
            call()


def test_a_mask_that_hides_nothing_is_fine():
    model = pooled().fit(np.ma.masked_array(X), np.ma.masked_array(Y), task=TASK)
    np.testing.assert_array_equal(
        model.predict(X, task=TASK), pooled().fit(X, Y, task=TASK).predict(X, task=TASK)
    )


@pytest.mark.parametrize(("dtype", "holds"), [("M8[s]", "dates"), ("m8[s]", "durations")])
def test_times_are_no_numbers(dtype, holds):
    times = (1e6 * X).astype(dtype)
    model = pooled().fit(X, Y, task=TASK)
    for call in (
        lambda: pooled().fit(times, Y, task=TASK),
        lambda: model.predict(times, task=TASK),
        lambda: model.adapt(times, Y),
        lambda: model.adapt(X, Y).predict(times),
    ):
        with pytest.raises(DataError, match=f"Feature 0 of X holds {holds}; X must be numeric"):
            call()
    with pytest.raises(DataError, match=f"y holds {holds}; y must be numeric"):
        pooled().fit(X, times[:, 0], task=TASK)


@pytest.mark.parametrize("unit", ["D", "ns"])
def test_durations_among_objects_are_no_numbers(unit):
    waits = np.array([np.timedelta64(t, unit) for t in range(9)] + [None], dtype=object)
    side = {task: {"wait": wait} for task, wait in zip(range(10), waits, strict=True)}
    with pytest.raises(DataError, match="y holds objects"):
        pooled().fit(X, waits, task=TASK)
    with pytest.raises(DataError, match="Side column 'wait' holds durations: turn it into"):
        cm.ConditionalRidge().fit(X, Y, task=TASK, side_info=side)


@pytest.mark.parametrize("pair", [(3, "3"), (3.0, "3"), (("a", 3), ("a", "3"))], ids=str)
def test_ids_that_differ_by_type_alone_are_refused(pair):
    ids = list(pair) * 5
    match = "differ by their type alone: convert the ids to one type"
    for call in (
        lambda: pooled().fit(X, Y, task=ids),
        lambda: cm.TaskSet.from_arrays(X, Y, ids),
        lambda: cm.TaskTable([[1.0], [2.0]], ids=list(pair)),
    ):
        with pytest.raises(DataError, match=match):
            call()


def test_ids_of_several_types_are_fine():
    assert pooled().fit(X, Y, task=[3, "4"] * 5).n_tasks_ == 2


def test_the_search_over_lam_is_deterministic():
    rng = np.random.default_rng(0)
    rows, task = rng.normal(size=(160, 2)), np.repeat(np.arange(40), 4)
    y = rows[:, 0] * rng.normal(size=40)[task] + rng.normal(size=160)
    found = [cm.ConditionalSGDRegressorCV().fit(rows, y, task=task).lam_ for _ in range(4)]
    assert len(set(found)) == 1
