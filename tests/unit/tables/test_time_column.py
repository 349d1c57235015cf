"""`TableModel(time=...)` and `condmeta fit --time`: tables of tasks that change with time."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import condmeta as cm
from condmeta.cli.app import app
from condmeta.errors import DataError

STORES, DAYS = 30, 30


def make_table(seed=0) -> pd.DataFrame:
    """Return sales of stores in which the effect of the price moves, week by week."""
    rng = np.random.default_rng(seed)
    slope, rows = rng.normal(-2, 1, STORES), []
    for week in range(DAYS):
        price = rng.uniform(1, 3, STORES)
        sold = 9 + slope * price + 0.1 * rng.normal(size=STORES)
        day = pd.Timestamp("2024-01-01") + pd.Timedelta(weeks=week)
        rows.append(
            pd.DataFrame({"store": range(STORES), "day": day, "price": price, "sold": sold})
        )
        slope = slope + 0.2 * rng.normal(size=STORES)
    return pd.concat(rows, ignore_index=True).assign(store=lambda t: "s" + t["store"].astype(str))


TABLE = make_table()
EARLY, LATE = TABLE[TABLE["day"] < "2024-06-01"], TABLE[TABLE["day"] >= "2024-06-01"]
ROLES = {"task": "store", "target": "sold"}


@pytest.fixture(scope="module")
def forgetful():
    return cm.TableModel(**ROLES, time="day").fit(EARLY)


def test_a_column_of_time_is_no_feature_and_matters(forgetful):
    assert forgetful.schema_.feature_names == ["price"]
    assert forgetful.learner_.drift_ is not None
    assert forgetful.schema_.describe()["time"] == "day"
    never = cm.TableModel(**ROLES, exclude=["day"]).fit(EARLY)
    first = LATE[LATE["day"] == LATE["day"].min()]
    ours, theirs = (
        np.abs(model.predict(first) - first["sold"]).mean() for model in (forgetful, never)
    )
    assert ours < 0.7 * theirs
    arrays = cm.ConditionalRidge().fit(
        EARLY[["price"]], EARLY["sold"], task=EARLY["store"], time=EARLY["day"]
    )
    np.testing.assert_allclose(
        arrays.predict(first[["price"]], task=first["store"], time=first["day"]),
        forgetful.predict(first),
    )
    without = forgetful.predict(first.drop(columns="day"))  # as of each store's latest row
    assert not np.allclose(without, forgetful.predict(first))


def test_it_can_be_a_feature_as_well():
    numbers = EARLY.assign(week=(EARLY["day"] - EARLY["day"].min()).dt.days / 7)
    model = cm.TableModel(**ROLES, time="week", features=["price", "week"])
    assert model.fit(numbers).schema_.feature_names == ["price", "week"]


@pytest.mark.parametrize("kind", ["polars", "text", "german", "dates"])
def test_kinds_of_tables_and_of_dates(forgetful, kind):
    table = {
        "polars": lambda t: pl.from_pandas(t),
        "text": lambda t: t.assign(day=t["day"].dt.strftime("%Y-%m-%d")),
        "german": lambda t: t.assign(day=t["day"].dt.strftime("%d.%m.%Y")),
        "dates": lambda t: t.assign(day=t["day"].dt.date),
    }[kind]
    model = cm.TableModel(**ROLES, time="day").fit(table(EARLY))
    assert model.learner_.drift_ == pytest.approx(forgetful.learner_.drift_)
    np.testing.assert_allclose(model.predict(table(LATE)), forgetful.predict(LATE))


def test_files_updates_intervals_and_parts(forgetful, tmp_path):
    forgetful.save(tmp_path / "m.condmeta")
    again = cm.load(tmp_path / "m.condmeta")
    assert again.time == "day"
    again.update(LATE)
    with pytest.raises(DataError, match="The model already holds these"):
        again.update(LATE)
    shifted = LATE.assign(day=LATE["day"] + pd.Timedelta(days=1))
    again.update(shifted)  # the same values at other times are other rows
    intervals = cm.TableModel(**ROLES, time="day", intervals=True, order="first").fit(EARLY)
    _, low, high = intervals.predict(LATE[:STORES], coverage=0.9)
    assert (low < high).all()
    by_store = EARLY.sort_values("store", kind="stable")
    parts = cm.TableModel(**ROLES, time="day").fit_batches([by_store[:300], by_store[300:]])
    assert not parts.learner_.fitted_.keeps_history  # a model of tables holds no rows
    assert parts.learner_.drift_ == pytest.approx(forgetful.learner_.drift_)
    np.testing.assert_allclose(parts.predict(LATE), forgetful.predict(LATE), rtol=1e-6)


def test_reports_name_the_drift(forgetful):
    drift = str(forgetful.learner_.fitted_.inner.drift)
    assert drift.endswith("after a day")
    assert forgetful.card()["drift"] == drift
    assert drift in str(forgetful.summary())
    assert drift in str(forgetful.explain(task="s3"))
    never = cm.TableModel(cm.ConditionalRidge(drift=None), **ROLES, time="day").fit(EARLY)
    assert never.card()["drift"] is None
    report = never.check(LATE)
    assert report.forgetting > 0.2
    assert "a model that forgets would have errors" in str(report)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"day": None}, "Column 'day' is missing or infinite in"),
        ({"day": "soon"}, "Column 'day' holds dates, but 'soon' in row 1: write it as 2024-01-31"),
        ({"day": "1/31/2024"}, "but '1/31/2024' in row 1: write it as 2024-01-31"),
    ],
)
def test_bad_times_have_sentences(forgetful, change, sentence):
    bad = EARLY.assign(**change)
    before = forgetful.learner_.fitted_
    for call in (cm.TableModel(**ROLES, time="day").fit, forgetful.update):
        with pytest.raises(DataError) as error:
            call(bad)
        assert sentence in str(error.value)
    assert forgetful.learner_.fitted_ is before


def test_roles_and_learners_that_do_not_fit(forgetful):
    with pytest.raises(DataError, match="'when'"):
        cm.TableModel(**ROLES, time="when").fit(EARLY)
    with pytest.raises(DataError, match="'day'"):
        forgetful.update(LATE.drop(columns="day"))
    with pytest.raises(DataError, match="a column of time can be a feature, but not the task"):
        cm.TableModel(**ROLES, time="store").fit(EARLY)
    with pytest.raises(DataError, match="PooledRegressor does not forget"):
        cm.TableModel(cm.PooledRegressor(), **ROLES, time="day").fit(EARLY)


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_command_line_uses_the_stored_column(tmp_path):
    early, late, model = tmp_path / "early.csv", tmp_path / "late.csv", tmp_path / "m.condmeta"
    EARLY.to_csv(early, index=False)
    LATE.to_csv(late, index=False)
    named = "--task", "store", "--target", "sold", "--time", "day"
    done = run("fit", early, *named, "-o", model)
    assert done.exit_code == 0, done.output
    assert "after a day" in done.output
    assert (
        "Note: Column 'day' holds the times of rows and is not a feature. To use its weekdays"
        in done.output
    )
    features = "--features", "day,price", "-o", tmp_path / "both.condmeta"
    assert "and no feature" not in run("fit", early, *named, *features).output
    shown = json.loads(run("inspect", model, "--json").output)
    assert shown["schema"]["time"] == "day"
    assert shown["drift"].endswith("after a day")
    out = tmp_path / "out.csv"
    assert run("predict", model, late, "-o", out).exit_code == 0
    ours = cm.TableModel(**ROLES, time="day").fit(EARLY)
    np.testing.assert_allclose(pd.read_csv(out)["prediction"], ours.predict(LATE), rtol=1e-6)
    assert run("update", model, late).exit_code == 0
    assert run("check", model, late, "--json").exit_code in (0, 3, 4)
    bad = tmp_path / "bad.csv"
    EARLY.assign(day="soon").to_csv(bad, index=False)
    refused = run("fit", bad, *named, "-o", tmp_path / "x.condmeta")
    assert refused.exit_code == 1
    assert "Column 'day' (time) is text ('soon', ...)" in refused.output
    still = run("fit", early, *named, "--learner", "pooled", "-o", tmp_path / "x.condmeta")
    assert still.exit_code == 1
    assert "does not forget" in still.output
