"""Memory that grows with the square of the features is announced before it is taken."""

import numpy as np
import pytest

import condmeta as cm
from condmeta import engine
from condmeta.errors import MemoryUseWarning
from condmeta.learners import checks
from condmeta.meta import task_statistics
from condmeta.meta.task_statistics import TaskStatistics

RNG = np.random.default_rng(0)
TASK = np.repeat(np.arange(30), 4)
X, Y = RNG.normal(size=(120, 2)), RNG.normal(size=120)


def test_large_statistics_are_announced_before_they_are_made(monkeypatch):
    monkeypatch.setattr(checks, "MUCH_MEMORY", 8 * 30 * 6 - 1)

    def refuse(*_, **__):
        raise AssertionError("the statistics were made first")

    monkeypatch.setattr(TaskStatistics, "of", refuse)
    match = r"^The statistics of 30 tasks with 2 features will take about 0\.0 GB: the square of"
    with pytest.warns(MemoryUseWarning, match=match), pytest.raises(AssertionError):
        cm.ConditionalRidge().fit(X, Y, task=TASK)


def test_small_statistics_are_not(monkeypatch):
    monkeypatch.setattr(checks, "MUCH_MEMORY", 8 * 30 * 6)
    cm.ConditionalRidge().fit(X, Y, task=TASK)  # a warning would be an error


@pytest.mark.parametrize("given", ["rows", "weights", "spare tasks"])
def test_keys_of_tasks_are_made_once(monkeypatch, given):
    how = {"weights": {"sample_weight": RNG.integers(0, 3, 120)}}.get(given, {})
    if given == "spare tasks":
        how = {"side_info": cm.TaskTable(RNG.normal(size=(40, 1)), ids=range(39, -1, -1))}
    plain = cm.ConditionalRidge(x_transform=None, y_transform=None).fit(X, Y, task=TASK, **how)

    def refuse(*_):
        raise AssertionError("the keys were known already")

    monkeypatch.setattr(task_statistics, "keys_by_content", refuse)
    found = cm.ConditionalRidge().fit(X, Y, task=TASK, **how)
    assert found.x_transform_ is None
    assert found.fitted_.state.keys.tolist() == plain.fitted_.state.keys.tolist()
    assert found.M_.tolist() == plain.M_.tolist()


def test_rows_of_unit_length_have_keys_of_their_own():
    plain = cm.ConditionalRidge(scale="rows", x_transform=None, y_transform=None)
    found = cm.ConditionalRidge(scale="rows")
    keys = [each.fit(X, Y, task=TASK).fitted_.state.keys.tolist() for each in (plain, found)]
    assert keys[0] == keys[1]


@pytest.mark.skipif(engine.compiled_core() is None, reason="needs the compiled engine")
def test_compiled_functions_refuse_offsets_of_any_size():
    lowest = np.iinfo(np.int64).min
    for offsets in ([0, lowest, 120], [lowest, 0, 120], [0, 120, lowest], [5, lowest]):
        with pytest.raises(ValueError, match="'offsets' must rise"):
            cm.inner.algorithms.Batch(1.0, "absolute").solve_tasks(
                np.zeros((len(offsets) - 1, 2)), X, Y, np.array(offsets)
            )
