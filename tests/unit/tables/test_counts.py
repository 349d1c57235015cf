"""Tables of counts, shares and ordered classes: found, read, predicted, stored, by command."""

import sqlite3

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import condmeta as cm
from condmeta.cli.app import app
from condmeta.errors import DataError, ReadingNote
from condmeta.tables.values import looks_like_counts

ORDER = ["bad", "fair", "good"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    shop, size = np.repeat(np.arange(30), 8), rng.normal(size=30)
    price, days = rng.normal(size=240), rng.integers(1, 6, size=240)
    rate = np.exp(0.3 * size[shop] - 0.5 * price)
    latent = size[shop] - price + rng.logistic(size=240)
    return pd.DataFrame({
        "shop": [f"s{t}" for t in shop], "size": size[shop], "price": price, "days": days,
        "sold": rng.poisson(days * rate), "hits": rng.binomial(days, 1 / (1 + np.exp(-latent))),
        "rating": np.array(ORDER)[np.digitize(latent, [-1, 1])],
    })  # fmt: skip


ROLES = {"task": "shop", "features": ["price"], "side": ["size"]}


def test_counts_are_found_and_said(table):
    model = cm.TableModel(target="sold", **ROLES)
    with pytest.warns(ReadingNote, match=r"^The target 'sold' holds counts, so Cond"):
        model.fit(table)
    assert isinstance(model.learner_, cm.ConditionalCount)
    assert model.schema_.kind == "count"
    assert 0 < model.score(table) < 1
    ridge = cm.TableModel(cm.ConditionalRidge(), target="sold", **ROLES)
    with pytest.warns(ReadingNote, match=r"^The model predicts medians of 'sold', which is skewed"):
        ridge.fit(table)
    assert ridge.schema_.kind == "number"


def test_exposure(table, tmp_path):
    model = cm.TableModel(target="sold", exposure="days", **ROLES).fit(table)
    direct = cm.ConditionalCount().fit(
        table[["price"]], table["sold"], task=table["shop"], exposure=table["days"],
        side_info=table.groupby("shop")[["size"]].first(),
    )  # fmt: skip
    want = direct.predict(table[["price"]], task=table["shop"], exposure=table["days"])
    np.testing.assert_allclose(model.predict(table), want, rtol=1e-6)
    shuffled = table.sample(frac=1.0, random_state=0)
    np.testing.assert_allclose(model.predict(shuffled), want[shuffled.index], rtol=1e-6)
    model.save(tmp_path / "model.condmeta")
    again = cm.load(tmp_path / "model.condmeta")
    found = again.predict_frame(table, coverage=0.9)
    np.testing.assert_allclose(found["prediction"], want, rtol=1e-6)
    inside = (table["sold"] >= found["lower"]) & (table["sold"] <= found["upper"])
    assert inside.mean() > 0.88
    assert (found["median"] <= found["upper"]).all()
    with pytest.raises(DataError, match="days"):
        again.predict(table.drop(columns="days"))
    models = again.adapt(table)
    assert len(models) == 30


def test_trials(table):
    model = cm.TableModel(target="hits", trials="days", **ROLES).fit(table)
    assert isinstance(model.learner_, cm.ConditionalLogistic)
    shares = model.predict(table.drop(columns="days"))
    assert np.corrcoef(shares, table["hits"] / table["days"])[0, 1] > 0.5
    assert ((shares > 0) & (shares < 1)).all()
    with pytest.raises(DataError, match=r"^Shares of trials have no score"):
        model.score(table)


def test_ordered_classes(table, tmp_path):
    ordered = table.assign(rating=pd.Categorical(table["rating"], ORDER, ordered=True))
    model = cm.TableModel(target="rating", **ROLES).fit(ordered)
    assert isinstance(model.learner_, cm.ConditionalOrdinal)
    assert model.schema_.classes == ORDER
    named = cm.TableModel(cm.ConditionalOrdinal(classes=ORDER), target="rating", **ROLES).fit(table)
    np.testing.assert_array_equal(named.predict(table), model.predict(table))
    assert model.score(table) > 0.5
    model.save(tmp_path / "model.condmeta")
    found = cm.load(tmp_path / "model.condmeta").predict_frame(table)
    parts = found[[f"probability of {name}" for name in ORDER]]
    np.testing.assert_allclose(parts.sum(axis=1), 1.0)
    assert (found["prediction"] == np.array(ORDER)[parts.to_numpy().argmax(axis=1)]).all()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"target": "sold", "exposure": "none"}, r"'none'"),
        ({"target": "sold", "exposure": "days", "trials": "days"}, r"^Give exposure"),
        ({"target": "sold", "trials": "days"}, r"has \d+ successes in \d trials: with"),
        ({"learner": cm.ConditionalRidge(), "target": "sold", "exposure": "days"},
         r"^An exposure is for counts: use ConditionalCount"),
        ({"learner": cm.ConditionalOrdinal(), "target": "rating"}, r"texts, which have no order"),
    ],
)  # fmt: skip
def test_sentences(table, given, sentence):
    with pytest.raises(DataError, match=sentence):
        cm.TableModel(given.pop("learner", None), **ROLES, **given).fit(table)


