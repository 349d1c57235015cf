"""`--task region,store`: the region may be in the side table alone."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner

import condmeta as cm
from condmeta.cli.app import app
from condmeta.errors import DataError, ReadingNote


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    store = np.arange(24)
    stores = pd.DataFrame({"store": store, "region": [f"r{i % 6}" for i in store]})
    stores["size"] = rng.normal(size=24).round(3)
    rows = pd.DataFrame({"store": np.repeat(store, 6), "price": rng.normal(size=144).round(3)})
    rows["sold"] = rows["price"] + stores["size"].to_numpy()[rows["store"]]
    rows["sold"] = (rows["sold"] + 0.1 * rng.normal(size=144)).round(3)
    return rows, stores


KINDS = {"pandas": lambda t: t, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}


@pytest.mark.parametrize("kind", KINDS)
def test_a_region_is_looked_up_in_the_side_table(tables, kind):
    rows, stores = tables
    make = KINDS[kind]
    model = cm.TableModel(cm.ConditionalLevels(), task=["region", "store"], target="sold")
    with pytest.warns(ReadingNote, match=r"^The table has no column 'region': it is read from"):
        model.fit(make(rows), make(stores))
    by_hand = cm.TableModel(cm.ConditionalLevels(), task=["region", "store"], target="sold")
    joined = rows.merge(stores[["store", "region"]], on="store")
    by_hand.fit(make(joined), make(stores))
    expected = by_hand.predict(make(joined))
    np.testing.assert_array_equal(model.predict(make(rows)), expected)  # known stores
    np.testing.assert_array_equal(model.predict(make(rows), make(stores)), expected)
    new = pd.DataFrame({"store": [99], "price": [1.0]})
    side = pd.DataFrame({"store": [99], "region": ["r2"], "size": [0.5]})
    assert np.isfinite(model.predict(make(new), make(side))).all()


def test_an_index_of_rows_does_not_matter(tables):
    rows, stores = tables
    model = cm.TableModel(cm.ConditionalLevels(), task=["region", "store"], target="sold")
    with pytest.warns(ReadingNote):
        model.fit(rows, stores)
    mixed = rows.sample(frac=1, random_state=0)
    expected = pd.Series(model.predict(rows), rows.index)
    np.testing.assert_allclose(model.predict(mixed), expected[mixed.index])


def test_what_cannot_be_looked_up_has_a_sentence(tables):
    rows, stores = tables
    model = cm.TableModel(cm.ConditionalLevels(), task=["region", "store"], target="sold")
    twice = pd.concat([stores, stores[:1].assign(region="r5")])
    with pytest.raises(DataError, match=r"and store 0 is in 'r0' and in 'r5' in the side table: "):
        model.fit(rows, twice)
    with pytest.raises(DataError, match=r"there is no store 23 in the side table: add 'region' to"):
        model.fit(rows, stores[:-1])
    with pytest.raises(DataError, match=r"^Column 'region' \(task\) is not in the table"):
        model.fit(rows, stores.drop(columns="region"))
    with pytest.warns(ReadingNote):
        model.fit(rows, stores)
    with pytest.raises(DataError, match=r"there is no store 77 among the known tasks: add"):
        model.predict(pd.DataFrame({"store": [77], "price": [0.0]}))


def test_the_command_looks_into_the_side_table(tables, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for table, name in zip(tables, ("rows.csv", "stores.csv"), strict=True):
        table.to_csv(name, index=False)
    words = "fit rows.csv --task region,store --target sold --side-table stores.csv -o m.condmeta"
    done = CliRunner().invoke(app, [*words.split(), "--learner", "levels"])
    assert done.exit_code == 0, done.output
    assert (
        "The table has no column 'region': it is read from the side table, by store" in done.output
    )
    done = CliRunner().invoke(app, ["predict", "m.condmeta", "rows.csv", "-o", "p.csv"])
    assert done.exit_code == 0, done.output
    assert len(pd.read_csv("p.csv")) == 144
