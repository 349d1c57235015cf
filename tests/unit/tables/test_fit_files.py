"""Rows in many files, in any order: the model that the same rows give in memory."""

import functools

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from helpers import draw_stores
from sklearn.base import clone

import condmeta as cm
from condmeta.errors import DataError, ReadingNote
from condmeta.tables.big import fit
from condmeta.tables.files import CsvOptions

pytest.importorskip("duckdb")
pytestmark = pytest.mark.filterwarnings("ignore::condmeta.errors.ReadingNote")

T = 60


def table(seed=0, n=7, gaps=True):
    """Return rows with text, dates, booleans, gaps and written numbers, in a random order."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(T), n)
    price, promo = rng.normal(5, 1, T * n).round(2), rng.random(T * n) < 0.3
    weather = rng.choice(["sun", "rain", "snow"], T * n, p=[0.6, 0.3, 0.1])
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, T * n), unit="D")
    own = rng.normal(size=T)[task]
    sold = 20 - (2 + own) * price + 3 * promo - 2 * (weather == "rain") + rng.normal(size=T * n)
    frame = pd.DataFrame({
        "store": [f"s{t:03d}" for t in task], "price": price, "promo": promo, "weather": weather,
        "day": day, "rate": [f"{v}%" for v in rng.integers(1, 30, T * n)], "sold": sold,
    })  # fmt: skip
    if gaps:
        frame.loc[rng.choice(T * n, 20, replace=False), "price"] = np.nan
        frame.loc[rng.choice(T * n, 20, replace=False), "weather"] = None
    return frame.iloc[rng.permutation(T * n)].reset_index(drop=True)


def stores(extra=2):
    return draw_stores(T + extra)


def arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


def model(**options):
    return cm.TableModel(task="store", target="sold", missing="impute", **options)


def same(one, two):
    """Compare all numbers of two models."""
    assert one.schema_.feature_names == two.schema_.feature_names
    assert one.n_rows_ == two.n_rows_
    a, b = one.learner_.fitted_, two.learner_.fitted_
    at = b.tasks.positions(a.tasks.ids.tolist())
    assert len(a.tasks) == len(b.tasks)
    assert (at >= 0).all()
    pairs = [
        (a.tau.weights, b.tau.weights), (one.learner_.H_, two.learner_.H_),
        (one.learner_.s2_, two.learner_.s2_), (a.tasks.coef, b.tasks.coef[at]),
        (a.tasks.sizes, b.tasks.sizes[at]),
    ]  # fmt: skip
    for left, right in pairs:
        np.testing.assert_array_equal(left, right)


def cut(frame, folder, pieces=3, write=pq.write_table, ending="parquet"):
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(np.array_split(np.arange(len(frame)), pieces)):
        write(arrow(frame.iloc[part]), folder / f"part-{number}.{ending}")
    return folder


def test_shuffled_parquet_files_give_the_bits_of_the_rows_in_memory(tmp_path):
    frame, side = table(gaps=False), stores()
    whole = model().fit(arrow(frame), arrow(side))
    for pieces in (1, 4):
        folder = cut(frame, tmp_path / str(pieces), pieces)
        files = model().fit_files(folder, arrow(side), memory="100MB")
        same(whole, files)
    assert len(files.learner_.fitted_.tasks) == T + 2  # those of the side table without rows too


def test_gaps_are_filled_by_the_same_means(tmp_path):
    frame, side = table(), stores()
    folder = cut(frame, tmp_path / "rows")
    same(
        model().fit(arrow(frame), arrow(side)),
        model().fit_files(f"{folder}/*.parquet", arrow(side)),
    )


def test_feather_csv_and_a_list_of_files(tmp_path):
    frame, side = table(gaps=False), stores()
    whole = model().fit(arrow(frame), arrow(side))
    feather = cut(frame, tmp_path / "feather", 2, pyarrow.feather.write_feather, "feather")
    same(whole, model().fit_files(feather, arrow(side)))
    side.to_csv(tmp_path / "stores.csv", index=False)
    half = len(frame) // 2
    pq.write_table(arrow(frame[:half]), tmp_path / "first.parquet")
    frame[half:].to_csv(tmp_path / "second.csv", index=False, sep=";", decimal=",")
    mixed = model().fit_files(
        [tmp_path / "first.parquet", tmp_path / "second.csv"], tmp_path / "stores.csv",
        csv=CsvOptions(";", ",", None),
    )  # fmt: skip
    same(whole, mixed)


def test_the_folders_of_partitions_are_a_column(tmp_path):
    frame = table(gaps=False)
    for weather, part in frame.groupby("weather"):
        folder = tmp_path / "rows" / f"weather={weather}"
        folder.mkdir(parents=True)
        pq.write_table(arrow(part.drop(columns="weather")), folder / "0.parquet")
    found = model().fit_files(tmp_path / "rows")
    assert {"weather=rain", "weather=snow", "weather=sun"} <= set(found.schema_.feature_names)
    sorted_rows = frame.sort_values("weather", kind="stable")
    features = [*frame.columns.drop(["store", "sold", "weather"]), "weather"]
    whole = model(features=features).fit(arrow(sorted_rows))
    same(whole, found)


def test_side_columns_of_the_rows(tmp_path):
    frame = table(gaps=False).merge(stores(0), on="store")
    folder = cut(frame, tmp_path / "rows")
    options = {"side": ["size", "kind"]}
    same(model(**options).fit(arrow(frame)), model(**options).fit_files(folder))
    frame.loc[5, "size"] = 99.0
    folder = cut(frame, tmp_path / "other")
    with pytest.raises(DataError, match="'size'"):
        model(**options).fit_files(folder)


def test_a_dict_of_side_rows_may_hold_dates(tmp_path):
    rows, side = table(gaps=False), stores(extra=0)[["store"]]
    side["opened"] = pd.date_range("2020-01-01", periods=T)
    rows.to_csv(tmp_path / "a.csv", index=False)
    by_dict = model().fit_files(tmp_path / "a.csv", side.set_index("store").to_dict("index"))
    same(by_dict, model().fit_files(tmp_path / "a.csv", side))


def test_levels_and_kinds_come_from_all_rows(tmp_path):
    frame = table(gaps=False).sort_values("weather")
    folder = cut(frame, tmp_path / "rows", 5)  # the first file knows rain alone
    found = model().fit_files(folder)
    assert found.schema_.encoder.levels_["weather"] == ("rain", "snow", "sun")


def test_ids_as_text(tmp_path):
    frame = table(gaps=False)
    frame["store"] = frame["store"].str[1:].astype(int)
    folder = cut(frame, tmp_path / "rows")
    found = model().fit_files(folder, text=["store"])
    assert found.learner_.fitted_.tasks.ids[0] == "0"
    assert model().fit_files(folder).learner_.fitted_.tasks.ids[0] == 0


def test_work_that_is_done_is_not_done_again(tmp_path, monkeypatch):
    frame = table(gaps=False)
    folder, work = cut(frame, tmp_path / "rows"), tmp_path / "work"
    first = model().fit_files(folder, folder=work)
    ordered = work / "ordered.parquet"
    before = ordered.stat().st_mtime_ns
    same(first, model().fit_files(folder, folder=work))
    assert ordered.stat().st_mtime_ns == before
    cut(frame[: T * 5], tmp_path / "rows")  # other rows: the work begins anew
    assert model().fit_files(folder, folder=work).n_rows_ == T * 5
    assert ordered.stat().st_mtime_ns != before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").touch()
    with pytest.raises(DataError, match="is not empty: name another one to work in"):
        model().fit_files(folder, folder=tmp_path / "mine")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda f: f.assign(store=f["store"].where(f.index > 3)), r"\(task\) is empty in 4 of 420"),
        (lambda f: f.assign(sold=f["sold"].where(f.index > 1)), r"\(target\) is empty in 2 of"),
        (lambda f: f.assign(note=[f"n{i}" for i in f.index]), r"'note' holds 420 different texts"),
        (lambda f: f.assign(sold="much"), r"\(target\) has only the one value 'much'"),
        (lambda f: f[:0], r"There are no rows"),
    ],
)
def test_rows_that_cannot_be_learned_from(tmp_path, change, sentence):
    folder = cut(change(table(gaps=False)), tmp_path / "rows", 2)
    with pytest.raises(DataError, match=sentence):
        model().fit_files(folder)


def test_calls_that_cannot_work(tmp_path):
    folder = cut(table(), tmp_path / "rows")
    with pytest.raises(DataError, match=r"missing values among 420 rows: 'price' 20, 'weather' 20"):
        cm.TableModel(task="store", target="sold").fit_files(folder)
    with pytest.raises(DataError, match=r"a size such as '2GB' or '500MB'\. Got 'much'"):
        model().fit_files(folder, memory="much")
    with pytest.raises(DataError, match=r"No file matches '.*\*\.csv'"):
        model().fit_files(f"{folder}/*.csv")
    with pytest.raises(DataError, match="Intervals need all rows"):
        model(intervals=True).fit_files(folder)
    with pytest.raises(DataError, match="PooledRegressor needs all rows at once"):
        cm.TableModel(cm.PooledRegressor(), task="store", target="sold").fit_files(folder)
    with pytest.raises(DataError, match="Times need all rows at once"):
        model(time="day").fit_files(folder)
    learner = cm.ConditionalRidge(drift=0.9)
    with pytest.raises(DataError, match="To learn drift, all rows are needed at once"):
        cm.TableModel(learner, task="store", target="sold", missing="impute").fit_files(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="has no table: files end in"):
        model().fit_files(tmp_path / "empty")


def test_columns_that_are_copies_in_some_parts_alone(tmp_path, monkeypatch):
    """Keys of tasks leave out copies of columns: of those in all parts, not in one of them."""
    frame = table(gaps=False)[["store", "price", "promo", "sold"]]
    frame["again"], frame["copy"] = frame["price"], frame["price"]
    frame.loc[frame["store"] == "s017", "again"] += 1.0
    monkeypatch.setattr(fit, "PART", 50)
    found = model().fit_files(cut(frame, tmp_path / "rows"), stores())
    same(model().fit(frame, stores()), found)


@pytest.mark.parametrize("kind", ["class", "text", "ordered", "count", "trials"])
def test_learners_that_need_rows(tmp_path, kind):
    """The prior is learned from a sample, and all tasks are solved; targets are read as by fit."""
    frame, options, learner = table(gaps=False).drop(columns=["rate", "day"]), {}, None
    rng = np.random.default_rng(3)
    level = frame["sold"] - 10 + 4 * rng.normal(size=len(frame))
    if kind in ("class", "text"):
        frame["sold"] = (
            (level > 0).astype(int) if kind == "class" else np.where(level > 0, "b", "a")
        )
    if kind == "ordered":
        frame["sold"], learner = np.digitize(level, [-3, 3]), cm.ConditionalOrdinal(kappa=1.0)
    if kind == "count":
        frame["sold"], frame["days"] = (
            rng.poisson(np.exp(level / 8)),
            rng.integers(1, 4, len(frame)),
        )
        options = {"exposure": "days"}
    if kind == "trials":
        frame["sold"], frame["seen"] = rng.binomial(5, 1 / (1 + np.exp(-level / 4))), 5
        options = {"trials": "seen"}
    folder = cut(frame, tmp_path / "rows")
    make = functools.partial(cm.TableModel, learner, task="store", target="sold", **options)
    found, whole = make().fit_files(folder, stores()), make().fit(frame, stores())
    assert type(found.learner_) is type(whole.learner_)
    assert found.schema_.describe() == whole.schema_.describe()
    assert found.n_rows_ == whole.n_rows_
    assert len(found.learner_.fitted_.tasks) == len(whole.learner_.fitted_.tasks) == T + 2
    # All tasks are the sample, by rising key.
    tasks, ids = make().read_tasks(frame, stores()), found.learner_.fitted_.tasks.ids[:T]
    here = clone(found.learner_).fit(tasks.subset([tasks.position(task) for task in ids]))
    np.testing.assert_array_equal(
        found.learner_.fitted_.tasks.coef[:T], here.fitted_.tasks.coef[:T]
    )
    few = make().fit_files(folder, stores(), prior_tasks=40)
    assert few.learner_.n_tasks_ == 40
    np.testing.assert_array_equal(few.learner_.fitted_.tasks.sizes.sum(), len(frame))


def test_a_base_is_chosen_on_the_sample(tmp_path):
    """Trees where they pay; the model is that of `fit` to the sample, whose rows come by key."""
    rng, task = np.random.default_rng(0), np.repeat(np.arange(60), 12)
    X = rng.normal(size=(720, 3))
    own = X[:, 2] * rng.normal(size=60)[task] + 0.2 * rng.normal(size=720)
    rows = pd.DataFrame(X, columns=list("abc")).assign(store=task)
    effects = {"boosting": 3 * np.sign(X[:, 0] * X[:, 1]), None: X @ [1.0, 2.0, 3.0]}
    for base, effect in effects.items():
        folder = cut(rows.assign(sold=effect + own).sample(frac=1, random_state=1),
                     tmp_path / str(base))  # fmt: skip
        options = {"task": "store", "target": "sold"}
        found = cm.TableModel(cm.ConditionalRidge(base="auto"), **options).fit_files(folder)
        named = cm.TableModel(cm.ConditionalRidge(base="boosting"), **options).fit_files(folder)
        assert found.learner_.base_ == base
        alike = np.array_equal(found.predict(arrow(rows)), named.predict(arrow(rows)))
        assert alike == (base == "boosting")


def test_how_columns_are_read_is_said(tmp_path):
    folder = cut(table(), tmp_path / "rows")
    with pytest.warns(ReadingNote, match="'rate' is written as text"):
        model().fit_files(folder)


def test_more_statistics_than_the_memory_holds(tmp_path, monkeypatch):
    monkeypatch.setattr(fit, "KEPT", 10**5)
    frame = table()
    folder = cut(frame, tmp_path / "rows")
    with pytest.warns(UserWarning, match=r"take more than 1/100000 of 1GB, .* but not update"):
        small = model().fit_files(folder)
    same(model().fit(arrow(frame)), small)
    with pytest.raises(DataError, match="without the statistics that update needs"):
        small.update(arrow(frame[:5]))


def test_weights_of_rows(tmp_path):
    frame, side = table(), stores()
    rng = np.random.default_rng(3)
    frame["times"] = rng.integers(0, 4, len(frame)) / 2
    frame.loc[frame["store"] == "s007", "times"] = 0.0  # a task without a row that counts
    folder = cut(frame, tmp_path / "rows")
    whole = model(weight="times").fit(arrow(frame), arrow(side))
    assert "times" not in whole.schema_.feature_names
    files = model(weight="times").fit_files(folder, arrow(side))
    same(whole, files)
    same(model(weight="times").fit(arrow(frame)), model(weight="times").fit_files(folder))
    coded = whole.schema_.matrix(arrow(frame))
    direct = cm.ConditionalRidge().fit(
        coded, frame["sold"], task=frame["store"], sample_weight=frame["times"],
        side_info=side.set_index("store"),
    )  # fmt: skip
    want = direct.predict(coded, task=frame["store"])
    np.testing.assert_allclose(files.predict(arrow(frame.drop(columns="times"))), want, rtol=1e-9)
    frame.loc[3, "times"] = np.nan
    for sentence, change in (("'times' .weight. is empty", np.nan), ("has weight -1", -1.0)):
        frame.loc[3, "times"] = change
        folder = cut(frame, tmp_path / f"odd {change}")
        with pytest.raises(DataError, match=sentence):
            model(weight="times").fit_files(folder, arrow(side))
