"""Which column has which role: one rule for Python and the command line."""

from __future__ import annotations

import pandas as pd
import pytest

import condmeta as cm
from condmeta.errors import DataError
from condmeta.persistence.registry import find_by_name
from condmeta.persistence.schema import Checker
from condmeta.tables.roles import ColumnOptions, Roles, assign_roles, read_side

SALES = pd.DataFrame({"store": ["a"], "day": [1], "price": [2.0], "size": [3.0], "sold": [4.0]})
STORES = pd.DataFrame({"store": ["a"], "size": [3.0], "opened": pd.to_datetime(["2024-01-01"])})


def assign(side_table=None, **options):
    return assign_roles(SALES, side_table, ColumnOptions("store", "sold", **options))


def test_features_are_the_columns_without_another_role():
    assert assign().features == ["day", "price", "size"]
    assert assign(exclude=["day"], side=["size"])[2:4] == (["price"], ["size"])
    assert assign(features="price").features == ["price"]


def test_a_stored_index_of_pandas_is_no_feature():
    """Parquet files of filtered frames have it as a column."""
    sales = pd.DataFrame(columns=["store", "price", "sold", "__index_level_0__"])
    stores = pd.DataFrame(columns=["store", "size", "__index_level_0__"])
    options = ColumnOptions("store", "sold")
    roles = assign_roles(sales, stores, options)
    assert (roles.features, roles.side_table) == (["price"], ["size"])
    named = options._replace(features=["__index_level_0__"])
    assert assign_roles(sales, stores, named).features == ["__index_level_0__"]


def test_the_sort_column_is_a_feature_only_if_named():
    assert assign(sort_by="day").features == ["price", "size"]
    assert assign(sort_by="day", features=["day", "price"]).features == ["day", "price"]
    with pytest.raises(DataError, match=r"Column 'date' \(sort by\) is not in the table"):
        assign(sort_by="date")


def test_side_columns_are_those_of_the_side_table_if_there_is_one():
    roles = assign(STORES, side=["size"])
    assert (roles.side, roles.side_table, roles.side_columns) == ([], ["size"], ["size"])
    assert "size" in roles.features
    assert assign(STORES).side_table == ["size", "opened"]
    named = STORES.rename(columns={"store": "key"})
    assert assign(named, side_key="key").side_table == ["size", "opened"]
    assert assign(STORES.rename_axis("id")).side_table == ["store", "size", "opened"]


def test_exclude_names_columns_of_either_table():
    roles = assign(STORES, exclude=["opened", "size"])
    assert (roles.features, roles.side_table) == (["day", "price"], [])
    table = read_side(STORES, assign(STORES, exclude=["opened"]))  # a date would be refused
    assert table.columns == ("size",)
    with pytest.raises(DataError, match=r"Column 'opend' \(exclude\) is not in the table"):
        assign(STORES, exclude=["opend"])
    with pytest.raises(DataError, match=r"Column 'kye' \(side key\) is not in the side table"):
        read_side(STORES, assign(STORES, side_key="kye"))


def test_older_files_hold_fewer_fields():
    old = {"task": ["store"], "target": "sold", "features": ["price"], "side": []}
    roles = Checker().restore(find_by_name("Columns"), dict(old))
    assert roles == Roles(**old, side_table=[], side_key=[])
    model = cm.TableModel(cm.PooledRegressor(), task="store", target="sold", features=["price"])
    many = pd.concat([SALES.assign(store=str(i), price=i, sold=1.0 * i) for i in range(12)])
    schema = model.fit(many).schema_
    state = vars(schema) | {"columns": roles, "side_columns": ["size"], "side_key": "key"}
    del state["roles"]
    again = Checker().restore(find_by_name("Schema"), state)
    assert again.roles == Roles(**old, side_table=["size"], side_key=["key"])
    assert again.side_table_text == ["key"]


def test_text_names_a_column_of_one_of_the_tables():
    with pytest.raises(DataError, match=r"Column 'shop' \(text\) is not in the table; it has"):
        assign(text=["shop"])
    assert assign(STORES, text=["store", "opened", "size"]).side_table == ["size", "opened"]


@pytest.mark.parametrize("kind", ["series", "array"])
def test_a_target_in_the_place_of_the_side_table_is_refused(kind):
    """As scikit-learn's tools pass it: fit(table, y)."""
    y = SALES["sold"] if kind == "series" else SALES["sold"].to_numpy()
    with pytest.raises(DataError, match=r"reads the target in its table and takes no y; .* Got a"):
        cm.TableModel(task="store", target="sold").fit(SALES, y)
