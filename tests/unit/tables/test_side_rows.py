"""Side information of a table model as dicts: of id -> row, and the row of one new task."""

import numpy as np
import pandas as pd
import pytest

import condmeta as cm
from condmeta.errors import DataError, ReadingNote

FIXED = {"metric": "identity", "noise": "shared", "kappa": 1.0, "context": False}
LEARNER = cm.ConditionalRidge(**FIXED, cold_start="prior", x_transform=None, y_transform=None)
ROW = {"size": 1.0, "town": "Bonn", "opened": pd.Timestamp("2021-03-01")}


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    stores = pd.DataFrame({
        "store": [f"{t:03d}" for t in range(20)], "size": rng.normal(size=20),
        "town": rng.choice(["Bonn", "Rome"], 20),
        "opened": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 20), "D"),
    })  # fmt: skip
    sales = pd.DataFrame({"store": np.repeat(stores["store"], 6), "price": rng.normal(size=120)})
    sales["sold"] = sales["price"] + rng.normal(size=120)
    return sales.reset_index(drop=True), stores


@pytest.fixture(scope="module")
def model(tables):
    with pytest.warns(ReadingNote):
        return cm.TableModel(LEARNER, task="store", target="sold").fit(*tables)


def test_dates_in_a_dict_of_rows_are_read_as_in_a_table(tables, model):
    new = tables[0][:2].assign(store="new")
    expected = model.predict(new, pd.DataFrame([{"store": "new"} | ROW]))
    np.testing.assert_array_equal(model.predict(new, {"new": ROW}), expected)


def test_fit_takes_a_dict_of_rows_with_dates(tables, model):
    sales, stores = tables
    rows = stores.set_index("store").to_dict("index")
    with pytest.warns(ReadingNote, match="'opened' holds dates"):
        by_dict = cm.TableModel(LEARNER, task="store", target="sold").fit(sales, rows)
    np.testing.assert_array_equal(by_dict.predict(sales), model.predict(sales))


def test_rows_of_a_dict_with_other_columns_are_named(tables, model):
    new = tables[0][:2].assign(store=["new", "old"])
    with pytest.raises(DataError, match="Task 'old' has the side columns size"):
        model.predict(new, {"new": ROW, "old": {"size": 1.0}})


def test_explain_takes_the_row_of_a_new_task(model):
    by_table = model.explain(pd.DataFrame([{"store": "new"} | ROW]))
    found = model.explain(ROW)
    np.testing.assert_array_equal(found.theta, by_table.theta)
    assert str(found).startswith("The new task starts at")
    assert model.explain({"store": "new"} | ROW).theta.tolist() == by_table.theta.tolist()
    with pytest.raises(DataError, match="The side table lacks 'opened'; it has 'size', 'town'"):
        model.explain({"size": 1.0, "town": "Bonn"})


def test_a_row_without_its_task_is_refused_where_rows_have_tasks(tables, model):
    with pytest.raises(DataError, match=r"is one row, and does not say .* with the column 'store'"):
        model.predict(tables[0][:1].assign(store="new"), ROW)


def test_explain_takes_lists_by_id(tables):
    sales, stores = tables
    sizes = {task: [size] for task, size in zip(stores["store"], stores["size"], strict=True)}
    model = cm.TableModel(LEARNER, task="store", target="sold").fit(sales, sizes)
    np.testing.assert_array_equal(
        model.explain({"new": [1.0]}).theta, model.explain({"s0": 1.0}).theta
    )
    with pytest.raises(DataError, match="side_info is an empty dict"):
        model.explain({})


@pytest.mark.parametrize("gap", [None, np.nan, pd.NaT])
def test_a_dict_of_rows_may_lack_all_dates(tables, model, gap):
    new, row = tables[0][:2].assign(store="new"), {"size": 1.0, "town": None, "opened": gap}
    expected = model.predict(new, pd.DataFrame([{"store": "new"} | row]).astype({"opened": object}))
    np.testing.assert_array_equal(model.predict(new, {"new": row}), expected)
    assert np.isfinite(model.explain(row).theta).all()


@pytest.mark.parametrize("task", ["ab", "new", ("a", "b", "c")])
def test_ids_of_a_dict_have_a_part_for_each_task_column(tables, task):
    sales, stores = (table.assign(region="r") for table in tables)
    with pytest.warns(ReadingNote):
        model = cm.TableModel(LEARNER, task=["region", "store"], target="sold").fit(sales, stores)
    with pytest.raises(DataError, match="and an id is a tuple of the columns 'region', 'store'"):
        model.predict(sales[:1].assign(store="new"), {task: ROW})
