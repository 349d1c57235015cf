"""Rows that a model holds already are recognised."""

import numpy as np
import pandas as pd
import pytest

import condmeta as cm
from condmeta.errors import DataError


@pytest.fixture
def sales():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"store": np.repeat(list("abcdefghijklmno"), 4), "price": rng.normal(size=60)}
    )
    return table.assign(sold=2 * table["price"] + rng.normal(size=60))


def stores():
    return pd.DataFrame(
        {"size": range(17)}, index=pd.Index(list("abcdefghijklmnopq"), name="store")
    )


def test_rows_in_another_order_are_the_same_rows(sales):
    model = cm.TableModel(task="store", target="sold").fit(sales[:48])
    monday = sales[48:]
    model.update(monday)
    with pytest.raises(DataError, match="The model already holds these 12 rows"):
        model.update(monday.sample(frac=1, random_state=1))
    model.update(monday.assign(sold=monday["sold"] + 1e-9))  # other labels


def test_the_rows_of_fit_are_held_too(sales):
    """Tasks without rows, which the side table has, do not matter."""
    model = cm.TableModel(task="store", target="sold").fit(sales, stores())
    with pytest.raises(DataError, match="The model already holds these 60 rows"):
        model.update(sales[::-1])


def test_the_same_row_twice_is_not_the_row_once(sales):
    model = cm.TableModel(task="store", target="sold").fit(sales[:48])
    monday = sales[48:]
    model.update(monday)
    model.update(pd.concat([monday, monday[:1]]))


def test_single_rows_of_a_stream_may_repeat(sales):
    """A sensor that reports the same values again is right; two rows of it are a table."""
    model = cm.TableModel(task="store", target="sold").fit(sales)
    before = model.added_
    for _ in range(3):
        model.update(sales[:1])
    assert (model.n_rows_, model.added_) == (63, before)


def test_again_adds_the_same_rows(sales):
    model = cm.TableModel(task="store", target="sold").fit(sales)
    with pytest.raises(DataError, match="Give new rows, or set again=True if"):
        model.update(sales)
    assert model.n_rows_ == 60
    assert model.update(sales, again=True).n_rows_ == 120
