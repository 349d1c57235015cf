"""Fits on real Dask worker processes: the model of the same rows in memory, bit for bit."""

import logging
import os
import signal
import time
from zlib import crc32

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import draw_stores
from sklearn.base import clone
from worker_functions import (
    about_another_machine,
    die,
    go_on_slowly,
    many_times,
    page_faults,
    slowly,
)

import condmeta as cm
from condmeta.errors import DataError
from condmeta.feature_maps.column_profile import exact_mean
from condmeta.learners.sampled import solve_part
from condmeta.learners.task_sample import keyed_tasks
from condmeta.meta import blocks
from condmeta.tables.cluster import fit as cluster_fit
from condmeta.tables.cluster import workers as cluster_workers
from condmeta.tables.cluster.partitions import exact, joined
from condmeta.tables.cluster.stream import go_on_with

pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")
# The scheduler runs in a thread of this process: a warning that is an error would stop it.
pytestmark = pytest.mark.filterwarnings("ignore")
T = 300
LINEAR = {"x_transform": None, "y_transform": None}


def table(seed=0):
    """Return shuffled rows with text, dates, booleans and gaps."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(T), rng.integers(1, 9, T))
    N = len(task)
    price, promo = rng.normal(5, 1, N).round(2), rng.random(N) < 0.3
    weather = rng.choice(["sun", "rain", "snow"], N, p=[0.6, 0.3, 0.1])
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, N), unit="D")
    sold = 20 - (2 + rng.normal(size=T)[task]) * price + 3 * promo + rng.normal(size=N)
    frame = pd.DataFrame({
        "store": [f"s{t:03d}" for t in task], "price": price, "promo": promo, "weather": weather,
        "day": day, "sold": sold,
    })  # fmt: skip
    frame.loc[rng.choice(N, 20, replace=False), "price"] = np.nan
    frame.loc[rng.choice(N, 20, replace=False), "weather"] = None
    return frame.iloc[rng.permutation(N)].reset_index(drop=True)


def stores(extra=3):
    return draw_stores(T + extra)


def model(learner=None, **options):
    if learner is None:  # few passes: each takes some messages
        few = {"metric": "diagonal", "kappa": 1.0, "cold_start": "prior", "tol": 0.1}
        learner = cm.ConditionalRidge(**few, **LINEAR)
    return cm.TableModel(learner, task="store", target="sold", missing="impute", **options)


def same(one, other):
    assert one.n_rows_ == other.n_rows_
    assert one.schema_.feature_names == other.schema_.feature_names
    a, b = one.learner_.fitted_, other.learner_.fitted_
    at = b.tasks.positions(a.tasks.ids.tolist())
    assert len(a.tasks) == len(b.tasks)
    pairs = [
        (one.learner_.M_, other.learner_.M_), (one.learner_.b_, other.learner_.b_),
        (one.learner_.H_, other.learner_.H_), (one.learner_.s2_, other.learner_.s2_),
        (a.tasks.coef, b.tasks.coef[at]), (a.tasks.sizes, b.tasks.sizes[at]),
    ]  # fmt: skip
    for left, right in pairs:
        np.testing.assert_array_equal(left, right)


@pytest.fixture(scope="module")
def client():
    with cluster_workers.cluster_of(3, None) as client:
        yield client


@pytest.fixture(autouse=True)
def few_tasks_in_a_leaf(monkeypatch):
    monkeypatch.setattr(blocks, "LEAF", 60)  # 4 leaves


@pytest.fixture(scope="module")
def whole():
    before = blocks.LEAF
    blocks.LEAF = 60
    try:
        return model().fit(table(), stores())
    finally:
        blocks.LEAF = before


def sum_on_workers(monkeypatch):
    """Let workers sum up few leaves too, pass after pass."""
    monkeypatch.setattr(cluster_workers, "LEAVES_A_JOB", 1)


def restrict(client, n_workers, monkeypatch):
    """Let some workers do all the work."""
    some = list(client.nthreads())[:n_workers]
    submit = client.submit

    def restricted(*args, **kwargs):
        return submit(*args, **kwargs, workers=some)

    monkeypatch.setattr(client, "submit", restricted)
    monkeypatch.setattr(client, "nthreads", lambda: dict.fromkeys(some, 1))


@pytest.mark.parametrize("partitions", [1, 4, 11])
def test_any_partitions_give_the_bits_of_the_rows_in_memory(client, whole, partitions, monkeypatch):
    if partitions == 4:
        sum_on_workers(monkeypatch)
    ddf = dd.from_pandas(table(), npartitions=partitions, sort=False)
    same(whole, model().fit(ddf, stores()))


def test_all_choices(client, monkeypatch):
    monkeypatch.setattr(blocks, "LEAF", 150)  # 2 leaves
    ddf = dd.from_pandas(table(), npartitions=2, sort=False)
    whole = model(cm.ConditionalRidge()).fit(table())
    same(whole, model(cm.ConditionalRidge()).fit(ddf))


@pytest.mark.parametrize("n_workers", [1, 2])
def test_any_number_of_workers_gives_the_same_bits(client, whole, n_workers, monkeypatch):
    restrict(client, n_workers, monkeypatch)
    sum_on_workers(monkeypatch)
    ddf = dd.from_pandas(table(), npartitions=5, sort=False)
    same(whole, model().fit(ddf, stores()))


def test_parquet_files_and_side_columns(client, tmp_path):
    frame = table().merge(stores(0), on="store")
    paths = []
    for number, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        paths.append(str(tmp_path / f"{number}.parquet"))
        pq.write_table(pa.Table.from_pandas(frame.iloc[part]), paths[-1], row_group_size=100)
    options = {"side": ["size", "kind"]}
    found = model(**options).fit_dask(paths, client=client, folder=tmp_path / "work")
    same(model(**options).fit(frame), found)
    assert not (tmp_path / "work").exists()


def test_predictions_are_lazy_and_equal(client, whole):
    frame = table()
    ddf = dd.from_pandas(frame, npartitions=4, sort=False)
    lazy = whole.predict(ddf)
    assert isinstance(lazy, dd.Series)
    found = lazy.compute()
    np.testing.assert_array_equal(found.to_numpy(), whole.predict(frame))
    assert found.name == "sold"
    with pytest.raises(DataError, match="Intervals are for tables in memory"):
        whole.predict(ddf, coverage=0.9)


def wait_for_all(client):
    """Wait for a killed worker; start all anew if it does not come back, as happens under load."""
    try:
        client.wait_for_workers(3, timeout=20)
    except TimeoutError:
        client.restart(timeout=60)


@pytest.mark.parametrize("step", ["split_rows", "sum_leaves", "map_leaves"])
def test_a_worker_that_is_killed_changes_nothing(client, whole, step, monkeypatch):
    ddf, runs = dd.from_pandas(table(), npartitions=4, sort=False), []
    run = cluster_workers.OnWorkers._submit
    if step == "sum_leaves":
        sum_on_workers(monkeypatch)

    def watched(runner, function, jobs):
        inner = getattr(function, "func", function)
        jobs = list(jobs)
        names = {inner.__name__, *(getattr(j, "__name__", "") for job in jobs for j in job)}
        if step in names and not runs:  # the worker is dead before its jobs are done
            runs.append(step)
            pid = next(iter(client.run(os.getpid).values()))
            futures = run(runner, slowly, [(function, job) for job in jobs])
            time.sleep(0.1)
            os.kill(pid, signal.SIGKILL)
            return futures
        return run(runner, function, jobs)

    monkeypatch.setattr(cluster_workers.OnWorkers, "_submit", watched)
    same(whole, model().fit(ddf, stores()))
    assert runs == [step]
    wait_for_all(client)


def test_workers_with_too_little_memory():
    """Dask kills a worker at 95 % of its memory: a partition that does not fit ends in a sentence.

    Smaller partitions of the same rows fit, and the model has the bits of memory.
    """
    import dask
    from distributed import Client, LocalCluster

    frame = table()
    limits = {"distributed.scheduler.allowed-failures": 0,
              "distributed.worker.memory.monitor-interval": "20ms"}  # fmt: skip
    with (
        dask.config.set(limits),
        LocalCluster(
            1, threads_per_worker=1, dashboard_address=None, memory_limit="600MB",
            silence_logs=logging.CRITICAL,
        ) as small,
        Client(small) as client,
    ):  # fmt: skip
        large = dd.from_delayed([dask.delayed(many_times)(frame, 20_000)], meta=frame[:0])
        with pytest.raises(
            DataError, match=r"Workers died 1 time at .* give each worker more memory"
        ):
            model().fit_dask(large, stores(), client=client)
        client.wait_for_workers(1)
        whole = model().fit(table(), stores())
        ddf = dd.from_pandas(frame, npartitions=3, sort=False)
        same(whole, model().fit_dask(ddf, stores(), client=client))


def test_workers_that_die_again_and_again(client, monkeypatch):
    monkeypatch.setattr(cluster_fit, "split_rows", die)
    ddf = dd.from_pandas(table(), npartitions=1, sort=False)
    with pytest.raises(DataError, match=r"Workers died 4 times .* give each worker more memory"):
        model().fit(ddf, stores())
    wait_for_all(client)


def test_blas_has_one_thread_on_workers(client):
    found = client.run(lambda: os.environ["OPENBLAS_NUM_THREADS"])
    assert set(found.values()) == {"1"}


def test_workers_use_freed_memory_again(client):
    """A new array for each leaf is not new memory: 100 arrays of 256 pages."""
    faults = client.gather(client.submit(page_faults, 100, 1 << 20, pure=False))
    assert faults < 25 * 256


def test_few_leaves_are_summed_up_by_the_caller(client, whole, monkeypatch):
    run, functions = cluster_workers.OnWorkers._submit, []

    def watched(runner, function, jobs):
        functions.append(getattr(function, "func", function).__name__)
        return run(runner, function, jobs)

    monkeypatch.setattr(cluster_workers.OnWorkers, "_submit", watched)
    same(whole, model().fit(dd.from_pandas(table(), npartitions=2, sort=False), stores()))
    assert "write_shard" in functions
    assert "sum_leaves" not in functions


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda f: f.assign(sold=f["sold"].where(f.index > 1)), r"\(target\) is empty in 2 of"),
        (lambda f: f.assign(store=f["store"].where(f.index > 3)), r"\(task\) is empty in 4 of"),
    ],
)
def test_rows_that_cannot_be_learned_from(client, change, sentence):
    ddf = dd.from_pandas(change(table()), npartitions=3, sort=False)
    with pytest.raises(DataError, match=sentence):
        model().fit(ddf)


def test_calls_that_cannot_work(client, tmp_path):
    ddf = dd.from_pandas(table(), npartitions=3, sort=False)
    with pytest.raises(DataError, match="PooledRegressor needs all rows at once"):
        model(cm.PooledRegressor()).fit(ddf)
    with pytest.raises(DataError, match="Ridge learns from all tasks: leave prior_tasks out"):
        model().fit_dask(ddf, prior_tasks=100)
    with pytest.raises(DataError, match="prior_tasks must be a number of tasks, got 0"):
        model(cm.ConditionalRidge(base="boosting")).fit_dask(ddf, prior_tasks=0)
    with pytest.raises(DataError, match="Intervals need all rows"):
        model(intervals=True).fit(ddf)
    with pytest.raises(DataError, match="'country=DE' name a column: read the files by dask"):
        model().fit_dask(["rows/country=DE/0.parquet"], client=client)
    (tmp_path / "letter.txt").touch()
    with pytest.raises(DataError, match="is not empty: name another one to work in"):
        model().fit_dask(ddf, client=client, folder=tmp_path)


def test_learners_name_the_call_for_a_dask_dataframe():
    frame = table()[["store", "price", "sold"]].dropna()
    ddf = dd.from_pandas(frame, npartitions=3, sort=False)
    learner = cm.ConditionalRidge()
    sentence = r"X is a Dask DataFrame.*cm.TableModel\(cm.ConditionalRidge\(\), task=..., target="
    with pytest.raises(DataError, match=sentence):
        learner.fit(ddf, task="store")
    learner.fit(frame[["store", "price"]], frame["sold"], task="store")
    with pytest.raises(DataError, match=sentence):
        learner.predict(ddf, task="store")


def test_a_folder_that_workers_do_not_reach(client, monkeypatch):
    monkeypatch.setattr(cluster_workers, "_about", about_another_machine)
    ddf = dd.from_pandas(table(), npartitions=2, sort=False)
    with pytest.raises(DataError, match=r"does not reach the folder .* that all workers share"):
        model().fit(ddf)


def test_no_client():
    sentence, nowhere = "There is no Dask scheduler at", "tcp://127.0.0.1:1"
    with (
        pytest.raises(DataError, match=sentence),
        cluster_workers.cluster_of(None, nowhere, timeout=1),
    ):
        pass


def test_a_scheduler_without_workers():
    from distributed import LocalCluster

    sentence = r"The Dask scheduler at 'tcp://127.0.0.1:\d+' has no workers"
    with (
        LocalCluster(n_workers=0, dashboard_address=None) as cluster,
        pytest.raises(DataError, match=sentence),
        cluster_workers.cluster_of(None, cluster.scheduler_address, timeout=0.2),
    ):
        pass


def test_means_of_partitions_are_exact():
    rng = np.random.default_rng(0)
    values = rng.normal(size=5000) * 10.0 ** rng.integers(-200, 200, 5000)
    values[rng.random(5000) < 0.1] = np.nan
    found = joined([exact(part) for part in np.array_split(values, 7)])
    seen = values[~np.isnan(values)]
    assert found == (5000 - len(seen), seen.min(), seen.max(), exact_mean(seen, len(seen)))
    assert joined([exact(np.array([np.nan]))]) == (1, None, None, 0.0)


@pytest.mark.parametrize(("n_workers", "partitions"), [(1, 2), (2, 7), (3, 3)])
def test_weights_of_rows(client, n_workers, partitions, monkeypatch):
    """Text, gaps and weights; rows in three orders, each with the bits of these rows in memory."""
    frame = table()
    frame["times"] = np.random.default_rng(3).integers(0, 4, len(frame)) / 2
    frame.loc[frame["store"] == "s007", "times"] = 0.0
    mixed = frame.iloc[np.random.default_rng(n_workers).permutation(len(frame))]
    restrict(client, n_workers, monkeypatch)
    ddf = dd.from_pandas(mixed, npartitions=partitions, sort=False)
    same(model(weight="times").fit(mixed, stores()), model(weight="times").fit(ddf, stores()))


def many_stores(kind):
    """Return rows of a target that needs rows, and the learner that reads it."""
    frame = table().drop(columns=["day"])
    noise = np.random.default_rng(2).normal(size=len(frame))
    if kind == "class":
        frame["sold"] = np.where(frame["sold"] + 5 * noise > 5, "yes", "no")
        return frame, cm.ConditionalLogistic(metric="diagonal", kappa=1.0)
    if kind == "count":
        frame["sold"] = np.maximum(np.round(frame["sold"] / 4 + noise), 0)
        frame["days"] = 1.0 + frame.index % 3
        return frame, cm.ConditionalCount(metric="diagonal", kappa=1.0)
    return frame, cm.ConditionalRidge(base="boosting", metric="diagonal", kappa=1.0)


@pytest.mark.parametrize("kind", ["class", "count", "base"])
def test_learners_that_need_rows(client, kind, tmp_path, monkeypatch):
    """The prior of a sample; models have the same bits for any workers and partitions."""
    frame, learner = many_stores(kind)
    options = {"exposure": "days"} if kind == "count" else {}
    whole = model(learner, **options)
    tasks, found = whole.read_tasks(frame, stores()), []
    for partitions, n_workers in ((1, 3), (4, 1), (7, 2)):
        with monkeypatch.context() as patch:
            restrict(client, n_workers, patch)
            ddf = dd.from_pandas(frame, npartitions=partitions, sort=False)
            found.append(model(learner, **options).fit_dask(ddf, stores(), prior_tasks=120))
    first = found[0].learner_
    assert first.n_tasks_ == 120
    assert len(first.fitted_.tasks) == T + 3
    for other in found[1:]:
        a, b = first.fitted_.tasks, other.learner_.fitted_.tasks
        np.testing.assert_array_equal(a.coef, b.coef[b.positions(a.ids.tolist())])
        np.testing.assert_array_equal(found[0].predict(frame), other.predict(frame))
    # In memory: fit to the sample, then update with the rest, block after block.
    ids, n = first.fitted_.tasks.ids[:120].tolist(), cluster_fit.LEAST_GROUPS
    here = clone(learner)
    here.fit(tasks.subset([tasks.position(task) for task in ids]))
    blocks_of = {}
    for task in set(tasks.ids[tasks.sizes > 0].tolist()) - set(ids):
        blocks_of.setdefault(crc32(repr(task).encode()) % n, []).append(task)
    for some in blocks_of.values():
        part = tasks.subset([tasks.position(task) for task in some])
        part = part.subset(np.argsort(keyed_tasks(part).keys, kind="stable"))
        here.update(part)
    a, b = first.fitted_.tasks, here.fitted_.tasks
    np.testing.assert_array_equal(b.coef, a.coef[a.positions(b.ids.tolist())])


def test_a_worker_that_is_killed_while_it_solves_rows(client, monkeypatch):
    frame, learner = many_stores("class")
    ddf, runs = dd.from_pandas(frame, npartitions=4, sort=False), []
    wanted = model(learner).fit_dask(ddf, stores(), prior_tasks=120)
    run = cluster_workers.OnWorkers._submit

    def watched(runner, function, jobs):
        jobs = list(jobs)
        if jobs[0][0] is solve_part and not runs:
            runs.append("solve")
            pid = next(iter(client.run(os.getpid).values()))
            futures = run(runner, slowly, [(function, job) for job in jobs])
            time.sleep(0.1)
            os.kill(pid, signal.SIGKILL)
            return futures
        return run(runner, function, jobs)

    monkeypatch.setattr(cluster_workers.OnWorkers, "_submit", watched)
    found = model(learner).fit_dask(ddf, stores(), prior_tasks=120)
    assert runs == ["solve"]
    a, b = wanted.learner_.fitted_.tasks, found.learner_.fitted_.tasks
    np.testing.assert_array_equal(a.coef, b.coef[b.positions(a.ids.tolist())])
    wait_for_all(client)


def whole_tasks_in(n_partitions, frame):
    """Return partitions whose tasks are whole: pandas frames, and the Dask DataFrame of them."""
    stores = np.array_split(frame["store"].unique(), n_partitions)
    pieces = [frame[frame["store"].isin(some)].reset_index(drop=True) for some in stores]
    return pieces, dd.concat([dd.from_pandas(p, npartitions=1, sort=False) for p in pieces])


@pytest.mark.parametrize("kind", ["number", "class"])
def test_algorithm_1_goes_through_partitions_in_order(client, kind, monkeypatch):
    """The map has the bits of `partial_fit`, partition after partition."""
    frame, learner = table(), cm.ConditionalSGDRegressor(lam=1.0, meta_step=0.1, scale="rows")
    if kind == "class":
        frame["sold"] = np.where(frame["sold"] > 5, "yes", "no")
        learner = cm.ConditionalSGDClassifier(lam=1.0, meta_step=0.1, scale="standard")
    tasks = model(learner).read_tasks(frame, stores())
    for n_partitions, n_workers in ((1, 1), (5, 3)):
        pieces, ddf = whole_tasks_in(n_partitions, frame)
        with monkeypatch.context() as patch:
            restrict(client, n_workers, patch)
            found = model(learner).fit_dask(ddf, stores()).learner_
        here = clone(learner)
        for piece in pieces:
            options = {"classes": [0.0, 1.0]} if kind == "class" and here._model is None else {}
            some = [tasks.position(task) for task in piece["store"].unique()]
            here.partial_fit(tasks.subset(some), **options)
        np.testing.assert_array_equal(found.M_, here.M_)
        np.testing.assert_array_equal(found.b_, here.b_)
        assert found.n_tasks_ == here.n_tasks_ == T
        store = found.fitted_.tasks
        assert len(store) == T + 3
        for piece in pieces:  # models of tasks, block after block
            part = tasks.subset([tasks.position(task) for task in piece["store"].unique()])
            part = part.subset(np.argsort(keyed_tasks(part).keys, kind="stable"))
            models = here.adapt(part)
            coef = np.array([models[task].coef_ for task in part.ids])  # without an intercept
            at = store.positions(part.ids.tolist())
            stored = found.fitted_.scales.user_vector(store.coef[at])
            np.testing.assert_array_equal(stored, coef)


def test_algorithm_1_after_a_worker_was_killed(client, monkeypatch):
    learner = cm.ConditionalSGDRegressor(lam=1.0, meta_step=0.1, scale="rows")
    _, ddf = whole_tasks_in(4, table())
    wanted = model(learner).fit_dask(ddf, stores()).learner_
    submit, runs = client.submit, []

    def watched(function, *args, **options):
        if function is go_on_with:
            runs.append(function)
            if len(runs) == 3:  # while the chain runs
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
            return submit(go_on_slowly, *args, **options)
        return submit(function, *args, **options)

    monkeypatch.setattr(client, "submit", watched)
    found = model(learner).fit_dask(ddf, stores()).learner_
    assert len(runs) == 4
    np.testing.assert_array_equal(found.M_, wanted.M_)
    np.testing.assert_array_equal(found.fitted_.tasks.coef, wanted.fitted_.tasks.coef)
    wait_for_all(client)


def test_algorithm_1_refuses_torn_tasks(client):
    learner = cm.ConditionalSGDRegressor(lam=1.0, meta_step=0.1)
    ddf = dd.from_pandas(table(), npartitions=3, sort=False)
    sentence = r"task 's\d+' are in several partitions.*ddf.shuffle\('store'\)"
    with pytest.raises(DataError, match=sentence):
        model(learner).fit(ddf, stores())
