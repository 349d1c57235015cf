"""Weights of rows: where they go, what is refused, and sums and medians by them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condmeta.errors import DataError
from condmeta.tasks import TaskSet
from condmeta.tasks.weights import task_sums, weighted_median

KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
SALES = {
    "store": ["b", "a", "b", "c", "a", "b"],
    "price": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    "promo": [True, False, True, False, True, False],
    "sales": [10, 20, 30, 40, 50, 60],
}
WEIGHT = [1.0, 0.0, 2.0, 3.0, 0.5, 4.0]


def make(**how):
    return TaskSet.from_arrays(np.arange(12.0).reshape(6, 2), np.arange(6.0), SALES["store"], **how)


def test_weights_follow_their_rows():
    tasks = make(weight=WEIGHT)
    assert tasks.weight.tolist() == [1.0, 2.0, 4.0, 0.0, 0.5, 3.0]  # b, a, c
    assert not tasks.weight.flags.writeable
    assert tasks.restore_order(tasks.weight).tolist() == WEIGHT
    assert tasks[[2, 0]].weight.tolist() == [3.0, 1.0, 2.0, 4.0]
    assert tasks[1].weight.tolist() == [0.0, 0.5]
    support, query = tasks.split_points(1, order="first")
    assert support.weight.tolist() == [1.0, 0.0, 3.0]
    assert query.weight.tolist() == [2.0, 4.0, 0.5]
    assert tasks.with_target(-tasks.y).weight is not None
    assert TaskSet.from_tasks(tasks).weight.tolist() == tasks.weight.tolist()
    assert make().weight is None
    assert make()[0].weight is None


def test_tasks_without_weights_among_others_count_once():
    mixed = TaskSet.from_tasks([([[1.0], [2.0]], [1, 2]), ([[3.0]], [3], "b", None, [2.0])])
    assert mixed.weight.tolist() == [1.0, 1.0, 2.0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_weights(kind):
    table = KINDS[kind](SALES | {"times": WEIGHT})
    tasks = TaskSet.from_frame(table, task="store", target="sales", weight="times")
    assert tasks.feature_names == ("price", "promo")
    assert tasks.restore_order(tasks.weight).tolist() == WEIGHT
    again = tasks.to_frame()
    assert np.asarray(again["sample_weight"]).tolist() == WEIGHT
    with pytest.raises(DataError, match=r"Column 'often' \(weight\) is not in the table"):
        TaskSet.from_frame(table, task="store", weight="often")


@pytest.mark.parametrize(
    ("weight", "sentence"),
    [
        ([1, 1, 1, -1, 1, 1], "Task 'c', row 3, has weight -1: a weight says how often a row"),
        ([1, 1, 1, 1, np.nan, 1], "Task 'a', row 4, has weight nan"),
        ([1, 1], "X has 6 rows and sample_weight has 2"),
    ],
)
def test_bad_weights(weight, sentence):
    with pytest.raises(DataError, match=sentence):
        make(weight=weight)


@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_median_is_that_of_repeated_values(pairs):
    values, weight = np.array(pairs, dtype=float).T
    if weight.sum() == 0:
        return
    here = weight > 0
    found = weighted_median(values[here], weight[here])
    assert found == np.median(np.repeat(values, weight.astype(int)))


def test_sums_of_tasks_without_rows_are_zero():
    assert task_sums(np.array([1.0, 2.0, 4.0]), np.array([0, 0, 2, 2, 3])).tolist() == [0, 3, 0, 4]
    assert task_sums(np.empty(0), np.array([0, 0])).tolist() == [0]
