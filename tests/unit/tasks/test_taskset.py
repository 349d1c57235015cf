"""TaskSet: from tables, arrays and lists of tasks to flat arrays, and back."""

import copy
import datetime as dt
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condmeta.errors import DataError
from condmeta.tasks import Task, TaskSet, TaskTable, frames
from condmeta.tasks.checks import check_finite
from condmeta.tasks.ids import as_id_array

KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
SALES = {
    "store": ["b", "a", "b", "c", "a", "b"],
    "price": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    "promo": [True, False, True, False, True, False],
    "sales": [10, 20, 30, 40, 50, 60],
}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def sales(kind="pandas", **more):
    return KINDS[kind](SALES | more)


def test_rows_of_a_task_are_together_in_their_order(kind):
    tasks = TaskSet.from_frame(sales(kind), task="store", target="sales")
    assert tasks.ids.tolist() == ["b", "a", "c"]
    assert tasks.offsets.tolist() == [0, 3, 5, 6]
    assert tasks.sizes.tolist() == [3, 2, 1]
    assert tasks.X.tolist() == [[1, 1], [3, 1], [6, 0], [2, 0], [5, 1], [4, 0]]
    assert tasks.y.tolist() == [10, 30, 60, 20, 50, 40]
    assert tasks.row_order.tolist() == [0, 2, 5, 1, 4, 3]
    assert (tasks.feature_names, tasks.target_name) == (("price", "promo"), "sales")
    assert (tasks.task_name, tasks.backend) == ("store", kind)
    assert len(tasks) == 3
    assert tasks.n_features == 2
    assert tasks.side is None
    assert tasks.X.flags.c_contiguous


def test_the_same_kind_comes_back_in_input_order(kind):
    frame = sales(kind)
    back = TaskSet.from_frame(frame, task="store", target="sales").to_frame()
    assert isinstance(back, type(frame))
    assert frames.column_names(back) == ["store", "price", "promo", "sales"]
    for name, values in SALES.items():
        assert frames.get_column(back, name).tolist() == values


def test_to_frame_of_arrays_and_tuple_ids():
    tasks = TaskSet.from_arrays([[1.0], [2.0]], [3, 4], task=[("a", 1), ("b", 2)])
    back = tasks.to_frame()
    assert list(back.columns) == ["task_0", "task_1", "x0", "y"]
    named = TaskSet.from_frame(sales(year=[1, 1, 2, 1, 1, 1]), ["store", "year"], "sales")
    assert named.ids.tolist() == [("b", 1), ("a", 1), ("b", 2), ("c", 1)]
    assert list(named.to_frame().columns) == ["store", "year", "price", "promo", "sales"]


def test_lazy_frames_are_collected():
    tasks = TaskSet.from_frame(sales("polars").lazy(), "store", "sales")
    assert tasks.y.tolist() == [10, 30, 60, 20, 50, 40]
    assert isinstance(tasks.to_frame(), pl.DataFrame)


def test_features_may_be_named_and_the_target_left_out(kind):
    tasks = TaskSet.from_frame(sales(kind), ["store"], features=["promo"])
    assert tasks.X.ravel().tolist() == [1, 1, 0, 0, 1, 0]
    assert tasks.y is None
    assert tasks.ids.tolist() == ["b", "a", "c"]


def test_a_pandas_index_level_may_be_the_task():
    frame = sales().set_index(["store"])
    assert TaskSet.from_frame(frame, "store", "sales").sizes.tolist() == [3, 2, 1]


@pytest.mark.parametrize("side", [["size", "city"], ("size", "city")])
def test_side_columns_constant_within_a_task(kind, side):
    frame = sales(kind, size=[5, 7, 5, None, 7, 5], city=["x", "y", "x", "x", "y", "x"])
    tasks = TaskSet.from_frame(frame, "store", "sales", side=side)
    assert tasks.feature_names == ("price", "promo")
    np.testing.assert_array_equal(tasks.side.data["size"], [5, 7, np.nan])
    assert tasks.side.data["city"].tolist() == ["x", "y", "x"]
    assert tasks.side.backend == kind
    assert frames.column_names(tasks.to_frame(side=True))[-2:] == ["size", "city"]
    assert frames.get_column(tasks.to_frame(side=True), "city").tolist() == list("xyxxyx")


