"""From a table to answers: the same numbers as a learner on arrays encoded by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal

import condmeta as cm
from condmeta.errors import DataError, FewTasksWarning, ModelFileError, ReadingNote
from condmeta.tasks.frames import gaps_of

CITIES = ["Bonn", "Kiel", "Rome"]


def draw(n_tasks=40, n=6, seed=0):
    """Return sales and stores: numbers, booleans, text; the slope depends on a store's size."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n_tasks)
    stores = pd.DataFrame(
        {
            "store": [f"s{t:03d}" for t in range(n_tasks)],
            "size": np.where(np.arange(n_tasks) % 9 == 0, np.nan, size),
            "region": rng.choice(["north", "south"], n_tasks),
        }
    )
    task = np.repeat(np.arange(n_tasks), n)
    sales = pd.DataFrame(
        {
            "store": stores["store"].to_numpy()[task],
            "price": rng.normal(size=task.size),
            "open": rng.random(task.size) < 0.5,
            "city": rng.choice(CITIES, task.size),
        }
    )
    slope = 1 + 2 * size[task]
    sales["sold"] = slope * sales["price"] + sales["open"] + 0.1 * rng.normal(size=task.size)
    return sales.sample(frac=1, random_state=1).reset_index(drop=True), stores


SALES, STORES = draw()


def by_hand(sales):
    """Return the features as numbers."""
    columns = [sales["price"], sales["open"], *(sales["city"] == city for city in CITIES)]
    return np.column_stack(columns).astype(float)


def model_of(**settings):
    return cm.TableModel(**({"task": "store", "target": "sold"} | settings))


@pytest.fixture(scope="module")
def fitted():
    return model_of().fit(SALES, STORES)


def test_the_same_as_a_learner_on_numbers(fitted):
    plain = cm.ConditionalRidge().fit(
        by_hand(SALES), SALES["sold"], task=SALES["store"], side_info=STORES
    )
    expected = plain.predict(by_hand(SALES), task=SALES["store"])
    np.testing.assert_allclose(fitted.predict(SALES), expected, rtol=1e-12)
    assert fitted.schema_.feature_names == [
        "price", "open", "city=Bonn", "city=Kiel", "city=Rome",
    ]  # fmt: skip


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"])
def test_every_library_gives_the_same(fitted, make):
    stores = STORES.assign(size=STORES["size"].fillna(np.nan))
    model = model_of().fit(make(SALES), make(stores))
    np.testing.assert_allclose(model.predict(make(SALES)), fitted.predict(SALES), rtol=1e-10)
    assert type(model.predict_frame(make(SALES))) is type(make(SALES))
    assert type(model.adapt_frame(make(SALES[:20]), make(stores))) is type(make(SALES))


def test_predictions_join_the_rows_of_pandas(fitted):
    rows = SALES[::-3]
    joined = rows.join(fitted.predict_frame(rows))
    assert joined.index.equals(rows.index)
    np.testing.assert_array_equal(joined["prediction"], fitted.predict(rows))


def test_known_new_and_zero_point_tasks():
    trained = SALES[~SALES["store"].isin(["s001", "s002"])]
    model = model_of().fit(trained, STORES[STORES["store"] != "s002"])
    rows = SALES[SALES["store"].isin(["s000", "s001", "s002"])]
    answer = model.predict_frame(rows, STORES)
    assert answer.columns.tolist() == ["prediction", "task_points", "task_kind"]
    assert len(answer) == len(rows)
    known = (rows["store"] == "s000").to_numpy()
    assert (answer["task_kind"] == np.where(known, "known", "new")).all()
    assert (answer["task_points"] == np.where(known, 6, 0)).all()
    # s001 has a side row in fit and no points: its rows need no side table
    some = rows[rows["store"] == "s001"]
    np.testing.assert_allclose(model.predict(some), model.predict(some, STORES))
    with pytest.raises(DataError, match=r"missing from .*: 's002'"):
        model.predict(rows)
    r2 = 1 - ((answer["prediction"] - rows["sold"].to_numpy()) ** 2).mean() / rows["sold"].var()
    assert r2 > 0.5


