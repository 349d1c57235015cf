"""Queries that score rows: the same numbers as predict, in DuckDB and SQLite."""

import sqlite3

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.preprocessing import PolynomialFeatures

import condmeta as cm
from condmeta.cli.app import app
from condmeta.cli.export_command import DIALECTS as OFFERED
from condmeta.errors import DataError, ReadingNote
from condmeta.fitted.dialects import DIALECTS, find_dialect
from condmeta.fitted.sql import Tables, coefficient_columns

duckdb = pytest.importorskip("duckdb")
CITIES = ["Bonn", "O'Hara", 'say "hi"', "back\\slash"]


@pytest.fixture(scope="module")
def tables():
    """Sales of 60 stores, of which 12 are new, and facts about them with gaps and odd names."""
    rng = np.random.default_rng(0)
    stores = pd.DataFrame({"store": [f"s{i}" for i in range(60)], "size m2": rng.normal(50, 9, 60)})
    stores["city"] = np.array(CITIES)[np.arange(60) % 4]
    stores["open"] = rng.random(60) < 0.5
    stores.loc[[3, 7, 50], "size m2"] = np.nan
    stores.loc[[5, 51], "city"] = None
    task = np.repeat(np.arange(60), 6)
    sales = pd.DataFrame({"store": stores["store"].to_numpy()[task]})
    sales["year"] = 2000.0 + rng.integers(0, 20, len(task))
    sales["price"] = rng.uniform(1, 2, len(task))
    level = stores["size m2"].fillna(50).to_numpy()[task] / 10
    sales["sold"] = (
        level * sales["price"] + 0.1 * (sales["year"] - 2010) + rng.normal(size=len(task))
    )
    return sales[task < 48], sales[task >= 48], stores


def run(query, rows, coefficients, side=None):
    """Run a query in DuckDB; return the predictions in the order of the rows."""
    con = duckdb.connect()
    con.register("rows", rows.assign(position=np.arange(len(rows))))
    con.register("coefficients", pd.DataFrame(coefficients))
    if side is not None:
        con.register("side", side)
    return con.sql(query).df().sort_values("position")["prediction"].to_numpy()


@pytest.fixture(scope="module")
def model(tables):
    old, _, stores = tables
    return cm.ConditionalRidge().fit(
        old[["year", "price"]],
        old["sold"],
        task=old["store"],
        side_info=stores.set_index("store")[:48],
    )


def test_known_and_new_tasks_as_predict(model, tables):
    old, new, stores = tables
    both = pd.concat([new, old]).sample(frac=1.0, random_state=0)
    X = both[["year", "price"]]
    expected = model.predict(X, task=both["store"], side_info=stores.set_index("store"))
    found = run(model.to_sql(), both, coefficient_columns(model.fitted_), stores)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_large_means_lose_no_digits(tables):
    old, _, _ = tables
    far = old.assign(year=old["year"] + 1e9)
    model = cm.ConditionalRidge().fit(far[["year"]], far["sold"], task=far["store"])
    expected = model.predict(far[["year"]], task=far["store"])
    found = run(model.to_sql(), far, coefficient_columns(model.fitted_))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_labels_of_any_size(tables):
    old, _, _ = tables
    model = cm.ConditionalRidge().fit(old[["price"]], 1e150 * old["sold"], task=old["store"])
    expected = model.predict(old[["price"]], task=old["store"])
    found = run(model.to_sql(), old, coefficient_columns(model.fitted_))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_new_tasks_without_side_row(tables):
    old, new, stores = tables
    side, X = stores.set_index("store")[["size m2"]], old[["price"]]
    for missing, check in (("error", np.isnan), ("mean", np.isfinite)):
        model = cm.ConditionalRidge(missing_side=missing)
        model.fit(X, old["sold"], task=old["store"], side_info=side[:48])
        coefficients = coefficient_columns(model.fitted_)
        found = run(model.to_sql(), new, coefficients, stores[:48])
        assert check(found.astype(float)).all()
    expected = model.predict(new[["price"]], task=new["store"])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_table_model_with_levels_and_gaps(tables):
    old, new, stores = tables
    rng = np.random.default_rng(1)

    def with_columns(rows):
        rows = rows.assign(street=rng.choice([*CITIES, None], len(rows)))
        return rows.assign(price=rows["price"].where(rng.random(len(rows)) > 0.1))

    old, new = with_columns(old), with_columns(new)
    model = cm.TableModel(task="store", target="sold", missing="impute")
    model.fit(old, side_info=stores)
    both = pd.concat([old, new]).assign(street=lambda rows: rows["street"].replace("Bonn", "Kiel"))
    with pytest.warns(UserWarning, match="levels not seen in training"):
        expected = model.predict(both, side_info=stores)
    coefficients = coefficient_columns(model.learner_.fitted_)
    np.testing.assert_allclose(
        run(model.to_sql(), both, coefficients, stores), expected, rtol=1e-12
    )