def test_side_columns_that_vary_are_refused():
    with pytest.raises(DataError, match="Side column 'promo' varies within task 'a'"):
        TaskSet.from_frame(sales(), "store", "sales", side="promo")


def test_a_side_table_is_joined_by_id_and_extra_rows_are_empty_tasks(kind):
    side = KINDS[kind]({"store": ["z", "c", "b", "a"], "size": [0.0, 3.0, 1.0, 2.0]})
    tasks = TaskSet.from_frame(sales(kind), "store", "sales", side=side)
    assert tasks.ids.tolist() == ["b", "a", "c", "z"]
    assert tasks.sizes.tolist() == [3, 2, 1, 0]
    assert tasks.side.ids.tolist() == ["b", "a", "c", "z"]
    assert tasks.side.data["size"].tolist() == [1, 2, 3, 0]
    assert tasks[3].X.shape == (0, 2)


def test_tasks_missing_from_the_side_table_are_counted():
    side = TaskTable([[1.0]], ["b"])
    with pytest.raises(DataError, match="2 tasks are missing from the side table: 'a', 'c'"):
        TaskSet.from_frame(sales(), "store", "sales", side=side)
    tasks = TaskSet.from_frame(sales(), "store", "sales", side=side, missing_side="mean")
    assert tasks.side.ids.tolist() == ["b"]
    assert tasks[1].side is None
    assert tasks[0].side == {"s0": 1.0}
    with pytest.raises(DataError, match="'missing_side' parameter must be 'error' or 'mean'"):
        TaskSet.from_frame(sales(), "store", "sales", side=side, missing_side="skip")


@pytest.mark.parametrize("missing_side", ["error", "mean"])
def test_ids_17_and_text_17_never_match_silently(missing_side):
    with pytest.raises(DataError, match=r"Ids 17 \(int\) and '17' \(str\) do not match: convert"):
        TaskSet.from_arrays([[1.0]], [1.0], [17], {"17": [2.0]}, missing_side=missing_side)


def test_arrays_frames_and_series_mix(kind):
    X = frames.select_columns(sales(kind), ["price", "promo"])
    task, y = (frames.get_series(sales(kind), name) for name in ("store", "sales"))
    side = KINDS[kind]({"store": ["a", "b", "c"], "size": [2.0, 1.0, 3.0]})
    if kind == "pyarrow":  # a PyArrow column carries no name
        tasks = TaskSet.from_arrays(X, y, task, side_info=side, side_key="store")
    else:
        tasks = TaskSet.from_arrays(X, y, task, side_info=side)
        assert (tasks.task_name, tasks.target_name) == ("store", "sales")
    assert tasks.feature_names == ("price", "promo")
    assert tasks.backend == kind
    assert tasks.y.tolist() == [10, 30, 60, 20, 50, 40]
    assert tasks.side.data["size"].tolist() == [1, 2, 3]


def test_without_task_there_is_one_task_with_id_zero():
    tasks = TaskSet.from_arrays(np.ones((3, 2)), [1, 2, 3], None)
    assert tasks.ids.tolist() == [0]
    assert tasks.offsets.tolist() == [0, 3]


def test_dates_may_be_ids():
    days = np.array(["2024-05-02", "2024-05-01"], "M8[D]")
    side = {dt.date(2024, 5, 1): 1.0, dt.date(2024, 5, 2): 2.0}
    tasks = TaskSet.from_arrays(np.ones((2, 1)), None, days, side)
    assert tasks.ids.tolist() == [dt.date(2024, 5, 2), dt.date(2024, 5, 1)]
    assert tasks.side.numeric().ravel().tolist() == [2.0, 1.0]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40))
