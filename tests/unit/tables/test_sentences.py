"""Values that a table model cannot read: the error names the column, the row and the remedy."""

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

import condmeta as cm
from condmeta.errors import DataError

rng = np.random.default_rng(0)
SALES = pd.DataFrame({"store": np.repeat(np.arange(12), 6), "price": rng.normal(size=72)})
SALES["sold"] = SALES["price"] + rng.normal(size=72)


def fit(**columns):
    model = cm.TableModel(cm.PooledRegressor(), task="store", target="sold")
    return model.fit(SALES.assign(**columns))


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ([[1]] * 72, r"Column 'c' holds objects \(of type list\): it must hold numbers"),
        ([{"a": 1}] * 72, r"Column 'c' holds objects \(of type dict\): it must hold numbers"),
        (pd.Timedelta("1D"), "'c' holds durations: turn it into a number, such as the hours"),
        ([timedelta(1)] * 71 + [None], "'c' holds durations: turn it into a number"),
        ([1.0] * 71 + ["x"], r"Column 'c' mixes text and numbers \('x' and 1.0\): make it one"),
    ],
)
def test_a_column_of_other_things(column, sentence):
    with pytest.raises(DataError, match=sentence):
        fit(c=column)


def test_ids_that_are_lists():
    with pytest.raises(DataError, match="An id must be hashable: unhashable type: 'list'"):
        fit(store=[[1]] * 72)


def test_text_where_numbers_were_names_the_row():
    rows = SALES[:3].assign(price=["cheap", "2", "3"])
    with pytest.raises(
        DataError, match=r"'price' held .* text \('cheap', \.\.\.\) now, first in row 1: turn it"
    ):
        fit().predict(rows)


def test_a_target_of_numbers_as_text():
    with pytest.raises(DataError, match=r"'sold' \(target\) holds numbers as text .*: turn it in"):
        fit(sold=SALES["sold"].astype(str))


def test_classes_have_no_intervals():
    bought = np.where(SALES["sold"] > 0, "yes", "no")
    model = cm.TableModel(cm.PooledClassifier(), task="store", target="sold")
    model = model.fit(SALES.assign(sold=bought))
    with pytest.raises(DataError, match=r"Intervals are for numbers: .* have probabilities"):
        model.predict(SALES, coverage=0.9)