def test_predictions_with_intervals_end_at_the_bounds_of_labels(tables):
    old, _, _ = tables
    old = old.assign(sold=(old["sold"] - old["sold"].median()).clip(0))  # half of all sell nothing
    linear = cm.ConditionalRidge(x_transform=None, y_transform=None)
    model = cm.TableModel(linear, task="store", target="sold", intervals=True).fit(old)
    expected = model.predict(old)
    found = run(model.to_sql(), old, coefficient_columns(model.learner_.fitted_))
    assert (expected == 0).any()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9)


def test_sqlite(model, tables):
    _, new, stores = tables
    con = sqlite3.connect(":memory:")
    new.to_sql("rows", con, index=False)
    stores.to_sql("side", con, index=False)
    pd.DataFrame(coefficient_columns(model.fitted_)).to_sql("coefficients", con, index=False)
    found = pd.read_sql(model.to_sql("sqlite"), con)["prediction"]
    X, side = new[["year", "price"]], stores.set_index("store")
    expected = model.predict(X, task=new["store"], side_info=side)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
@pytest.mark.filterwarnings("ignore::condmeta.errors.ReadingNote")
def test_dates(tables, dialect):
    """Weekday, month and days of dates and times, gaps among them, of rows and of tasks."""
    old, new, stores = tables
    rng, start = np.random.default_rng(2), pd.Timestamp("1968-11-03 07:30:05")

    def dated(frame, days):
        when = start + pd.to_timedelta(rng.integers(0, days * 86400, len(frame)), unit="s")
        return frame.assign(day=when.where(rng.random(len(frame)) > 0.1))

    old, new, stores = dated(old, 900), dated(new, 900), dated(stores, 9000)
    stores["day"] = stores["day"].dt.normalize()
    model = cm.TableModel(task="store", target="sold", missing="impute").fit(old, stores)
    assert {"day (weekday)=Sun", "day (month)=Nov", "day (days)"} <= {*model.schema_.feature_names}
    both = pd.concat([old, new])
    expected = model.predict(both, stores)
    coefficients = pd.DataFrame(coefficient_columns(model.learner_.fitted_))
    if dialect == "duckdb":
        found = run(model.to_sql(), both, coefficients, stores)
    else:
        con = sqlite3.connect(":memory:")
        for name, frame in (("rows", both), ("side", stores), ("coefficients", coefficients)):
            frame.to_sql(name, con, index=False)
        found = pd.read_sql(model.to_sql(dialect), con)["prediction"]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    for other in set(DIALECTS) - {"duckdb", "sqlite"}:
        query = model.to_sql(other)
        assert "{0}" not in query
        assert find_dialect(other).name("r", "day (days)") not in query