def test_any_order_of_rows_is_restored(task):
    X = np.arange(len(task), dtype=float)[:, None]
    tasks = TaskSet.from_arrays(X, X.ravel(), task)
    assert tasks.ids.tolist() == list(dict.fromkeys(task))
    np.testing.assert_array_equal(tasks.X, X[tasks.row_order])
    np.testing.assert_array_equal(tasks.restore_order(tasks.X), X)
    for one in tasks:
        assert one.y.tolist() == [i for i, t in enumerate(task) if t == one.id]


def test_restore_order_of_some_tasks_keeps_their_rows_in_input_order():
    tasks = TaskSet.from_frame(sales(), "store", "sales")[[0, 2]]
    assert tasks.restore_order(tasks.y).tolist() == [10, 30, 40, 60]
    with pytest.raises(DataError, match="There are 3 values for 4 rows"):
        tasks.restore_order([1, 2, 3])


def test_the_users_array_is_neither_copied_nor_frozen():
    X, y = np.ones((3, 2)), np.ones(3)
    tasks = TaskSet.from_arrays(X, y, ["a", "a", "b"])
    assert np.shares_memory(tasks.X, X)
    assert X.flags.writeable
    assert y.flags.writeable
    for array in (tasks.X, tasks.y, tasks.offsets, tasks.ids, tasks.row_order):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_rows_in_order_take_no_memory_nor_does_a_subset_an_index():
    X, y, task = np.ones((20_000, 1)), np.ones(20_000), np.repeat(np.arange(4000), 5)
    table = TaskTable(np.ones((4000, 1)), ids=range(4000))
    tracemalloc.start()
    tasks = TaskSet.from_arrays(X, y, task, table)
    few = tasks.subset([3, 1])
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert few.ids.tolist() == few.side.ids.tolist() == [3, 1]
    assert held < 8 * len(X) + 32 * 4000  # numbers of rows, or an index, would be more


def test_trusted_arrays_are_neither_checked_nor_copied():
    X, y, weight = np.array([[1.0], [np.nan], [3.0]]), np.arange(3.0), np.ones(3)
    side = TaskTable({"s": [1.0, 2.0]}, ids=["a", "b"])
    ids = as_id_array(["a", "b"])
    names = {"feature_names": ("x",), "target_name": "y", "task_name": "t", "backend": "polars"}
    tasks = TaskSet.trusted(X, y, np.array([0, 2, 3]), ids, side, weight, **names)
    assert np.shares_memory(tasks.X, X)
    assert np.shares_memory(tasks.weight, weight)
    assert tasks.row_order.tolist() == [0, 1, 2]
    assert tasks.side is side
    assert {name: getattr(tasks, name) for name in names} == names
    assert repr(tasks) == "TaskSet(2 tasks, 3 rows, 1 to 2 a task, 1 feature, side: 1 column)"
    assert TaskSet.trusted(X, None, np.array([0, 2, 3]), ids).y is None


def test_tasks_in_a_list_keep_their_order_and_may_be_empty():
    tasks = TaskSet.from_tasks(
        [
            Task(np.ones((2, 3)), [1, 2], "x", {"size": 1}),
            Task(None, None, "y", {"size": 2}),
            Task(np.empty((0, 3)), [], "w", {"size": 3}),
            Task([[1, 2, 3]], [3], "a", {"size": None}),
        ]
    )
    assert tasks.ids.tolist() == ["x", "y", "w", "a"]
    assert tasks.sizes.tolist() == [2, 0, 0, 1]
    np.testing.assert_array_equal(tasks.side.data["size"], [1, 2, 3, np.nan])


def test_pairs_and_triples_are_numbered():
    pairs = TaskSet.from_tasks((np.ones((n, 2)), np.ones(n)) for n in (1, 4))
    assert pairs.ids.tolist() == [0, 1]
    assert pairs.side is None
    triples = TaskSet.from_tasks([(np.ones((1, 2)), [1], [5.0]), (np.ones((1, 2)), [1], [6.0])])
    assert triples.side.numeric().ravel().tolist() == [5.0, 6.0]
    unlabelled = TaskSet.from_tasks([(np.ones((1, 2)), None)])
    assert unlabelled.y is None