def test_side_columns_of_the_table_itself():
    joined = SALES.merge(STORES, on="store")
    model = model_of(side=["size", "region"]).fit(joined)
    other = model_of().fit(SALES.merge(STORES[["store"]], on="store"), STORES)
    np.testing.assert_allclose(model.predict(joined), other.predict(joined), rtol=1e-9)
    assert model.schema_.roles.features == ["price", "open", "city"]
    model.predict(SALES)  # known tasks need no side columns
    new = joined[:3].assign(store="new", size=0.3, region="north")
    assert model.predict_frame(new)["task_kind"].tolist() == ["new"] * 3
    with pytest.raises(DataError, match="Side column 'region' is not in the table, but 'size' is"):
        model.predict(new.drop(columns="region"))
    with pytest.raises(DataError, match="Side column 'size' varies within task"):
        model_of(side=["size"]).fit(joined.assign(size=np.arange(len(joined))))


def test_columns_of_the_side_table_can_be_chosen():
    model = model_of(side=["size"]).fit(SALES, STORES)
    assert model.schema_.roles.side_columns == ["size"]
    renamed = STORES.rename(columns={"store": "key"})
    keyed = model_of(side=["size"], side_key="key").fit(SALES, renamed)
    np.testing.assert_allclose(keyed.predict(SALES), model.predict(SALES))
    with pytest.raises(DataError, match="The side table lacks 'width'; it has 'size', 'region'"):
        model_of(side=["width"]).fit(SALES, STORES)
    with pytest.raises(DataError, match="fitted without side information"):
        model_of().fit(SALES).predict(SALES, STORES)


def test_adapt_gives_coefficients(fitted):
    fresh, stores = draw(3, 5, seed=1)
    fresh["store"], stores["store"] = "n" + fresh["store"], "n" + stores["store"]
    stores["size"] = stores["size"].fillna(0)
    table = fitted.adapt_frame(fresh, stores)
    names = ["store", "n", "(intercept)", "price", "open", "city=Bonn", "city=Kiel", "city=Rome"]
    assert table.columns.tolist() == names
    models = fitted.adapt(fresh, stores)
    assert list(models) == table["store"].tolist()
    row = fresh.iloc[0]
    mine = table.set_index("store").loc[row["store"]]
    by_formula = mine["(intercept)"] + by_hand(fresh)[0] @ mine[names[3:]].to_numpy(float)
    assert by_formula == pytest.approx(models[row["store"]].predict(by_hand(fresh)[:1])[0])


def test_adapt_does_not_answer_for_other_tasks_of_the_side_table(fitted):
    table = fitted.adapt_frame(SALES[SALES["store"] == "s003"], STORES)
    assert table["store"].tolist() == ["s003"]


def test_update_equals_fit_of_the_task_on_all_rows(fitted):
    first = SALES.groupby("store").head(3)
    rest = SALES.drop(first.index)
    model = model_of().fit(first, STORES)
    before = model.n_rows_
    model.update(rest)
    assert model.n_rows_ == before + len(rest)
    whole = model.adapt_frame(SALES, STORES).set_index("store")
    updated = model.coef_frame(wide=True).set_index("store")
    assert (updated["n"] == 6).all()
    np.testing.assert_allclose(
        updated["price"], whole.loc[updated.index, "price"], rtol=1e-7, atol=1e-9
    )
    assert len(model.coef_frame()) == 40 * 6


def test_unseen_levels_are_zero_and_counted(fitted):
    rows = SALES[:4].assign(city=["Oslo", "Oslo", "Rome", "Lund"])
    with pytest.warns(UserWarning, match=r"'city': 'Oslo' \(2\), 'Lund' \(1\)"):
        predicted = fitted.predict(rows)
    X = by_hand(SALES[:4])
    X[[0, 1, 3], 2:] = 0
    X[2, 2:] = [0, 0, 1]
    expected = fitted.learner_.predict(
        cm.TaskSet.from_arrays(
            X, None, SALES["store"][:4], feature_names=fitted.schema_.feature_names
        )
    )
    np.testing.assert_allclose(predicted, expected)


