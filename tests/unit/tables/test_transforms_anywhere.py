"""Transformations of x and y: the same bits in memory, from files and on Dask workers."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import draw_stores
from sklearn.preprocessing import PowerTransformer

import condmeta as cm
from condmeta.errors import DataError, ReadingNote
from condmeta.learners import task_sample
from condmeta.learners.parts import fit_parts
from condmeta.learners.task_sample import (
    LARGEST_KEY,
    KeyedTasks,
    keyed_tasks,
    largest_key,
    narrowed,
)
from condmeta.meta import blocks
from condmeta.tables.big import fit as big_fit
from condmeta.tables.cluster import workers as cluster_workers
from condmeta.tasks import TaskSet

T = 240
pytestmark = pytest.mark.filterwarnings("ignore")
FORMS = {
    "default": {},
    "log": {"y_transform": "log"},
    "splines": {"x_transform": "splines", "y_transform": "yeo-johnson"},
    "given": {"x_transform": PowerTransformer(), "y_transform": None},
}
FEW = {"metric": "diagonal", "kappa": 1.0, "cold_start": "prior", "tol": 0.1}


def table(seed=0, bent=False):
    """Return shuffled rows with text, gaps and weights; the target is skewed, or bends."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(T), rng.integers(3, 10, T))
    N = len(task)
    price, level = rng.normal(5, 1, N).round(2), 0.5 * rng.normal(size=T)[task]
    weather = rng.choice(["sun", "rain", "snow"], N, p=[0.6, 0.3, 0.1])
    sold = level - 0.8 * (price - 5) - 0.5 * (weather == "rain") + 0.3 * rng.normal(size=N)
    sold = 3 * np.sin(2 * price) + sold if bent else np.exp(sold)
    frame = pd.DataFrame({
        "store": [f"s{t:03d}" for t in task], "price": price, "weather": weather, "sold": sold,
        "times": rng.integers(0, 4, N) / 2,
    })  # fmt: skip
    frame.loc[rng.choice(N, 20, replace=False), "price"] = np.nan
    frame.loc[rng.choice(N, 20, replace=False), "weather"] = None
    frame.loc[frame["store"] == "s007", "times"] = 0.0  # a task without a row that counts
    return frame.iloc[rng.permutation(N)].reset_index(drop=True)


def stores(extra=3):
    return draw_stores(T + extra)


def model(**options):
    learner = cm.ConditionalRidge(**FEW | options)
    columns = {"task": "store", "target": "sold", "weight": "times"}
    return cm.TableModel(learner, **columns, missing="impute", missing_side="mean")


def cut(frame, folder, pieces=3):
    folder.mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(frame)), pieces)):
        pq.write_table(
            pa.Table.from_pandas(frame.iloc[part], preserve_index=False),
            folder / f"{number}.parquet",
        )
    return folder


def same(one, other, frame):
    """Compare the bits of two models, and of their predictions for known and new tasks."""
    a, b = one.learner_, other.learner_
    assert (a.x_transform_ is None, a.y_transform_) == (b.x_transform_ is None, b.y_transform_)
    assert a.transform_choice_ == b.transform_choice_
    for name in ("M_", "b_", "H_", "s2_", "objective_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    left, right = a.fitted_.tasks, b.fitted_.tasks
    at = right.positions(left.ids.tolist())
    assert len(left) == len(right) == T + 3
    for name in ("sizes", "theta", "coef", "Phi"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name)[at])
    assert a.fitted_.target == b.fitted_.target
    rows = pd.concat([frame[:200], frame[:50].assign(store="a new one")])
    rows = rows.drop(columns=["sold", "times"])
    np.testing.assert_array_equal(one.predict(rows), other.predict(rows))


@pytest.fixture(autouse=True)
def few_tasks(monkeypatch):
    """Leaves of few tasks, parts of few rows, and a sample of some of the tasks."""
    monkeypatch.setattr(blocks, "LEAF", 60)
    monkeypatch.setattr(big_fit, "PART", 100)
    monkeypatch.setattr(task_sample, "TASKS", 150)


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("distributed")
    with cluster_workers.cluster_of(2, None) as client:
        yield client


@pytest.mark.parametrize("form", FORMS)
def test_files_have_the_bits_of_memory(tmp_path, form):
    pytest.importorskip("duckdb")
    frame = table()
    whole = model(**FORMS[form]).fit(frame, stores())
    files = model(**FORMS[form]).fit_files(cut(frame, tmp_path / "rows"), stores())
    same(whole, files, frame)
    if form == "default":
        assert files.learner_.y_transform_ == "yeo-johnson"
        assert len(files.learner_.transform_choice_) > 1


def test_bends_are_chosen_from_files(tmp_path):
    pytest.importorskip("duckdb")
    frame = table(bent=True)
    whole = model().fit(frame, stores())
    files = model().fit_files(cut(frame, tmp_path / "rows"), stores())
    assert files.learner_.x_transform_ == "splines"
    same(whole, files, frame)


