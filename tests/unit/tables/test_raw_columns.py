"""Dates and numbers written as text: found in fit, said in a note, read alike in predict."""

from __future__ import annotations

import warnings
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest

import condmeta as cm
from condmeta.errors import DataError, ReadingNote
from condmeta.tables.dates import PARTS, find_dates
from condmeta.tables.written_numbers import find_numbers


def draw(n_tasks=25, n=8):
    rng = np.random.default_rng(1)
    store = np.repeat([f"s{t:02d}" for t in range(n_tasks)], n)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(
        np.append(0, rng.integers(0, 200, store.size - 1)), unit="D"
    )
    weekend = day.day_of_week.to_numpy() > 4
    price = rng.uniform(500, 3000, store.size).round(2)
    sold = 3.0 * weekend + price / 1000 + 0.1 * rng.normal(size=store.size)
    return pd.DataFrame({"store": store, "day": day, "price": price, "sold": sold})


SALES = draw()
WRITE = {  # how 1904.66 is written
    "point": lambda v: f"{v:,.2f}",
    "comma": lambda v: f"{v:,.2f}".translate({44: 46, 46: 44}),
    "currency": lambda v: f"EUR {v:.2f}",
    "symbol": lambda v: f"{v:.2f} €",
    "percent": lambda v: f"{v:.2f}%",
}


def model_of(**options):
    linear = cm.ConditionalRidge(x_transform=None, y_transform=None)
    return cm.TableModel(linear, task="store", target="sold", **options)


@pytest.fixture(scope="module")
def plain():
    """What the numbers themselves give, without the dates."""
    model = model_of(exclude=["day"]).fit(SALES)
    return model.predict(SALES)


@pytest.mark.parametrize("style", WRITE)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas])
def test_written_numbers_are_numbers(plain, style, make):
    frame = make(SALES.assign(price=SALES["price"].map(WRITE[style])))
    with pytest.warns(ReadingNote, match=r"Column 'price' is written as text: '.*' is read as the"):
        model = model_of(exclude=["day"]).fit(frame)
    assert model.schema_.feature_names == ["price"]
    np.testing.assert_allclose(model.predict(frame), plain, rtol=1e-9)


def test_a_written_target_and_side_column(plain):
    sold = SALES["sold"].round(3)
    number = model_of(exclude=["day"]).fit(SALES.assign(sold=sold))
    side = pd.DataFrame({"store": SALES["store"].unique()})
    side["share"] = [f"{v}%" for v in range(len(side))]
    with pytest.warns(ReadingNote) as notes:
        text = model_of(exclude=["day"]).fit(SALES.assign(sold=sold.map("{:.3f} USD".format)), side)
    assert {"'sold'", "'share'"} == {str(note.message).split()[1] for note in notes}
    assert text.learner_.side_features_ == ["share"]
    assert number.schema_.classes is text.schema_.classes is None


def test_later_rows_must_be_written_alike(tmp_path):
    frame = SALES.assign(price=SALES["price"].map(WRITE["percent"]))
    with pytest.warns(ReadingNote):
        model_of(exclude=["day"]).fit(frame).save(tmp_path / "m.condmeta")
    model = cm.load(tmp_path / "m.condmeta")
    assert model.card()["schema"]["read_as"]["price"].endswith("unit %")
    with pytest.raises(DataError, match=r"was written with % in fit, .* numbers without it now"):
        model.predict(SALES)
    odd = frame.assign(price=frame["price"].where(frame.index != 6, "much"))
    with pytest.raises(DataError, match=r"'price' holds 'much' in row 7, .* \(like '1.5%'\)"):
        model.predict(odd)


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (["1,904", "2,100"], r"'1,904', which may be 1904 or 1.904: set decimal= to"),
        (["EUR 5", "USD 6"], r"several units \('EUR 5', 'USD 6'\)"),
        (["12%", "0.12"], r"several units"),
    ],
)
def test_what_is_ambiguous_is_refused(texts, sentence):
    with pytest.raises(DataError, match=sentence):
        find_numbers(texts, "x")


