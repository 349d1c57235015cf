"""Ids of every kind become codes in the order of first appearance."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condmeta.errors import DataError
from condmeta.tasks import codes as codes_module
from condmeta.tasks.codes import int_codes, object_codes, text_codes
from condmeta.tasks.ids import factorize, group_rows, id_columns, positions
from condmeta.tasks.messages import explain_absent, name_task, show_id

DAY, NOON = dt.date(2024, 5, 1), dt.datetime(2024, 5, 1, 12)

COLUMNS = {
    "list": (["b", "a", "b"], ["b", "a"]),
    "list of tuples": ([(1, "a"), (2, "b"), (1, "a")], [(1, "a"), (2, "b")]),
    "list of rows": ([[1, 2], [3, 4], [1, 2]], [(1, 2), (3, 4)]),
    "list of NumPy scalars": ([np.int64(3), np.int64(1), 3], [3, 1]),
    "NumPy ints": (np.array([7, 3, 7], np.int8), [7, 3]),
    "NumPy wide ints": (np.array([2**62, -(2**62), 2**62]), [2**62, -(2**62)]),
    "NumPy unsigned": (np.array([2**64 - 1, 3, 2**64 - 1], np.uint64), [2**64 - 1, 3]),
    "NumPy bool": (np.array([True, False, True]), [True, False]),
    "NumPy floats": (np.array([1.5, -2.0, 1.5]), [1.5, -2.0]),
    "NumPy text": (np.array(["b", "a", "b"]), ["b", "a"]),
    "NumPy objects": (np.array(["b", 1, "b"], object), ["b", 1]),
    "NumPy days": (np.array(["2024-05-01", "2024-04-01", "2024-05-01"], "M8[D]"),
                   [DAY, dt.date(2024, 4, 1)]),
    "NumPy nanoseconds": (np.array(["2024-05-01T12", "2024-05-02", "2024-05-01T12"], "M8[ns]"),
                          [NOON, dt.datetime(2024, 5, 2)]),
    "NumPy matrix": (np.array([[1, 2], [1, 3], [1, 2]]), [(1, 2), (1, 3)]),
    "NumPy column": (np.array([[5], [4], [5]]), [5, 4]),
    "pandas": (pd.Series(["b", "a", "b"], index=[9, 9, 9]), ["b", "a"]),
    "pandas nullable": (pd.Series([4, 2, 4], dtype="Int64"), [4, 2]),
    "pandas categories": (pd.Series(pd.Categorical([3, 1, 3])), [3, 1]),
    "pandas times": (pd.Series(np.array([NOON, "2024-05-02", NOON], "M8[ns]")),
                     [NOON, dt.datetime(2024, 5, 2)]),
    "pandas index": (pd.Index(["b", "a", "b"]), ["b", "a"]),
    "pandas MultiIndex": (pd.MultiIndex.from_tuples([(1, "a"), (2, "b"), (1, "a")]),
                          [(1, "a"), (2, "b")]),
    "pandas frame": (pd.DataFrame({"a": [1, 1, 1], "b": ["x", "y", "x"]}), [(1, "x"), (1, "y")]),
    "pandas frame of one column": (pd.DataFrame({"a": ["u", "v", "u"]}), ["u", "v"]),
    "polars": (pl.Series(["b", "a", "b"]), ["b", "a"]),
    "polars ints": (pl.Series([4, 2, 4]), [4, 2]),
    "polars categories": (pl.Series(["b", "a", "b"], dtype=pl.Categorical), ["b", "a"]),
    "polars dates": (pl.Series([DAY, dt.date(2024, 4, 1), DAY]), [DAY, dt.date(2024, 4, 1)]),
    "polars bool": (pl.Series([True, False, True]), [True, False]),
    "polars frame": (pl.DataFrame({"a": [1, 1, 1], "b": ["x", "y", "x"]}), [(1, "x"), (1, "y")]),
    "polars lazy": (pl.LazyFrame({"a": ["u", "v", "u"]}), ["u", "v"]),
    "PyArrow array": (pa.array(["b", "a", "b"]), ["b", "a"]),
    "PyArrow chunks": (pa.chunked_array([["b", "a"], ["b"]]), ["b", "a"]),
    "PyArrow dictionary": (pa.array(["z", "b", "a", "b"]).dictionary_encode().slice(1),
                           ["b", "a"]),
    "PyArrow dates": (pa.array([DAY, dt.date(2024, 4, 1), DAY]), [DAY, dt.date(2024, 4, 1)]),
    "PyArrow table": (pa.table({"a": [1, 1, 1], "b": ["x", "y", "x"]}), [(1, "x"), (1, "y")]),
}  # fmt: skip


@pytest.mark.parametrize(("values", "expected"), COLUMNS.values(), ids=COLUMNS)
def test_factorize_gives_plain_ids_in_order_of_first_appearance(values, expected):
    codes, ids = factorize(values)
    assert codes.dtype == np.int64
    assert codes.tolist() == [0, 1, 0]
    assert ids.dtype == object
    assert ids.tolist() == expected
    assert [type(i) for i in ids] == [type(i) for i in expected]


MISSING = {
    "None": ["a", None, "b"],
    "NaN": np.array([1.0, np.nan, 2.0]),
    "NaN among objects": ["a", float("nan"), "b"],
    "NaT": np.array(["2024-05-01", "NaT", "2024-05-01"], "M8[D]"),
    "pandas text": pd.Series(["a", None, "b"]),
    "pandas NA": pd.Series([1, None, 2], dtype="Int64"),
    "pandas NaT": pd.Series(pd.to_datetime(["2024-05-01", None, "2024-05-01"])),
    "pandas objects": np.array(["a", pd.NA, "b"], object),
    "polars": pl.Series([1, None, 2]),
    "PyArrow": pa.array(["a", None, "b"]),
    "part of a tuple": [("a", 1), ("a", None), ("b", 1)],
    "part of a frame": pd.DataFrame({"a": [1, 1, 1], "b": ["x", None, "x"]}),
}


@pytest.mark.parametrize("values", MISSING.values(), ids=MISSING)
def test_missing_ids_are_counted_and_located(values):
    with pytest.raises(DataError, match=r"task ids have 1 missing value among 3 rows \(row 1\)"):
        factorize(values)


def test_missing_ids_list_the_first_rows_only():
    with pytest.raises(DataError, match=r"7 missing .* \(rows 0, 1, 2, 3, 4, \.\.\.\)"):
        factorize([None] * 7 + ["a"], what="side table")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ("store", "must hold one id per row, got 'store'"),
        (3, "must hold one id per row"),
        ([b"a"], "must be text, numbers, booleans, dates or tuples"),
        (np.array([1j]), "must be text, numbers"),
        (np.zeros((1, 1, 1)), "one id per row"),
        ([{"a": 1}, 3], "hashable"),
        (pa.array([{"a": 1}, {"a": 3}]), "hashable"),
        (np.array(["2024-05-01T00:00:00.000000001"], "M8[ns]"), "finer than a microsecond"),
        ([pd.Timestamp("2024-05-01T00:00:00.000000001")], "finer than a microsecond"),
    ],
)
def test_unusable_ids_say_what_is_wrong(values, sentence):
    with pytest.raises(DataError, match=sentence):
        factorize(values)


def test_lists_of_arrow_become_tuples():
    codes, ids = factorize(pa.array([["n", "1"], ["s", "1"], ["n", "1"]]))
    assert codes.tolist() == [0, 1, 0]
    assert ids.tolist() == [("n", "1"), ("s", "1")]


def test_no_rows_give_no_ids():
    for empty in ([], np.empty(0, int), pd.Series([], dtype=str), pa.chunked_array([], pa.int64())):
        codes, ids = factorize(empty)
        assert codes.shape == ids.shape == (0,)


small_ints = st.lists(st.integers(-3, 3), min_size=1, max_size=40)
wide_ints = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=40)


@given(st.one_of(small_ints, wide_ints))
def test_int_codes_equal_a_dictionary(values):
    index = {v: i for i, v in enumerate(dict.fromkeys(values))}
    codes, first = int_codes(np.array(values, np.int64))
    assert codes.tolist() == [index[v] for v in values]
    assert first.tolist() == [values.index(v) for v in index]


@given(st.lists(st.text(max_size=3), min_size=1, max_size=30))
def test_hashed_columns_equal_a_dictionary(values):
    index = {v: i for i, v in enumerate(dict.fromkeys(values))}
    expected = [index[v] for v in values], list(index)
    many, codes_module._MANY = codes_module._MANY, 1
    try:
        objects = object_codes(values)
        text = text_codes(np.array([v.rstrip("\0") for v in values]))
    finally:
        codes_module._MANY = many
    assert (objects[0].tolist(), objects[1]) == expected
    if not any(v.endswith("\0") for v in values):
        assert (text[0].tolist(), text[1]) == expected


def test_objects_that_share_a_hash_stay_apart(monkeypatch):
    monkeypatch.setattr(codes_module, "_MANY", 1)
    assert hash(-1) == hash(-2)
    codes, ids = factorize([-1, -2, -1])
    assert codes.tolist() == [0, 1, 0]
    assert ids.tolist() == [-1, -2]


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(0, 2))
def test_grouping_keeps_tasks_in_order_of_first_row_and_rows_in_order(values, empty):
    codes, ids = factorize(np.array(values, int))
    order, offsets = group_rows(codes, ids.size + empty)
    assert sorted(order.tolist()) == list(range(len(values)))
    assert offsets[0] == 0
    assert offsets[-1] == len(values)
    assert offsets.size == ids.size + empty + 1
    starts = [order[a] for a in offsets[: ids.size]]
    assert starts == sorted(starts)
    for t, task_id in enumerate(ids):
        rows = order[offsets[t] : offsets[t + 1]].tolist()
        assert rows == [i for i, v in enumerate(values) if v == task_id]


def test_grouping_many_tasks_is_a_stable_sort():
    codes = np.random.default_rng(0).integers(0, 70_000, 200_000)
    order, offsets = group_rows(codes, 70_000)
    assert order.dtype == offsets.dtype == np.int64
    assert np.array_equal(order, np.argsort(codes, kind="stable"))


def test_positions_are_minus_one_where_absent():
    assert positions(np.array(["a", "b"], object), ["b", "z", "a"]).tolist() == [1, -1, 0]
    assert positions([1, 2], [2.0, "2"]).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("known", "absent", "sentence"),
    [
        (["17"], [17], "Ids 17 (int) and '17' (str) do not match: convert one of them."),
        ([17], ["17"], "Ids '17' (str) and 17 (int) do not match: convert one of them."),
        ([17], ["17.0", " 17"], "Ids ' 17' (str) and 17 (int) do not match"),
        (["17"], [17.0], "Ids 17.0 (float) and '17' (str) do not match"),
        ([dt.datetime(2024, 5, 1)], [DAY], "(date) and 2024-05-01 00:00:00 (datetime)"),
        ([("a", "1")], [("a", 1)], "Ids ('a', 1) (tuple) and ('a', '1') (tuple) do not match"),
    ],
)
def test_ids_that_differ_only_by_type_are_explained(known, absent, sentence):
    assert sentence in explain_absent(known, absent, "the side table")


def test_absent_ids_are_counted_and_five_are_shown():
    text = explain_absent(["a"], list(range(7)), "the side table")
    assert text == "7 tasks are missing from the side table: 0, 1, 2, 3, 4 and 2 more."
    assert explain_absent([], ["z"], "x") == "1 task is missing from x: 'z'."


def test_ids_in_messages_read_well():
    assert show_id("store 17") == "'store 17'"
    assert show_id((DAY, "a")) == "(2024-05-01, 'a')"
    assert name_task("store 17") == "Task 'store 17'"
    assert name_task(None) == "The task"


def test_ids_spread_over_columns():
    assert {n: c.tolist() for n, c in id_columns(["a", "b"]).items()} == {"task": ["a", "b"]}
    wide = id_columns([("a", 1), ("b", 2)], ("store", "year"))
    assert {n: c.tolist() for n, c in wide.items()} == {"store": ["a", "b"], "year": [1, 2]}
    assert list(id_columns([("a", 1)], "t")) == ["t_0", "t_1"]
    assert list(id_columns([("a", 1), "b"], "t")) == ["t"]
    assert id_columns([1, 2], "t")["t"].dtype.kind == "i"