@pytest.mark.parametrize("n_workers", [1, 2])
def test_workers_have_the_bits_of_memory(client, n_workers, monkeypatch):
    dd = pytest.importorskip("dask.dataframe")
    frame, submit = table(), client.submit
    some = list(client.nthreads())[:n_workers]
    monkeypatch.setattr(client, "submit", lambda *a, **k: submit(*a, **k, workers=some))
    monkeypatch.setattr(client, "nthreads", lambda: dict.fromkeys(some, 1))
    form = FORMS["default" if n_workers == 2 else "splines"]
    whole = model(**form).fit(frame, stores())
    for partitions in (1, 5)[:n_workers]:
        ddf = dd.from_pandas(frame, npartitions=partitions, sort=False)
        found = model(**form).fit_dask(ddf, stores(), client=client)
        same(whole, found, frame)
        np.testing.assert_array_equal(
            found.predict(ddf.drop(columns=["sold", "times"])).compute(),
            whole.predict(frame.drop(columns=["sold", "times"])),
        )


def test_shuffled_rows_choose_the_same(tmp_path):
    """Rows in another order change last digits of a task's sums, and no transformation."""
    pytest.importorskip("duckdb")
    frame = table()
    mixed = frame.iloc[np.random.default_rng(5).permutation(len(frame))]
    one = model().fit_files(cut(frame, tmp_path / "one"), stores())
    two = model().fit_files(cut(mixed, tmp_path / "two", 5), stores())
    assert one.learner_.fitted_.target == two.learner_.fitted_.target
    same(model().fit(mixed, stores()), two, frame)
    rows, size = frame.drop(columns=["sold", "times"]), frame["sold"].std()
    np.testing.assert_allclose(one.predict(rows), two.predict(rows), atol=0.1 * size)


def test_a_model_of_files_is_updated_and_saved(tmp_path):
    pytest.importorskip("duckdb")
    frame = table()
    old, new = frame[frame["store"] < "s200"], frame[frame["store"] >= "s195"]
    side = stores()[lambda f: f["store"] < "s200"]
    whole = model().fit(old, side)
    files = model().fit_files(cut(old, tmp_path / "rows"), side)
    assert files.learner_.y_transform_ == "yeo-johnson"
    files.save(tmp_path / "stores.condmeta", resume=True)
    again, rows = cm.load(tmp_path / "stores.condmeta"), frame.drop(columns=["sold", "times"])
    np.testing.assert_array_equal(again.predict(rows, stores()), whole.predict(rows, stores()))
    new = new[new["times"] > 0]
    wanted = whole.update(new, stores()).predict(rows)
    for found in (files, again):
        np.testing.assert_array_equal(found.update(new, stores()).predict(rows), wanted)


def test_the_note_of_a_transformation(tmp_path):
    pytest.importorskip("duckdb")
    with pytest.warns(ReadingNote, match="predicts medians of 'sold', which is skewed"):
        model().fit_files(cut(table(), tmp_path / "rows"), stores())


def test_predictions_reach_the_labels_of_all_tasks(tmp_path):
    """The largest label is that of all rows, not of the sample."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(T), 6)
    X = rng.normal(size=(len(task), 1))
    y = np.exp(X[:, 0] + 0.3 * rng.normal(size=len(task)))
    tasks = TaskSet.from_arrays(X, y, task=task)
    last = tasks.ids[np.argmax(keyed_tasks(tasks).keys)]  # outside of the sample
    y[task == last] *= 1000
    learner = cm.ConditionalRidge(**FEW, y_transform="log", x_transform=None).fit(X, y, task=task)
    assert learner.fitted_.target.high > np.log(y.max())
    assert (learner.predict(X, task=task)[task == last] > 10 * y[task != last].mean()).all()


def test_the_log_of_labels_that_have_none(tmp_path):
    X, y, task = np.arange(90.0)[:, None], np.arange(90.0) + 1, np.repeat(np.arange(30), 3)
    y[70] = -2.0
    parts = [TaskSet.from_arrays(X[r], y[r], task=task[r]) for r in (task < 15, task >= 15)]
    with pytest.raises(DataError, match=r"y holds -2, which has no logarithm: y_transform='log'"):
        fit_parts(cm.ConditionalRidge(y_transform="log"), parts, tmp_path)


def test_bounds_narrow_until_the_sample_is_found():
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 1 << 62, 1000).astype(np.uint64)
    found = KeyedTasks(np.arange(1000).astype(object), keys, rng.integers(1, 5, 1000))
    near, bound, bounds = [], LARGEST_KEY, []
    for part in np.array_split(np.arange(1000), 20):
        near, bound = narrowed(near, found.where(part))
        bounds.append(bound)
    assert bounds[:3] == [LARGEST_KEY] * 3  # 150 tasks are no more than the sample holds
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == largest_key(found) == np.sort(keys)[149]


def test_a_part_without_a_row_that_counts(tmp_path):
    rng = np.random.default_rng(0)
    task, X = np.repeat(np.arange(60), 5), rng.normal(size=(300, 1))
    y, weight = np.exp(X[:, 0] + 0.3 * rng.normal(size=300)), 1.0 * (task >= 20)
    parts = [
        TaskSet.from_arrays(X[r], y[r], task=task[r], weight=weight[r])
        for r in (task < 20, task >= 20)
    ]
    whole = cm.ConditionalRidge(**FEW).fit(X, y, task=task, sample_weight=weight)
    for some in (parts, parts[::-1]):
        found = fit_parts(cm.ConditionalRidge(**FEW), some, tmp_path)
        assert found.y_transform_ == whole.y_transform_ == "yeo-johnson"
        np.testing.assert_array_equal(found.predict(X, task=task), whole.predict(X, task=task))