@pytest.mark.parametrize(
    "texts", [["12", "13"], ["A1", "A2"], ["1.2.3", "4.5.6"], ["030 1234567"], ["7", "north"], []]
)
def test_codes_and_names_are_no_numbers(texts):
    assert find_numbers(texts, "x") is None


def test_the_side_table_has_a_decimal_sign_of_its_own():
    side = pd.DataFrame({"store": SALES["store"].unique(), "size": "1,904"})
    with pytest.raises(DataError, match=r"'1,904' in row 1, .* set decimal= to"):
        model_of(exclude=["day"]).fit(SALES, side)
    for options, size in (({"decimal": "."}, 1904), ({"decimal": ".", "side_decimal": ","}, 1.904)):
        with pytest.warns(ReadingNote, match=f"'1,904' is read as the number {size}"):
            model_of(exclude=["day"], **options).fit(SALES, side)


def test_decimal_decides():
    assert find_numbers(["1,904"], "x", decimal=".").decimal == "."
    assert find_numbers(["1,904", "2,5"], "x", decimal=".").decimal == ","  # the values know


@pytest.mark.parametrize("kind", ["datetime", "date", "text", "german", "zoned"])
def test_dates_are_weekday_month_and_days(tmp_path, kind):
    write = {
        "datetime": lambda day: day,
        "date": lambda day: day.dt.date,
        "text": lambda day: day.dt.strftime("%Y-%m-%d"),
        "german": lambda day: day.dt.strftime("%d.%m.%Y"),
        "zoned": lambda day: day.dt.tz_localize("Asia/Tokyo"),
    }[kind]
    frame = SALES.assign(day=write(SALES["day"]))
    with pytest.warns(ReadingNote, match="weekday, month and the days since 2024-01-01"):
        model = model_of(exclude=["price"], dates=PARTS).fit(frame)
    names = model.schema_.feature_names
    assert len(names) == 7 + 7 + 1
    X = model.schema_.matrix(frame)
    assert (X[:, names.index("day (weekday)=Sat")] == (SALES["day"].dt.day_of_week == 5)).all()
    assert (X[:, names.index("day (month)=Mar")] == (SALES["day"].dt.month == 3)).all()
    days = (SALES["day"] - pd.Timestamp("2024-01-01")).dt.days
    assert (X[:, names.index("day (days)")] == days).all()
    model.save(tmp_path / "m.condmeta")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = cm.load(tmp_path / "m.condmeta")
        np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
        later = frame[-1:].assign(day=write(pd.Series([pd.Timestamp("2024-06-30")])).to_list())
        at = again.schema_.matrix(later)[0]
    assert at[names.index("day (days)")] == 181


def test_months_are_features_once_all_twelve_were_seen():
    days = np.arange("2023-01-01", "2024-01-01", dtype="datetime64[D]")
    assert find_dates(days[:334], "day", None, None).parts == ["weekday", "days"]  # no December
    assert find_dates(days[:335], "day", None, None).parts == list(PARTS)
    assert find_dates(days, "opened", None, None, of_tasks=True).parts == ["days"]


def test_weekdays_help():
    with pytest.warns(ReadingNote):
        dated = model_of().fit(SALES)
    without = model_of(exclude=["day"]).fit(SALES)
    assert np.abs(dated.predict(SALES) - SALES["sold"]).mean() < 0.5 * (
        np.abs(without.predict(SALES) - SALES["sold"]).mean()
    )


def test_dates_of_the_side_table():
    side = pd.DataFrame({"store": SALES["store"].unique()})
    side["opened"] = pd.date_range("2001-01-01", periods=len(side), freq="40D")
    with pytest.warns(ReadingNote, match="'opened' holds dates"):
        model = model_of(exclude=["day"]).fit(SALES, side)
    assert model.learner_.side_features_ == ["opened (days)"]
    rows = SALES[:1].assign(store="new")
    assert np.isfinite(model.predict(rows, side[:1].assign(store="new"))).all()