def test_a_list_of_its_tasks_makes_the_same_set():
    side = TaskTable({"s": [1.0, None, 3.0], "k": ["x", None, "y"]}, ["a", "b", "c"])
    tasks = TaskSet.from_frame(sales(), "store", "sales", side=side)
    again = TaskSet.from_tasks(tasks)
    assert again.ids.tolist() == tasks.ids.tolist()
    np.testing.assert_array_equal(again.X, tasks.X)
    np.testing.assert_array_equal(again.side.data["s"], tasks.side.data["s"])
    assert again.side.data["k"].tolist() == tasks.side.data["k"].tolist()


@pytest.mark.parametrize(
    ("tasks", "sentence"),
    [
        ([], "There are no tasks"),
        ([(None, None)], "There are no tasks with points"),
        ([(np.ones((1, 20)), [1]), Task(np.ones((2, 3)), [1, 2], "store 17")],
         r"Task 'store 17' has 3 features, expected 20\."),
        ([Task(np.ones((2, 3)), [1], "a")], "Task 'a': X has 2 rows and y has 1"),
        ([Task(np.ones(3), [1], "a")], "Task 'a': X must be a 2-D table"),
        ([(np.ones((1, 1)), [1]), (np.ones((1, 1)), None)], "Task 1 has no y while other"),
        ([Task(np.ones((1, 1)), [1], "a")] * 2, "Task ids occur more than once: 'a'"),
        ([(np.ones((1, 1)), [1], {"s": 1}), (np.ones((1, 1)), [1])],
         "1 task is missing from the side table: 1"),
        ([(np.ones((1, 1)),)], "Task 0 has 1 parts: give"),
        ([(np.empty((0, 2)), [])], "There are no rows"),
    ],
)  # fmt: skip
def test_unusable_lists_of_tasks_say_what_is_wrong(tasks, sentence):
    with pytest.raises(DataError, match=sentence):
        TaskSet.from_tasks(tasks)


ONE = np.ones((3, 2))
NAN, INF = np.array([[1, 2], [np.nan, 2], [1, np.nan]]), np.array([[1, 2], [1, -np.inf], [1, 2]])


@pytest.mark.parametrize(
    ("X", "y", "task", "sentence"),
    [
        (ONE, [1, 2], "aab", "X has 3 rows and y has 2"),
        (ONE, [1, 2, 3], "ab", "X has 3 rows and task has 2"),
        (np.empty((0, 2)), [], "", "There are no rows"),
        (np.empty((3, 0)), [1, 2, 3], "aab", "There are no features: .* give a column of ones"),
        (ONE[0], [1, 2], "aa", "2-D table"),
        (ONE * 1j, [1, 2, 3], "aab", "complex"),
        (ONE.astype(str), [1, 2, 3], "aab", "X holds text"),
        (np.full((3, 2), {}, object), [1, 2, 3], "aab", "X holds objects"),
        (ONE, ONE, "aab", r"y must be 1-D .*\(3, 2\)"),
        (ONE, ["u", 2, "w"], "aab", r"y mixes text and numbers \('u' and 2\)"),
        (NAN, [1, 2, 3], "aba",
         r"Task 'a' has NaN in column 'q' of X \(2 such values in 2 columns: 'p', 'q'; in 2 tasks"),
        (INF, [1, 2, 3], "aba", "Task 'b' has infinity in column 'q' of X: fill it or drop"),
        (ONE, [1, np.nan, 3], "aba", "Task 'b' has NaN in y"),
        (ONE, [1, 2, np.inf], "aba", "Task 'a' has infinity in y"),
        (ONE, [1, 2, 3], ["a", None, "b"], "1 missing value among 3 rows"),
    ],
)  # fmt: skip
def test_unusable_arrays_say_what_is_wrong(X, y, task, sentence):
    names = ["p", "q"] if np.shape(X)[1:] == (2,) else None
    with pytest.raises(DataError, match=sentence):
        TaskSet.from_arrays(X, y, list(task), feature_names=names)