def test_missing_features_are_refused_with_counts_or_imputed():
    gaps = SALES.copy()
    gaps.loc[3:5, "price"] = np.nan
    gaps.loc[7, "city"] = None
    with pytest.raises(DataError, match=r"among 240 rows: 'price' 3, 'city' 1\. Fill .*impute"):
        model_of().fit(gaps)
    model = model_of(missing="impute").fit(gaps)
    assert model.schema_.feature_names == [
        "price", "price=(missing)", "open", "city=Bonn", "city=Kiel", "city=Rome", "city=(missing)",
    ]  # fmt: skip
    X = model.schema_.matrix(gaps)
    assert X[3, 0] == pytest.approx(gaps["price"].mean())
    assert X[3, 1] == 1
    assert X[7, -1] == 1
    assert model.card()["schema"]["features"][0] == {
        "name": "price", "kind": "number", "imputed": pytest.approx(gaps["price"].mean()),
    }  # fmt: skip
    with pytest.raises(DataError, match="'missing' parameter of TableModel must be"):
        model_of(missing="drop").fit(SALES)


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (["yes", "no"], ["no", "yes"]),
        ([True, False], [False, True]),
        ([1, 0], [0, 1]),
        ([2.5, 1.5], [1.5, 2.5]),
    ],
)
def test_two_values_are_classes(values, classes):
    frame = SALES.assign(sold=np.where(SALES["sold"] > 0, values[0], values[1]))
    model = model_of().fit(frame, STORES)
    assert isinstance(model.learner_, cm.ConditionalLogistic)
    assert model.schema_.classes == classes
    predicted = model.predict(frame)
    assert (predicted == frame["sold"].to_numpy()).mean() > 0.8
    table = model.predict_frame(frame)
    likely = np.where(table["probability"] > 0.5, classes[1], classes[0])
    assert (table["prediction"].to_numpy() == likely).all()
    assert set(model.adapt(frame[:9], STORES)) == set(frame["store"][:9])
    if values == ["yes", "no"]:
        before = int(model.learner_.fitted_.tasks.sizes.sum())
        model.update(frame[:5])
        assert int(model.learner_.fitted_.tasks.sizes.sum()) == before + 5
        with pytest.raises(DataError, match=r"holds 'maybe'; the classes .* 'no' and 'yes'"):
            model.adapt(frame[:5].assign(sold="maybe"), STORES)


def test_three_texts_are_classes():
    frame = SALES.assign(sold=SALES["city"])
    with pytest.warns(ReadingNote, match=r"3 classes \('Bonn', 'Kiel', 'Rome'\)"):
        model = model_of(exclude=["city"]).fit(frame, STORES)
    assert model.schema_.classes == ["Bonn", "Kiel", "Rome"]
    assert set(model.predict(frame)) <= {"Bonn", "Kiel", "Rome"}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"sold": "a"}, "Column 'sold' .* one value 'a'"),
        ({"sold": pd.Timestamp("2024-01-01")}, "Column 'sold' .* holds dates"),
        ({"city": lambda f: f.index.map(str)}, "'city' holds 240 different texts in 240 rows"),
        ({"price": np.inf}, "Row 1 has infinity in column 'price'"),
        (
            {"store": lambda f: f["store"].where(f.index != 4)},
            r"'store' \(task\) is empty in 1 of 240 rows, first in row 5",
        ),
        (
            {"sold": lambda f: f["sold"].where(f.index < 238)},
            r"'sold' \(target\) is empty in 2 of 240 rows, first in row 239",
        ),
    ],
)
def test_errors_name_what_is_wrong_with_a_column(change, sentence):
    with pytest.raises(DataError, match=sentence):
        model_of().fit(SALES.assign(**change))


def test_roles_are_checked():
    with pytest.raises(DataError, match=r"Column 'shop' \(task\) is not in the table"):
        model_of(task="shop").fit(SALES)
    with pytest.raises(DataError, match="Column 'sold' has two roles"):
        model_of(features=["price", "sold"]).fit(SALES)
    with pytest.raises(DataError, match="No column is left to be a feature"):
        model_of(exclude=["price", "open", "city"]).fit(SALES)
    with pytest.raises(DataError, match=r"holds text .* the learner predicts numbers"):
        model_of(learner=cm.ConditionalRidge(), target="city").fit(SALES)
    with pytest.raises(DataError, match="reads pandas, polars and PyArrow tables, got a list"):
        model_of().fit([[1, 2]])
    with pytest.raises(DataError, match="not fitted yet"):
        model_of().predict(SALES)