def test_parts_of_dates_by_choice():
    with pytest.warns(ReadingNote, match="features are weekday and holidays of DE"):
        model = model_of(exclude=["price"], dates=["weekday"], holidays="DE").fit(SALES)
    names = model.schema_.feature_names
    new_year = SALES[:1].assign(day=pd.Timestamp("2024-01-01"))
    assert model.schema_.matrix(new_year)[0, names.index("day (holiday)")] == 1
    with pytest.raises(DataError, match="There are no holidays for 'XX'"):
        model_of(holidays="XX").fit(SALES)
    with pytest.raises(DataError, match=r"must name some of weekday, month, days. Got 'hour'"):
        model_of(dates=["hour"]).fit(SALES)
    with pytest.raises(DataError, match="Column 'day' holds dates"):
        model_of(dates=[]).fit(SALES)


def test_parts_that_never_vary_are_left_out():
    mondays = np.array(["2024-01-01", "2024-01-08"], "datetime64[D]")
    assert find_dates(mondays, "day", PARTS, None).parts == ["days"]
    assert find_dates(np.array([date(2024, 1, 1), None], object), "d", PARTS, None) is not None


def test_gaps_and_wrong_dates():
    gaps = SALES.assign(day=SALES["day"].where(SALES.index != 3))
    with pytest.warns(ReadingNote), pytest.raises(DataError, match=r"'day \(days\)' 1\. Fill them"):
        model_of().fit(gaps)
    with pytest.warns(ReadingNote):
        model = model_of(missing="impute").fit(gaps)
    assert np.isfinite(model.predict(gaps)).all()
    text = SALES[:3].assign(day=["2024-01-01", "soon", "2024-13-01"])
    with pytest.raises(
        DataError, match=r"'day' holds dates, but 'soon' in row 2: write it as 2024"
    ):
        model.predict(text)


def test_text_is_left_as_it_is_where_the_user_says_so():
    frame = SALES.assign(rate=[f"{v}%" for v in np.arange(len(SALES)) % 3])
    model = model_of(exclude=["day"], text=["rate"]).fit(frame)
    assert "rate=1%" in model.schema_.feature_names
    category = frame.assign(rate=frame["rate"].astype("category"))
    assert "rate=1%" in model_of(exclude=["day"]).fit(category).schema_.feature_names


def test_names_are_never_one_hot():
    few = pd.DataFrame({"store": list("aabbccddeeff"), "name": list("ABCDEFGHIJKL")})
    with pytest.raises(DataError, match="'name' holds 12 different texts in 12 rows"):
        model_of().fit(few.assign(sold=1.0 * few.index))
    side = pd.DataFrame({"store": SALES["store"].unique()})
    side["name"], side["size"] = [f"n{i}" for i in side.index], 1.0 * side.index
    with pytest.warns(UserWarning, match=r"Side column 'name' holds 25 different .* is left out"):
        model = model_of(exclude=["day"]).fit(SALES, side)
    assert model.learner_.side_features_ == ["size"]
    assert model.schema_.roles.side_table == ["size"]
    with pytest.raises(DataError, match=r"'name' holds 25 .*: give other side columns, or none"):
        model_of(exclude=["day"]).fit(SALES, side[["store", "name"]])


def test_warnings_point_to_the_line_of_the_user():
    with pytest.warns(ReadingNote) as notes:
        model_of().fit(SALES)
    model = model_of(exclude=["day"]).fit(SALES.assign(city=["Bonn", "Kiel"] * 100))
    with pytest.warns(UserWarning, match="levels not seen in training") as unseen:
        model.predict(SALES.assign(city="Oslo"))
    assert [note.filename for note in (*notes, *unseen)] == [__file__, __file__]


@pytest.mark.parametrize("name", ["day", "price"])
@pytest.mark.parametrize("empty", [np.nan, None])
def test_a_column_without_values_is_all_gaps(name, empty):
    """Pandas reads such a column of a file as NaN."""
    frame = SALES.assign(price=SALES["price"].map(WRITE["percent"]))
    frame.loc[::7, ["day", "price"]] = None
    with pytest.warns(ReadingNote):
        model = model_of(missing="impute").fit(frame)
    one = SALES[:2].assign(price=["900%", "800%"])
    expected = model.predict(one.assign(**{name: pd.Series([None, None], dtype=object)}))
    np.testing.assert_array_equal(model.predict(one.assign(**{name: empty})), expected)
