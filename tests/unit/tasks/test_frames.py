"""Every DataFrame library is read alike, and the same kind comes back."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from condmeta.errors import DataError
from condmeta.tasks import frames

BACKENDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
COLUMNS = {"a": [1, 2, 3], "b": [0.5, None, 1.5], "c": [True, False, True], "t": ["u", None, "v"]}


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture
def frame(backend):
    return BACKENDS[backend](COLUMNS)


def test_libraries_are_recognised(frame, backend):
    series = frames.get_series(frame, "a")
    assert frames.is_frame(frame)
    assert not frames.is_series(frame)
    assert frames.is_series(series)
    assert not frames.is_frame(series)
    assert frames.backend_of(frame) == frames.backend_of(series) == backend


@pytest.mark.parametrize("obj", [None, 1, "a", [1], (1,), {"a": 1}, np.ones(2), np.float64(1), dt])
def test_other_objects_are_not_frames(obj):
    assert not frames.is_frame(obj)
    assert not frames.is_series(obj)
    assert frames.backend_of(obj) is None


def test_lazy_frames_and_record_batches_are_read():
    lazy = pl.LazyFrame({"a": [1, 2]})
    batch = pa.table({"a": [1, 2]}).to_batches()[0]
    for table in (lazy, batch):
        assert frames.is_frame(table)
        assert frames.numeric_matrix(table).tolist() == [[1.0], [2.0]]
    assert frames.backend_of(lazy) == "polars"


def test_columns_become_arrays(frame):
    assert frames.column_names(frame) == ["a", "b", "c", "t"]
    assert frames.get_column(frame, "a").dtype == np.int64
    np.testing.assert_array_equal(frames.get_column(frame, "b"), [0.5, np.nan, 1.5])
    assert frames.get_column(frame, "c").dtype == bool
    assert frames.get_column(frame, "t").tolist() == ["u", None, "v"]


def test_columns_are_dropped_and_selected(frame, backend):
    left = frames.drop_columns(frame, ["a", "t"])
    assert frames.column_names(left) == ["b", "c"]
    assert frames.backend_of(left) == backend
    assert frames.column_names(frames.select_columns(frame, ["c", "a"])) == ["c", "a"]


def test_numeric_matrix_is_c_contiguous_with_nan_for_gaps(frame):
    X = frames.numeric_matrix(frame, ["b", "c", "a"])
    assert X.flags.c_contiguous
    np.testing.assert_array_equal(X, [[0.5, 1, 1], [np.nan, 0, 2], [1.5, 1, 3]])


def test_numeric_matrix_of_many_rows_equals_the_columns():
    values = np.random.default_rng(0).normal(size=(70_000, 3))
    X = frames.numeric_matrix(pd.DataFrame(values))
    np.testing.assert_array_equal(X, values)
    assert X.flags.c_contiguous


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([1, None], dtype="Int64"),
        pd.Series([1, None], dtype="Float64"),
        pd.Series([1, None], dtype="int64[pyarrow]"),
        pd.Series([1, None], dtype=object),
        pl.Series([1, None]),
        pl.Series([decimal.Decimal(1), None]),
        pa.array([1, None]),
        pa.chunked_array([[decimal.Decimal(1), None]]),
    ],
)
def test_gaps_among_numbers_are_nan(series):
    values = frames.to_floats(frames.to_array(series), "Column 'a'")
    np.testing.assert_array_equal(values, [1.0, np.nan])


def test_text_in_x_names_the_column_and_the_remedy(frame):
    sentence = (
        r"Column 't' holds text \('u', \.\.\.\); X must be numeric: "
        r"encode it, or take TableModel, which reads text; or move it to the side table, or, if it "
        r"names the task, pass it as task=\."
    )
    with pytest.raises(DataError, match=sentence):
        frames.numeric_matrix(frame)


def test_dates_categories_and_objects_are_not_numbers(backend):
    make = BACKENDS[backend]
    with pytest.raises(DataError, match=r"Column 'd' holds dates; X .* TableModel, which reads"):
        frames.numeric_matrix(make({"d": [dt.datetime(2024, 5, 1)]}))
    with pytest.raises(DataError, match="Column 'l' holds objects"):
        frames.numeric_matrix(make({"l": [[1, 2]]}))
    with pytest.raises(DataError, match="holds text"):
        frames.numeric_matrix(pd.DataFrame({"k": pd.Categorical([1, 2])}))


def test_duplicate_and_unknown_columns_are_named(frame):
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(DataError, match="Column 'a' occurs 2 times: rename"):
        frames.numeric_matrix(twice)
    with pytest.raises(DataError, match=r"Column 'z' \(target\) is not in the table; it has 'a'"):
        frames.require_columns(frame, ["a", "z"], "target")


def test_a_pandas_index_level_counts_as_a_column():
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index(["u", "v"], name="store"))
    assert list(frames.get_series(frame, "store")) == ["u", "v"]


def test_make_frame_gives_the_wanted_kind(backend):
    columns = {"a": np.array([1.0, 2.0]), "t": np.array(["u", None], object)}
    frame = frames.make_frame(columns, backend)
    assert frames.backend_of(frame) == backend
    assert frames.get_column(frame, "a").tolist() == [1.0, 2.0]
    assert frames.get_column(frame, "t").tolist() == ["u", None]
    days = np.array([dt.date(2024, 5, 1), dt.date(2024, 5, 2)], object)
    assert frames.column_names(frames.make_frame({"d": days}, backend)) == ["d"]


def test_make_frame_without_a_library_prefers_pandas_then_falls_back(monkeypatch):
    columns = {"a": np.array([1.0, 2.0]), "t": np.array(["u", "v"], object)}
    assert isinstance(frames.make_frame(columns), pd.DataFrame)
    monkeypatch.setattr(frames, "_importable", lambda name: name == "pyarrow")
    assert isinstance(frames.make_frame(columns), pa.Table)
    monkeypatch.setattr(frames, "_importable", lambda name: False)
    record = frames.make_frame(columns)
    assert record.dtype.names == ("a", "t")
    assert record["t"].tolist() == ["u", "v"]


@pytest.mark.parametrize("name", ["polars", "pyarrow"])
def test_mixed_types_are_refused_where_a_table_cannot_hold_them(name):
    with pytest.raises(DataError, match=r"Column 't' mixes types \(int, str\)"):
        frames.make_frame({"t": np.array([1, "a"], object)}, name)