def test_a_name_in_place_of_ids_is_explained():
    with pytest.raises(DataError, match=r"task is the name 'store'.*task=df\['store'\]"):
        TaskSet.from_arrays(ONE, [1, 2, 3], "store")
    with pytest.raises(DataError, match="1 feature names for 2 features"):
        TaskSet.from_arrays(ONE, [1, 2, 3], None, feature_names=["a"])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"task": "shop"}, r"Column 'shop' \(task\) is not in the table; it has 'store'"),
        ({"task": "store", "target": "y"}, r"Column 'y' \(target\) is not in the table"),
        ({"task": "store", "features": ["x"]}, r"Column 'x' \(features\)"),
        ({"task": "store", "side": ["x"]}, r"Column 'x' \(side\)"),
        ({"task": "promo"}, r"Column 'store' holds text \('b', \.\.\.\); X must be numeric"),
    ],
)
def test_unusable_columns_are_named(kind, options, sentence):
    with pytest.raises(DataError, match=sentence):
        TaskSet.from_frame(sales(kind), **options)


def test_an_array_is_not_a_frame():
    with pytest.raises(DataError, match=r"got a ndarray: for arrays use TaskSet\.from_arrays"):
        TaskSet.from_frame(ONE, "store")


def test_gaps_in_a_frame_name_task_and_column(kind):
    frame = sales(kind, price=[1.0, None, 3.0, 4.0, 5.0, 6.0])
    with pytest.raises(DataError, match="Task 'a' has NaN in column 'price' of X: fill it or"):
        TaskSet.from_frame(frame, "store", "sales")
    frame = sales(kind, sales=[1.0, 2.0, 3.0, None, 5.0, 6.0])
    with pytest.raises(DataError, match="Task 'c' has NaN in the target 'sales'"):
        TaskSet.from_frame(frame, "store", "sales")


def test_huge_finite_numbers_are_finite():
    TaskSet.from_arrays(np.full((4, 1), 1e308), np.full(4, -1e308), None)


def test_check_finite_with_row_aligned_ids_or_none():
    check_finite(None, None)
    check_finite(ONE, np.ones(3))
    with pytest.raises(DataError, match="Task 'c' has NaN in feature 1 of X"):
        check_finite(np.array([[1, 1], [1, np.nan]]), tasks=["b", "c"])
    with pytest.raises(DataError, match="Row 1 has infinity in y"):
        check_finite(ONE, np.array([1, np.inf, 1]))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"offsets": [0, 2]}, r"must have 3 values, .* rise from 0 to the number of rows \(3\)"),
        ({"offsets": [0, 4, 3]}, "offsets must have 3 values"),
        ({"offsets": [1, 2, 3]}, "offsets must have 3 values"),
        ({"ids": ["a", "a"]}, "Task ids occur more than once: 'a'"),
        ({"side": {"a": 1}}, "side must be a TaskTable"),
        ({"row_order": [0, 1]}, "row_order must have 3 entries"),
        ({"X": NAN}, "Task 'a' has NaN in feature 0"),
    ],
)
def test_the_constructor_checks_its_arrays(options, sentence):
    good = {"X": ONE, "y": [1, 2, 3], "offsets": [0, 2, 3], "ids": ["a", "b"]}
    TaskSet(**good)
    with pytest.raises(DataError, match=sentence):
        TaskSet(**good | options)


