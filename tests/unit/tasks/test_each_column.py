"""Errors about columns name all columns that have the same problem."""

import numpy as np
import pandas as pd
import pytest

import condmeta as cm
from condmeta.errors import DataError

rng = np.random.default_rng(0)
N = 40
SALES = pd.DataFrame({"store": np.repeat(list("abcdefghij"), 4), "price": rng.normal(size=N)})
SALES["sold"] = rng.normal(size=N)


def fit_rows(**columns):
    X = SALES[["price"]].assign(**columns)
    return cm.ConditionalRidge().fit(X, SALES["sold"], task=SALES["store"])


def fit_table(options=None, **columns):
    model = cm.TableModel(task="store", target="sold", **(options or {}))
    return model.fit(SALES.assign(**columns))


TEXT = ["north", "south"] * 20
GAP = np.where(np.arange(N) == 3, np.nan, 1.0)
SENTENCES = {
    "text": (
        lambda: fit_rows(a=TEXT, b=TEXT[::-1]),
        r"^Column 'a' holds text \('north', \.\.\.\), column 'b' holds text \('south', \.\.\.\); "
        "X must be numeric: encode it",
    ),
    "text in many columns": (
        lambda: fit_rows(**dict.fromkeys("abcdefg", TEXT)),
        r"column 'e' holds text \(.*\), and so on in 2 more columns; X must be numeric",
    ),
    "NaN": (
        lambda: fit_rows(a=GAP, b=GAP),
        r"^Task 'a' has NaN in column 'a' of X \(2 such values in 2 columns: 'a', 'b'; in 1 task",
    ),
    "absent": (
        lambda: fit_table({"features": ["price", "size", "age"]}),
        r"^Columns 'size', 'age' \(features\) are not in the table; it has 'store', 'price',",
    ),
    "two roles": (
        lambda: fit_table({"features": ["store", "price", "sold"]}),
        r"^Column 'store' has two roles, column 'sold' has two roles: a column can be only one of",
    ),
    "units": (
        lambda: fit_table(a=["EUR 5", "5"] * 20, b=["7", "7", "8%", "9"] * 10),
        r"^Column 'a' holds numbers in several units \('EUR 5' in row 1, '5' in row 2\), column "
        r"'b' holds numbers in several units \('7' in row 1, '8%' in row 3\): write all",
    ),
    "decimal sign": (
        lambda: fit_table(a=["1,904"] * N, b=["7", *["2,100"] * 39]),
        r"^Column 'a' holds '1,904' in row 1, which may be 1904 or 1.904, column 'b' holds '2,100' "
        r"in row 2, which may be 2100 or 2.1: set decimal= to",
    ),
    "names": (
        lambda: fit_table(a=[f"n{i}" for i in range(N)], b=[f"m{i}" for i in range(N)]),
        r"^Column 'a' holds 40 different texts in 40 rows .*, column 'b' holds 40 different .*: as "
        "categories they cannot help",
    ),
    "gaps of ids": (
        lambda: cm.TableModel(task=["a", "b"], target="sold").fit(
            SALES.assign(a=["x", None] * 20, b=["y", "z", None, "u"] * 10)
        ),
        r"^Column 'a' \(task\) is empty in 20 of 40 rows, first in row 2, column 'b' \(task\) is "
        r"empty in 10 of 40 rows, first in row 3: fill it",
    ),
    "side columns that vary": (
        lambda: fit_table({"side": ["a", "b"]}, a=np.arange(N), b=np.arange(N) % 2),
        r"^Side column 'a' varies within task 'a' \(0 and 1\), side column 'b' varies within "
        r"task 'a' \(0 and 1\): a side column must have one value",
    ),
    "side columns of dates": (
        lambda: cm.TaskTable(
            {c: np.array(["2024-01-01"], "datetime64[D]") for c in "st"}, ids=["a"]
        ),
        r"^Side column 's' holds dates, side column 't' holds dates: turn it into a number",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", SENTENCES)
def test_all_columns_with_a_problem_are_in_its_sentence(kind):
    call, sentence = SENTENCES[kind]
    with pytest.raises(DataError, match=sentence):
        call()


def test_other_problems_come_next():
    """Columns of dates are not named among those of text: they need another remedy."""
    day = pd.date_range("2024-01-01", periods=N)
    with pytest.raises(DataError, match=r"^Column 'a' holds text \('north', \.\.\.\); X must"):
        fit_rows(a=TEXT, b=day)


def test_dates_that_are_text_are_told_what_reads_them():
    with pytest.raises(
        DataError, match=r"'2024-01-01', \.\.\.\); X .* or take TableModel, which re"
    ):
        fit_rows(day=["2024-01-01", "2024-01-02"] * 20)


def test_repeated_columns_are_all_named():
    X = SALES[["price", "price", "sold", "sold", "sold"]]
    with pytest.raises(DataError, match=r"^Column 'price' occurs 2 times, column 'sold' occurs 3"):
        cm.ConditionalRidge().fit(X, SALES["sold"], task=SALES["store"])


def test_names_in_the_side_table_are_all_named():
    stores = pd.DataFrame({"store": list("abcdefghij") + [f"z{i}" for i in range(18)]})
    stores["name"], stores["street"] = stores["store"] + "!", stores["store"] + "?"
    model = cm.TableModel(task="store", target="sold")
    with pytest.raises(
        DataError, match=r"^Side column 'name' holds .*, side column 'street' holds"
    ):
        model.fit(SALES, stores)
    with pytest.warns(
        UserWarning, match=r"'name' holds .*, side column 'street' .*: they are left"
    ):
        model.fit(SALES, stores.assign(size=np.arange(28.0)))
