"""The automatic encoding of a raw side table."""

import warnings

import numpy as np
import pandas as pd
import pytest

from condmeta.errors import DataError
from condmeta.feature_maps.table_encoder import TableEncoder
from condmeta.tasks.side_table import read_side_row
from condmeta.tasks.task_table import TaskTable


def table(**columns):
    n_tasks = len(next(iter(columns.values())))
    return TaskTable(columns, ids=list(range(n_tasks)))


def test_numbers_have_mean_zero_and_variance_one():
    values = np.random.default_rng(0).normal(5, 3, size=50)
    Phi = TableEncoder().fit(t := table(s=values)).transform(t)
    assert Phi.shape == (50, 1)
    assert abs(Phi.mean()) < 1e-12
    assert Phi.std() == pytest.approx(1)


@pytest.mark.parametrize("value", [0.1, 1e8, -3.0])
def test_a_constant_number_becomes_zero(value):
    encoder = TableEncoder().fit(t := table(s=[value] * 7))
    assert encoder.scales_["s"] == 1.0
    assert encoder.transform(t).tolist() == [[0.0]] * 7


def test_gaps_sit_at_the_mean_with_an_indicator():
    encoder = TableEncoder().fit(t := table(s=[1.0, 3.0, None]))
    assert encoder.names_out_ == ("s", "s=(missing)")
    assert encoder.transform(t).tolist() == [[-1, 0], [1, 0], [0, 1]]


def test_gaps_seen_first_in_transform_go_to_the_mean():
    encoder = TableEncoder().fit(table(s=[1.0, 3.0], b=[True, True]))
    assert encoder.transform(read_side_row({"s": None, "b": None})).tolist() == [[0.0, 1.0]]


def test_a_column_of_gaps_alone_is_zero():
    Phi = TableEncoder().fit(t := table(s=[None, None])).transform(t)
    assert Phi.tolist() == [[0, 1], [0, 1]]


def test_booleans_are_zero_and_one():
    encoder = TableEncoder().fit(t := table(b=[True, False, True, True]))
    assert encoder.transform(t).ravel().tolist() == [1, 0, 1, 1]
    gaps = TableEncoder().fit(t := table(b=[True, False, None]))
    assert gaps.kinds_ == {"b": "boolean"}
    assert gaps.transform(t).tolist() == [[1, 0], [0, 0], [0.5, 1]]


def test_text_and_categories_are_one_hot_in_sorted_order():
    t = table(city=["Rome", "Bonn", "Rome"], grade=pd.Series(pd.Categorical([2, 1, 2])))
    encoder = TableEncoder().fit(t)
    assert encoder.names_out_ == ("city=Bonn", "city=Rome", "grade=1", "grade=2")
    assert encoder.transform(t).tolist() == [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    # a category that is a number may come back as a number
    row = read_side_row({"city": "Bonn", "grade": 2})
    assert encoder.transform(row).tolist() == [[1, 0, 0, 1]]


def test_missing_categories_are_a_level_if_seen_in_fit():
    encoder = TableEncoder().fit(t := table(city=["Rome", None]))
    assert encoder.names_out_ == ("city=Rome", "city=(missing)")
    assert encoder.transform(t).tolist() == [[1, 0], [0, 1]]
    without = TableEncoder().fit(table(city=["Rome", "Bonn"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert without.transform(read_side_row({"city": None})).tolist() == [[0, 0]]


def test_rare_levels_are_pooled_only_among_many():
    few = [f"c{i}" for i in range(20)]
    assert len(TableEncoder().fit(table(city=few)).names_out_) == 20
    many = ["big"] * 3 + ["mid"] * 2 + [f"c{i:02d}" for i in range(30)]
    encoder = TableEncoder().fit(t := table(city=many))
    assert encoder.names_out_ == ("city=big", "city=mid", "city=(other)")
    assert encoder.transform(t)[:, 2].sum() == 30
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a pooled level was seen
        assert encoder.transform(t.take([34])).tolist() == [[0, 0, 1]]


def test_the_threshold_grows_with_the_number_of_tasks():
    many = ["big"] * 1970 + [f"c{i:02d}" for i in range(20) for _ in range(3)]
    encoder = TableEncoder().fit(table(city=many))
    assert encoder.names_out_ == ("city=big", "city=(other)")


def test_unseen_levels_are_zero_and_reported_once():
    encoder = TableEncoder().fit(table(city=["Rome", "Bonn"], kind=["x", "y"]))
    new = TaskTable({"city": ["Oslo", "Rome"], "kind": ["z", "x"]}, [7, 8])
    state = dict(vars(encoder))
    sentence = r"Side columns .* not seen in training.*'city': 'Oslo' \(1\); 'kind': 'z' \(1\)\."
    with pytest.warns(UserWarning, match=sentence) as caught:
        Phi = encoder.transform(new)
    assert len(caught) == 1
    assert Phi.tolist() == [[0, 0, 0, 0], [0, 1, 1, 0]]
    assert encoder.unseen_levels(new) == {"city": {"Oslo": 1}, "kind": {"z": 1}}
    assert vars(encoder) == state


def test_columns_are_matched_by_name():
    encoder = TableEncoder().fit(table(s=[1.0, 3.0], t=[0.0, 4.0]))
    assert encoder.transform(read_side_row({"t": 0.0, "s": 3.0})).tolist() == [[1.0, -1.0]]
    with pytest.raises(DataError, match="lacks 't'"):
        encoder.transform(read_side_row({"s": 1.0}))


def test_text_where_fit_saw_numbers_is_refused():
    encoder = TableEncoder().fit(table(s=[1.0, 3.0]))
    with pytest.raises(DataError, match=r"'s' held numbers in fit and holds text \('big'"):
        encoder.transform(read_side_row({"s": "big"}))


def test_infinity_names_task_and_column():
    with pytest.raises(DataError, match="Task 1 has infinity in side column 's'"):
        TableEncoder().fit(table(s=[1.0, np.inf]))


def test_a_table_without_columns_gives_no_features():
    empty = TaskTable({}, [1, 2])
    assert TableEncoder().fit(empty).transform(empty).shape == (2, 0)


def test_rows_of_tasks_keep_their_units():
    rows = table(x=[1.0, 3.0, None], city=["Rome", "Rome", None])
    encoder = TableEncoder(of_rows=True).fit(rows)
    assert encoder.names_out_ == ("x", "x=(missing)", "city=Rome", "city=(missing)")
    assert encoder.transform(rows).tolist() == [[1, 0, 1, 0], [3, 0, 1, 0], [2, 1, 0, 1]]
    new = TaskTable({"x": [1.0, 2.0], "city": ["Oslo", "Oslo"]}, [0, 1])
    with pytest.warns(UserWarning, match=r"^Columns hold levels .*'city': 'Oslo' \(2\)\."):
        encoder.transform(new)
    with pytest.raises(DataError, match="Row 2 has infinity in column 'x'"):
        TableEncoder(of_rows=True).fit(table(x=[1.0, np.inf]))
    with pytest.raises(DataError, match=r"^Column 'x' held numbers in fit and holds text"):
        encoder.transform(TaskTable({"x": ["big"], "city": ["Rome"]}, [0]))