def test_several_task_columns():
    frame = SALES.assign(chain=np.where(SALES.index % 2, "x", "y"))
    model = model_of(task=["store", "chain"]).fit(frame)
    table = model.coef_frame(wide=True)
    assert table.columns[:3].tolist() == ["store", "chain", "n"]
    model.predict(frame)


def test_intervals_cover_and_survive_the_file(tmp_path):
    fresh, stores = draw(60, 6, seed=3)
    model = model_of(intervals=True).fit(SALES, STORES)
    new = fresh.assign(store="n" + fresh["store"])
    side = stores.assign(store="n" + stores["store"])
    predicted, low, high = model.predict(new, side, coverage=0.8)
    inside = ((low <= new["sold"]) & (new["sold"] <= high)).mean()
    assert 0.65 < inside < 0.95
    model.save(tmp_path / "m.condmeta")
    again = cm.load(tmp_path / "m.condmeta")
    for mine, theirs in zip(
        again.predict(new, side, coverage=0.8), (predicted, low, high), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
    table = again.predict_frame(SALES, coverage=0.8)
    assert (table["lower"] < table["upper"]).all()
    assert again.card()["tasks_calibrated"]["0"] == 40
    few = SALES[SALES["store"] < "s005"]
    with pytest.raises(DataError, match="at least 10 tasks with rows; there are 5"):
        model_of(intervals=True).fit(few)
    with pytest.raises(DataError, match="no intervals: fit it with intervals=True"):
        model_of().fit(SALES).predict(SALES, coverage=0.8)


@pytest.mark.parametrize(
    "learner",
    [None, cm.AutoRegressor(base=None), cm.PooledRegressor(), cm.ConditionalERMRegressor()],
    ids=["ridge", "auto", "pooled", "erm"],
)
def test_files_hold_the_model(tmp_path, learner):
    model = model_of(learner=learner).fit(SALES, STORES)
    path = tmp_path / "m.condmeta"
    model.save(path)
    again = cm.load(path)
    assert isinstance(again, cm.TableModel)
    np.testing.assert_array_equal(again.predict(SALES), model.predict(SALES))
    assert again.card() == model.card()
    assert repr(again).startswith("TableModel(")
    if isinstance(learner, cm.AutoRegressor):
        for call in (again.coef_frame, lambda: again.adapt_frame(SALES, STORES)):
            with pytest.raises(DataError, match="AutoRegressor mixes learners"):
                call()
    if learner is None:
        again.update(SALES[:3])
        assert_frame_equal(
            again.coef_frame(), model.update(SALES[:3]).coef_frame(), check_exact=True
        )
        model.save(path, tasks=False)
        assert cm.load(path).predict_frame(SALES, STORES)["task_kind"].unique().tolist() == ["new"]


def test_the_card_describes_the_model(fitted):
    card = fitted.card()
    assert card["class"] == "TableModel"
    assert card["learner"] == "ConditionalRidge"
    assert card["sizes"]["rows"] == 240
    assert card["sizes"]["training_tasks"] == 40
    assert card["schema"]["task"] == ["store"]
    assert card["schema"]["side_columns"] == ["size", "region"]
    assert card["schema"]["features"][2] == {
        "name": "city", "kind": "category", "levels": CITIES, "pooled": 0,
    }  # fmt: skip
    assert set(card["chosen"]) == {"metric", "noise", "kappa", "s2"}
    assert card["side_features"][0] == "size"
    assert "created" not in card


def test_parts_of_a_file_must_fit(tmp_path):
    odd = model_of().fit(SALES)
    odd.schema_.encoder.names_out_ = ("price",)
    odd.save(tmp_path / "m.condmeta")
    with pytest.raises(ModelFileError, match=r"schema_\.encoder\.names_out_ must be 5 names"):
        cm.load(tmp_path / "m.condmeta")


def test_a_failed_call_changes_nothing(fitted):
    model = model_of().fit(SALES, STORES)
    before = model.predict(SALES)
    for call in (model.update, model.fit):
        with pytest.raises(DataError):
            call(SALES.assign(price="x" + SALES.index.map(str)))
    np.testing.assert_array_equal(model.predict(SALES), before)


@pytest.mark.parametrize(
    "kind", [pd.Series, pl.Series, pa.array], ids=["pandas", "polars", "arrow"]
)
@pytest.mark.parametrize(
    "values", [[1.0, None, 2.0], ["a", None, "b"], [True, None, False], [1, None, 2]]
)
def test_gaps_are_found_in_every_library(kind, values):
    assert gaps_of(kind(values)).tolist() == [False, True, False]


def test_nan_is_a_gap_in_every_library():
    for kind in (pd.Series, pl.Series, pa.array):
        assert gaps_of(kind([1.0, float("nan")])).tolist() == [False, True]
    assert gaps_of(pa.array([1.0, float("nan"), None])).tolist() == [False, True, True]


def test_check_and_explain_are_those_of_the_learner(fitted):
    fresh, stores = draw(40, 6, seed=0)  # the same rows: errors are small
    with pytest.warns(UserWarning, match="has learned from these rows and cannot be judged"):
        report = fitted.check(fresh[::-1], stores)
    fresh = fresh[1:]
    report = fitted.check(fresh, stores)
    assert report.verdict == "keep"
    assert report.frame["store"].tolist() == fresh["store"].drop_duplicates().tolist()
    assert fitted.check(fresh.assign(sold=-10 * fresh["sold"]), stores).verdict == "refit"
    found = fitted.explain(STORES[1:3])
    np.testing.assert_allclose(found.theta, fitted.learner_.theta_for(STORES[1:3]))
    assert found.columns == ["size", "region"]
    with pytest.raises(DataError, match="fitted without side information"):
        model_of().fit(SALES).explain(STORES)
    with pytest.raises(DataError, match="not fitted yet"):
        model_of().explain(STORES)


def test_pictures_of_a_table_model_are_those_of_its_learner():
    model = model_of(intervals=True).fit(SALES, side_info=STORES)
    display = cm.plots.ShrinkageDisplay.from_estimator(model, feature="price")
    assert len(display.tasks) == 40
    assert "price" in cm.plots.MapDisplay.from_estimator(model).features


def test_new_tasks_far_outside_the_training_range_raise_a_warning(fitted):
    price = {"price": [1.0] * 4, "open": [True] * 4, "city": ["Bonn"] * 4}
    rows = pd.DataFrame({"store": ["x", "s000", "y", "z"]} | price)
    side = {"region": ["north"] * 4, "size": [0.0, 50.0, 50.0, -60.0]}
    stores = pd.DataFrame({"store": ["x", "s000", "y", "z"]} | side)
    told = (
        r"of 2 new tasks is far outside .* task 'y', size 50 is above the training range -.*, and o"
    )
    with pytest.warns(UserWarning, match=told):  # not of s000, which has points
        fitted.predict(rows, stores)
    with pytest.warns(UserWarning, match="far outside"):
        kinds = fitted.predict_frame(rows, stores)["task_kind"]
    assert kinds.tolist() == ["new", "known", "outside", "outside"]
    with pytest.warns(UserWarning, match=r"of 1 new task .* 'z', size -60 is below the training"):
        fitted.adapt(rows[3:].assign(sold=1.0), stores)
    fitted.predict(rows[:2], stores)  # nothing to tell: a warning would fail the test


def test_few_tasks_raise_a_warning():
    few = SALES[SALES["store"].isin(STORES["store"][:4])]
    with pytest.warns(FewTasksWarning, match="4 tasks with rows: learning across tasks"):
        model_of(learner=cm.PooledRegressor()).fit(few)


def test_tasks_without_a_side_row_may_start_from_the_mean():
    with pytest.raises(DataError, match=r"2 tasks are missing from side_info.*missing_side='mean'"):
        model_of(intervals=True).fit(SALES, STORES[2:])  # of all, not of one fold
    model = model_of(missing_side="mean").fit(SALES, STORES[2:])
    assert model.learner_.missing_side == "mean"


def test_repr_shows_the_parameters_that_are_not_the_default():
    assert repr(model_of()) == "TableModel(task='store', target='sold')"
    given = {"exclude": ["day"], "missing": "impute", "intervals": True}
    assert repr(model_of(learner=cm.PooledRegressor(), **given)) == (
        "TableModel(PooledRegressor(), task='store', target='sold', exclude=['day'], "
        "missing='impute', intervals=True)"
    )
