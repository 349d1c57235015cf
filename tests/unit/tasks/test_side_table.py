"""Side tables are keyed by task id, typed by column, and refuse what cannot be matched."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from condmeta.errors import DataError
from condmeta.feature_maps.training_ranges import TrainingRanges, UnusualValue
from condmeta.tasks.side_table import read_side_row, read_side_table, side_from_rows
from condmeta.tasks.task_table import TaskTable

KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
STORES = {
    "store": ["a", "b", "c"],
    "size": [1, None, 3],
    "open": [True, False, True],
    "city": ["Rome", None, "Bonn"],
}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def stores(kind="pandas"):
    return KINDS[kind](STORES)


def check_stores(table):
    assert table.ids.tolist() == ["a", "b", "c"]
    assert table.columns == ("size", "open", "city")
    np.testing.assert_array_equal(table.data["size"], [1, np.nan, 3])
    assert table.data["open"].dtype == bool
    assert table.data["city"].tolist() == ["Rome", None, "Bonn"]


def test_the_column_named_like_the_task_is_the_key(kind):
    table = read_side_table(stores(kind), task_name="store")
    check_stores(table)
    assert table.backend == kind


def test_side_key_wins(kind):
    check_stores(read_side_table(stores(kind), task_name="shop", side_key="store"))


def test_a_pandas_index_is_the_key():
    check_stores(read_side_table(stores().set_index("store"), task_name="anything"))
    unnamed = stores().set_index("store").rename_axis(None)
    check_stores(read_side_table(unnamed, task_name="anything"))


def test_the_index_left_over_by_a_filter_is_not_the_key():
    kept = pd.concat([pd.DataFrame({"store": ["z"]}), stores()]).reset_index(drop=True).iloc[1:]
    assert read_side_table(kept, task_name="store").ids.tolist() == ["a", "b", "c"]


def test_side_key_may_name_an_index_level():
    frame = pd.DataFrame({"k": [1.0, 2.0]}, index=pd.Index(["a", "b"], name="store"))
    table = read_side_table(frame, side_key="store")
    assert table.ids.tolist() == ["a", "b"]
    assert table.columns == ("k",)


def test_several_key_columns_make_tuple_ids(kind):
    frame = KINDS[kind]({"shop": ["a", "a"], "year": [1, 2], "size": [3.0, 4.0]})
    table = read_side_table(frame, task_name=["shop", "year"])
    assert table.ids.tolist() == [("a", 1), ("a", 2)]
    assert table.columns == ("size",)


def test_a_multi_index_makes_tuple_ids():
    frame = pd.DataFrame({"shop": ["a", "a"], "year": [1, 2], "size": [3.0, 4.0]})
    assert read_side_table(frame.set_index(["shop", "year"])).ids.tolist() == [("a", 1), ("a", 2)]


def test_the_row_of_one_task_may_carry_its_key():
    row = {"store": "x", "size": 2.0, "city": "Rome"}
    for given in (row, pd.Series(row), pd.DataFrame([row])):
        assert list(read_side_row(given, ("size", "city")).columns) == ["size", "city"]


@pytest.mark.parametrize(
    ("rows", "columns", "values"),
    [
        ({"a": {"s": 1, "t": 2}, "b": {"t": 4, "s": 3}}, ("s", "t"), [[1, 2], [3, 4]]),
        ({"a": [1, 2], "b": (3, 4)}, ("s0", "s1"), [[1, 2], [3, 4]]),
        ({"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0])}, ("s0", "s1"), [[1, 2], [3, 4]]),
        ({"a": 1, "b": 3.5}, ("s0",), [[1], [3.5]]),
    ],
)
def test_a_dict_is_read_as_id_to_row(rows, columns, values):
    table = read_side_table(rows)
    assert table.ids.tolist() == ["a", "b"]
    assert table.columns == columns
    assert table.numeric().tolist() == values


@pytest.mark.parametrize(
    ("side_info", "sentence"),
    [
        (np.ones((2, 2)), r"which task each row.*ndarray.*TaskTable\(values, ids\)"),
        ([[1, 2]], r"TaskTable\(values, ids\)"),
        ({}, "empty dict"),
        ({"a": {"s": 1}, "b": {"t": 1}}, "Task 'b' has the side columns t, expected s"),
        ({"a": [1], "b": [1, 2]}, "differ in length"),
        (pl.DataFrame({"k": ["a"]}), "no column 'store': name its key column with side_key="),
        (pd.DataFrame({"k": ["a"]}), "set its index to the task ids, or name the key column with"),
    ],
)
def test_side_information_without_a_key_is_refused(side_info, sentence):
    with pytest.raises(DataError, match=sentence):
        read_side_table(side_info, task_name="store")


def test_unknown_side_key_is_refused():
    with pytest.raises(DataError, match=r"Column 'shop' \(side_key\) is not in the table"):
        read_side_table(stores(), side_key="shop")


def test_duplicate_keys_are_counted_and_five_are_shown():
    ids = [i // 2 for i in range(14)]
    sentence = "Task ids occur more than once in the side table: 0, 1, 2, 3, 4 and 2 more"
    with pytest.raises(DataError, match=sentence):
        TaskTable(np.ones((14, 1)), ids)


def test_missing_keys_are_located():
    with pytest.raises(DataError, match=r"side table ids have 1 missing value .*\(row 1\)"):
        read_side_table(pd.DataFrame({"store": ["a", None], "s": [1, 2]}), task_name="store")


def test_a_task_table_is_taken_as_it_is():
    table = TaskTable([[1.0]], ["a"])
    assert read_side_table(table) is table


def test_cross_validation_cannot_slice_a_task_table():
    table = TaskTable([[1.0]], ["a"])
    assert not hasattr(table, "__len__")
    assert not hasattr(table, "shape")
    assert table.n_tasks == 1


@pytest.mark.parametrize(
    ("column", "kind", "values"),
    [
        ([1, 2], "f", [1.0, 2.0]),
        ([1, None], "f", [1.0, np.nan]),
        ([None, None], "f", [np.nan, np.nan]),
        ([True, 2], "f", [1.0, 2.0]),
        ([True, False], "b", [True, False]),
        ([True, None], "O", [True, None]),
        (["x", None], "O", ["x", None]),
        (["x", float("nan")], "O", ["x", None]),
        (np.array(["x", "y"]), "O", ["x", "y"]),
        (pd.Series([1, None], dtype="Int64"), "f", [1.0, np.nan]),
        (pd.Series([True, None], dtype="boolean"), "O", [True, None]),
        (pd.Series(pd.Categorical([2, None])), "O", ["2", None]),
        (pl.Series(["x", None], dtype=pl.Categorical), "O", ["x", None]),
        (pa.array([1.5, None]), "f", [1.5, np.nan]),
    ],
)
def test_columns_are_typed_by_what_they_hold(column, kind, values):
    typed = TaskTable({"s": column}, ["a", "b"]).data["s"]
    assert typed.dtype.kind == kind
    np.testing.assert_array_equal(typed, np.array(values, dtype=typed.dtype))


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ([dt.date(2024, 5, 1)], "Side column 's' holds dates: turn it into a number"),
        (np.array(["2024-05-01"], "M8[ns]"), "holds dates"),
        (pl.Series([dt.date(2024, 5, 1)]), "holds dates"),
        ([1j], r"holds objects \(of type complex\)"),
        (np.array([1j]), "holds complex numbers"),
        ([[1, 2]], r"holds objects \(of type list\)"),
        ([1, 2], "Side column 's' has 2 rows for 1 task ids"),
        (np.ones((1, 2)), "must be 1-D"),
    ],
)
def test_unusable_columns_are_named(column, sentence):
    with pytest.raises(DataError, match=sentence):
        TaskTable({"s": column}, ["a"])


def test_text_and_numbers_do_not_mix():
    with pytest.raises(DataError, match="Side column 's' mixes text and numbers"):
        TaskTable({"s": ["x", 1]}, ["a", "b"])


def test_arrays_are_cut_into_columns():
    mixed = np.array([[1.0, "Rome"], [2.0, None]], object)
    table = TaskTable(mixed, ["a", "b"], columns=["size", "city"])
    assert table.data["size"].tolist() == [1.0, 2.0]
    assert table.data["city"].tolist() == ["Rome", None]
    assert TaskTable(np.array([1.0, 2.0]), ["a", "b"]).columns == ("s0",)
    with pytest.raises(DataError, match="2 columns and 1 names"):
        TaskTable(mixed, ["a", "b"], columns=["size"])
    with pytest.raises(DataError, match="has 2 rows for 1 task ids"):
        TaskTable(mixed, ["a"])


def test_take_joins_by_id_and_explains_what_is_absent():
    table = TaskTable([[1.0], [2.0]], ["17", "18"])
    assert table.take(["18", "17"]).numeric().ravel().tolist() == [2.0, 1.0]
    assert table.has(["17", 17]).tolist() == [True, False]
    assert table.row("18") == {"s0": 2.0}
    sentence = r"1 task is missing from the side table: 17\. Ids 17 \(int\) and '17' \(str\)"
    with pytest.raises(DataError, match=sentence):
        table.take([17])


def test_numeric_refuses_text_and_gaps_and_names_auto():
    table = read_side_table(stores(), task_name="store")
    with pytest.raises(DataError, match=r"Side column 'city' holds text \('Rome', .*\"auto\""):
        table.numeric()
    numbers = TaskTable({"s": [1.0, None]}, ["a", "b"])
    with pytest.raises(DataError, match=r"Task 'b' has NaN .* side column 's': .*\"auto\""):
        numbers.numeric()
    np.testing.assert_array_equal(numbers.numeric(allow_gaps=True), [[1.0], [np.nan]])
    with pytest.raises(DataError, match="Task 'a' has infinity in side column 's'"):
        TaskTable({"s": [np.inf]}, ["a"]).numeric(allow_gaps=True)
    assert TaskTable({"s": [True, False]}, ["a", "b"]).numeric().tolist() == [[1.0], [0.0]]
    with pytest.raises(DataError, match="NaN"):
        TaskTable({"s": [True, None]}, ["a", "b"]).numeric()


def test_native_gives_the_kind_it_came_from(kind):
    table = read_side_table(stores(kind), task_name="store")
    assert isinstance(table.native(), type(stores(kind)))
    check_stores(TaskTable(table.native(), table.ids))


def test_native_arrays():
    assert TaskTable({"s": [1, None]}, ["a", "b"]).native().dtype == float
    mixed = TaskTable({"s": [1, 2], "t": ["x", None]}, ["a", "b"]).native()
    assert mixed.tolist() == [[1.0, "x"], [2.0, None]]


def test_align_orders_columns_and_names_the_others():
    table = TaskTable({"s": [1], "t": [2]}, ["a"])
    assert table.align(["t", "s"]).columns == ("t", "s")
    with pytest.raises(DataError, match=r"lacks 'u' and has the unknown 't'; .* are 's', 'u'"):
        table.align(["s", "u"])


def test_concat_appends_new_tasks_only():
    first = TaskTable({"s": [1, None], "k": ["x", "y"], "b": [True, False]}, ["a", "b"])
    second = TaskTable({"k": [None], "b": [None], "s": [3]}, ["c"])
    both = first.concat(second)
    assert both.ids.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(both.data["s"], [1, np.nan, 3])
    assert both.data["k"].tolist() == ["x", "y", None]
    assert both.data["b"].tolist() == [True, False, None]
    with pytest.raises(DataError, match="1 task ids are already in the side table: 'a'"):
        first.concat(first.take(["a"]))
    with pytest.raises(DataError, match="'s' mixes text and numbers"):
        first.concat(TaskTable({"s": ["big"], "k": ["x"], "b": [True]}, ["c"]))


@pytest.mark.parametrize(
    "row",
    [
        {"size": 2, "city": "Rome"},
        pd.Series({"size": 2, "city": "Rome"}),
        pd.DataFrame({"size": [2], "city": ["Rome"]}),
        pl.DataFrame({"size": [2], "city": ["Rome"]}),
        pa.table({"size": [2], "city": ["Rome"]}),
        pd.DataFrame({"store": ["z"], "size": [2], "city": ["Rome"]}),
        [2, "Rome"],
        np.array([2, "Rome"], object),
        TaskTable({"size": [2], "city": ["Rome"]}, ["a"]),
    ],
)
def test_one_row_is_read_from_anything(row):
    table = read_side_row(row, columns=("size", "city"))
    assert table.ids.tolist() == [None]
    assert table.columns == ("size", "city")
    assert table.data["size"].tolist() == [2.0]
    assert table.data["city"].tolist() == ["Rome"]


def test_one_value_is_a_row_of_one_column():
    assert read_side_row(2.5).data["s0"].tolist() == [2.5]
    assert read_side_row("Rome", columns=["city"]).data["city"].tolist() == ["Rome"]
    assert read_side_row(np.float64(2.5)).data["s0"].tolist() == [2.5]
    assert np.isnan(read_side_row({"s": None}).data["s"][0])


def test_unusable_rows_are_refused():
    with pytest.raises(DataError, match="side row has 1 value, expected 2: 's', 't'"):
        read_side_row([1], columns=["s", "t"])
    with pytest.raises(DataError, match="side_info has 3 rows for one task"):
        read_side_row(stores())
    with pytest.raises(DataError, match=r"shape \(2, 2\)"):
        read_side_row(np.ones((2, 2)))


def test_side_columns_are_taken_once_a_task():
    columns = {
        "size": np.array([5.0, np.nan, 5.0]),
        "city": np.array(["Rome", None, "Rome"], object),
        "open": np.array([True, False, True]),
    }
    table = side_from_rows(columns, np.array([0, 1, 0]), np.array(["b", "a"], object))
    assert table.ids.tolist() == ["b", "a"]
    np.testing.assert_array_equal(table.data["size"], [5.0, np.nan])
    assert table.data["city"].tolist() == ["Rome", None]
    assert table.data["open"].tolist() == [True, False]


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ([1.0, 2.0, 3.0], r"Side column 's' varies within task 'b' \(1.0 and 3.0\): .* feature"),
        ([1.0, 2.0, np.nan], r"varies within task 'b' \(1.0 and nan\)"),
        (["x", "y", None], r"varies within task 'b' \(x and None\)"),
    ],
)
def test_side_columns_that_vary_are_named(column, sentence):
    with pytest.raises(DataError, match=sentence):
        side_from_rows({"s": np.array(column)}, np.array([0, 1, 0]), np.array(["b", "a"], object))


def test_repr_is_readable():
    assert repr(read_side_table(stores(), task_name="store")) == (
        "TaskTable(3 tasks, columns: size, open, city)"
    )


def test_values_outside_the_training_ranges_are_found():
    table = TaskTable(
        {"size": [1.0, None, 3.0], "city": ["Rome", "Bonn", None], "open": [True, False, True]},
        ids=range(3),
    )
    seen = TrainingRanges.of(table)
    assert seen.unusual_values(table) == []
    new = TaskTable(
        {"size": [0.5, 2.0, 9.0], "city": ["Oslo", "Rome", None], "open": [None, True, False]},
        ids=range(3),
    )
    assert seen.unusual_values(new) == [
        UnusualValue(0, "size", 0.5, "below the training range 1 to 3"),
        UnusualValue(0, "city", "Oslo", "a level not seen in training"),
        UnusualValue(0, "open", None, "missing, which no training task was"),
        UnusualValue(2, "size", 9.0, "above the training range 1 to 3"),
    ]
    assert seen.join(TrainingRanges.of(new)).unusual_values(new) == []
    assert seen.join(TrainingRanges.of(new)).ranges == {"size": (0.5, 9.0)}