def test_no_exposure_in_a_row(table):
    odd = table.assign(days=np.where(table.index == 9, 0, table["days"]))
    with pytest.raises(DataError, match=r"^Task 's1', row 9, has exposure 0: the expected count"):
        cm.TableModel(target="sold", exposure="days", **ROLES).fit(odd)


def test_commands(table, tmp_path):
    table.to_csv(tmp_path / "t.csv", index=False)
    run, model = CliRunner(), str(tmp_path / "m.condmeta")
    common = ["--task", "shop", "--features", "price", "--side", "size", "-o", model, "--force"]
    found = run.invoke(app, ["fit", str(tmp_path / "t.csv"), "--target", "sold", *common])
    assert found.exit_code == 0, found.output
    assert "holds counts, so ConditionalCount" in found.output
    for options, learner in (
        (["--target", "sold", "--exposure", "days"], "ConditionalCount"),
        (["--target", "sold", "--learner", "count"], "ConditionalCount"),
        (["--target", "sold", "--learner", "ridge"], "ConditionalRidge"),
        (["--target", "hits", "--trials", "days"], "ConditionalLogistic"),
        (["--target", "rating", "--learner", "ordinal", "--classes", ",".join(ORDER)],
         "ConditionalOrdinal"),
    ):  # fmt: skip
        found = run.invoke(app, ["fit", str(tmp_path / "t.csv"), *options, *common])
        assert found.exit_code == 0, found.output
        assert f"{learner} of" in found.output
        out = str(tmp_path / "p.csv")
        found = run.invoke(app, ["predict", model, str(tmp_path / "t.csv"), "-o", out, "--force"])
        assert found.exit_code == 0, found.output
        assert len(pd.read_csv(out)) == 240
    found = run.invoke(
        app, ["fit", str(tmp_path / "t.csv"), "--target", "rating", "--classes", "a,b", *common]
    )
    assert found.exit_code == 1
    assert "--classes and --learner ordinal go together" in found.output


def test_what_looks_like_counts():
    rng = np.random.default_rng(0)
    assert looks_like_counts(rng.poisson(1.0, size=200).astype(float))
    assert not looks_like_counts(rng.poisson(40.0, size=200).astype(float))
    assert not looks_like_counts(rng.integers(0, 11, size=200).astype(float))  # a score
    assert not looks_like_counts(np.array([0.0, 1.5, 9.0]))
    assert not looks_like_counts(np.zeros(5))
    assert not looks_like_counts(np.array([-1.0, 0, 9]))


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
@pytest.mark.parametrize("exposure", [None, "days"])
def test_counts_in_sql(table, tmp_path, dialect, exposure):
    """Known tasks, new tasks, exposures, and means that leave the range of numbers."""
    duckdb = pytest.importorskip("duckdb")
    old = table[table["shop"] < "s4"]
    model = cm.TableModel(
        cm.ConditionalCount(), target="sold", exposure=exposure, **ROLES
    ).fit(old)  # fmt: skip
    cm.export(model, tmp_path, dialect)
    rows = table.assign(position=np.arange(len(table)))
    rows.loc[:9, "price"] = np.linspace(-1800, 900, 10)
    side = rows.groupby("shop", as_index=False)[["size"]].first()
    coefficients = pd.read_parquet(tmp_path / "coefficients.parquet")
    query = (tmp_path / "score.sql").read_text()
    if dialect == "duckdb":
        found = duckdb.sql(query).df().sort_values("position")["prediction"]
    else:
        con = sqlite3.connect(":memory:")
        for name, frame in (("rows", rows), ("side", side), ("coefficients", coefficients)):
            frame.to_sql(name, con, index=False)
        found = pd.read_sql(query, con)["prediction"]
    with pytest.warns(UserWarning, match="9 rows of 240 have a number far outside"):
        expected = model.predict(rows)
    assert expected.max() > 1e303
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(DataError, match="are for ConditionalRidge without drift"):
        model.to_sql(std=True)