def test_indexing_gives_tasks_and_sets_of_tasks():
    side = TaskTable([[1.0], [2.0], [3.0]], ["a", "b", "c"])
    tasks = TaskSet.from_frame(sales(), "store", "sales", side=side)
    one = tasks[-2]
    assert (one.id, one.y.tolist(), one.side) == ("a", [20, 50], {"s0": 1.0})
    assert np.shares_memory(one.X, tasks.X)
    assert [t.id for t in tasks] == ["b", "a", "c"]
    assert tasks[1:].ids.tolist() == ["a", "c"]
    assert np.shares_memory(tasks[1:].X, tasks.X)
    assert tasks[::-1].y.tolist() == [40, 20, 50, 10, 30, 60]
    picked = tasks[[2, 0]]
    assert picked.ids.tolist() == picked.side.ids.tolist() == ["c", "b"]
    assert picked.y.tolist() == [40, 10, 30, 60]
    assert tasks[np.array([True, False, True])].ids.tolist() == ["b", "c"]
    assert len(tasks[[]]) == 0
    assert tasks[np.int64(0)].id == "b"
    assert (tasks.position("c"), tasks.position("b")) == (2, 0)


@pytest.mark.parametrize("key", [3, -4, [0, 0], [0.5], [True, False], [5], [[0]]])
def test_positions_that_do_not_exist_are_refused(key):
    tasks = TaskSet.from_frame(sales(), "store", "sales")
    with pytest.raises(IndexError):
        tasks[key]


def test_unknown_ids_are_refused():
    tasks = TaskSet.from_frame(sales(), "store", "sales")
    with pytest.raises(KeyError, match="There is no task 'z'"):
        tasks.position("z")


def test_split_tasks_gives_disjoint_sets():
    tasks = TaskSet.from_arrays(np.ones((50, 1)), np.arange(50.0), np.arange(50) // 2)
    train, val, test = tasks.split_tasks((15, 5, 5), random_state=0)
    assert [len(part) for part in (train, val, test)] == [15, 5, 5]
    assert {*train.ids, *val.ids, *test.ids} == set(range(25))
    again = tasks.split_tasks((15, 5, 5), random_state=0)
    assert again[0].ids.tolist() == train.ids.tolist()
    assert train.row_order.tolist() == [2 * i + j for i in train.ids for j in (0, 1)]


def test_split_points_keeps_all_tasks_in_both():
    side = TaskTable(np.arange(4.0)[:, None], ["a", "b", "c", "z"])
    tasks = TaskSet.from_frame(sales(), "store", "sales", side=side)
    support, query = tasks.split_points(2, order="first")
    assert support.ids.tolist() == query.ids.tolist() == ["b", "a", "c", "z"]
    assert support.y.tolist() == [10, 30, 20, 50, 40]
    assert support.sizes.tolist() == [2, 2, 1, 0]
    assert query.y.tolist() == [60]
    assert query.sizes.tolist() == [1, 0, 0, 0]
    assert query.side is tasks.side
    half, rest = tasks.split_points(0.5, random_state=0)
    assert sorted([*half.row_order, *rest.row_order]) == list(range(6))
    assert half.sizes.tolist() == [2, 1, 1, 0]


def test_repr_says_what_is_inside():
    side = TaskTable([[1.0]] * 4, ["a", "b", "c", "z"])
    tasks = TaskSet.from_frame(sales(), "store", "sales", side=side)
    assert repr(tasks) == "TaskSet(4 tasks, 6 rows, 0 to 3 a task, 2 features, side: 1 column)"
    assert "0 tasks" in repr(tasks[[]])


def test_sets_of_tasks_pickle_and_copy():
    tasks = TaskSet.from_frame(sales(), "store", "sales")
    for twin in (pickle.loads(pickle.dumps(tasks)), copy.deepcopy(tasks)):
        np.testing.assert_array_equal(twin.X, tasks.X)
        assert twin.ids.tolist() == tasks.ids.tolist()


def test_ten_thousand_tasks_are_walked_through_quickly():
    n = 10_000
    side = TaskTable(np.ones((n, 1)), np.arange(n))
    tasks = TaskSet.from_arrays(np.ones((n, 1)), None, np.arange(n)[::-1], side)
    assert sum(task.side["s0"] for task in tasks) == n