def test_without_intercept_and_with_several_task_columns(tables):
    old, _, _ = tables
    ids = pd.DataFrame({"region": old["store"].str[:2], "store": old["store"]})
    model = cm.ConditionalRidge(fit_intercept=False).fit(old[["price"]], old["sold"], task=ids)
    rows = pd.concat([ids, old[["price"]]], axis=1)
    found = run(model.to_sql(), rows, coefficient_columns(model.fitted_))
    np.testing.assert_allclose(found, model.predict(old[["price"]], task=ids), rtol=1e-12)


def test_names_and_text_of_dialects():
    assert find_dialect("duckdb").name("r", 'a"b') == '"r"."a""b"'
    assert find_dialect("bigquery").name("r", "a b") == "`r`.`a b`"
    assert find_dialect("postgres").text("O'Hara\\") == "'O''Hara\\'"
    assert find_dialect("spark").text("O'Hara\\") == "'O\\'Hara\\\\'"
    assert Tables().rows == "rows"


def test_the_command_offers_every_dialect():
    assert list(DIALECTS) == OFFERED


def test_every_dialect_makes_a_query(model):
    for name in DIALECTS:
        query = model.to_sql(name, rows="sales", coefficients="stores", side="facts")
        assert query.startswith("SELECT r.*")
        assert all(DIALECTS[name].name(table) in query for table in ("sales", "stores", "facts"))


@pytest.mark.parametrize("kind", ["arrays", "table"])
def test_export(model, tables, tmp_path, kind):
    old, _, stores = tables
    if kind == "table":
        model = cm.TableModel(task="store", target="sold").fit(old, side_info=stores)
        model.save(tmp_path / "m.condmeta")
        done = CliRunner().invoke(
            app, ["export", str(tmp_path / "m.condmeta"), str(tmp_path / "out")]
        )
        assert done.exit_code == 0, done.output
    else:
        cm.export(model, tmp_path / "out")
    found = run(
        (tmp_path / "out" / "score.sql").read_text(), old,
        pd.read_parquet(tmp_path / "out" / "coefficients.parquet"), stores,
    )  # fmt: skip
    X = old if kind == "table" else old[["year", "price"]]
    expected = model.predict(X) if kind == "table" else model.predict(X, task=old["store"])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    effects = pd.read_parquet(tmp_path / "out" / "effects.parquet")
    assert {"side_feature", "feature", "effect"} == set(effects.columns)
    assert (tmp_path / "out" / "card.json").stat().st_size > 100


def test_sentences(model, tables, tmp_path):
    old, _, _ = tables
    with pytest.raises(DataError, match=r"must be one of duckdb, .*Got 'oracle'"):
        model.to_sql("oracle")
    X, y, task = old[["price"]], old["sold"], old["store"]
    boosted = cm.ConditionalRidge(base="boosting").fit(X, y, task=task)
    with pytest.raises(DataError, match=r"this ConditionalRidge has a base\. Score the rows with"):
        boosted.to_sql()
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(len(old)), "D")
    for written, options, sentence in (
        (day.strftime("%d.%m.%Y"), {}, r"column 'day' is written d\.m\.y"),
        (day, {"holidays": "DE"}, r"no calendar of holidays \(column 'day'\)"),
        ([f"{i % 9} %" for i in range(len(old))], {}, r"written as text \(column 'day'\)"),
    ):
        with pytest.warns(ReadingNote, match="Column 'day' "):
            odd = cm.TableModel(task="store", target="sold", **options).fit(old.assign(day=written))
        with pytest.raises(DataError, match=sentence):
            odd.to_sql()
    bent = cm.ConditionalRidge(x_transform=PolynomialFeatures(2, include_bias=False)).fit(
        X, y, task=task
    )
    with pytest.raises(DataError, match="predict, or fit it with x_transform=None or 'splines'"):
        bent.to_sql()
    auto = cm.AutoRegressor(base=None).fit(X[:60], y[:60], task=task[:60])
    with pytest.raises(DataError, match="Only a linear learner, such as ConditionalRidge, can be"):
        cm.export(auto, tmp_path)
