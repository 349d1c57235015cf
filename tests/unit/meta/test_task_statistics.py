"""Statistics of tasks that come in parts: the same as those of all tasks and points at once."""

from __future__ import annotations

import numpy as np

from condmeta.meta import task_statistics
from condmeta.meta.task_statistics import TaskStatistics
from condmeta.tasks.ids import as_id_array
from condmeta.tasks.points import Points


def draw(sizes, seed=0) -> Points:
    rng, n = np.random.default_rng(seed), sum(sizes)
    return Points(rng.normal(size=(n, 2)), rng.normal(size=n), np.append(0, np.cumsum(sizes)), None)


def ids(*names):
    return as_id_array(list(names))


def assert_alike(one: TaskStatistics, other: TaskStatistics) -> None:
    for name in ("whole", "support", "query"):
        for a, b in zip(getattr(one, name), getattr(other, name), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)
    assert one.sizes.tolist() == other.sizes.tolist()
    assert one.sample.tolist() == other.sample.tolist()


def test_further_points_go_on_with_the_halves():
    """A task with an odd number of points: its next point belongs to the other half."""
    names, whole = ids("a", "b", "c"), draw([5, 4, 7])
    first, rest = [3, 1, 2], [2, 3, 5]
    start = np.concatenate([np.arange(lo, lo + n) for lo, n in zip([0, 5, 9], first, strict=True)])
    later = np.setdiff1d(np.arange(16), start)
    cuts = np.append(0, np.cumsum(first)), np.append(0, np.cumsum(rest))
    found = TaskStatistics.of(names, whole.pick(start, cuts[0]))
    found = found.extend(np.arange(3), whole.pick(later, cuts[1]))
    assert_alike(found, TaskStatistics.of(names, whole))
    again = draw([1, 2, 1], seed=1)
    longer = found.extend(np.arange(3), again).extend(np.arange(3), again)
    assert longer.sizes.tolist() == [7, 8, 9]
    rows = np.vstack([whole.X[9:], again.X[3:], again.X[3:]])
    at = list(found.sample).index(2)
    np.testing.assert_allclose(longer.support.mean[at, :2], rows[1::2].mean(axis=0))
    np.testing.assert_allclose(longer.query.mean[at, :2], rows[0::2].mean(axis=0))


def test_tasks_of_two_calls_are_the_tasks_of_one(monkeypatch):
    monkeypatch.setattr(task_statistics, "SAMPLE", 3)
    whole = draw([2, 3, 4, 3, 2])
    one = TaskStatistics.of(ids("a", "b"), whole.take(np.arange(2)))
    other = TaskStatistics.of(ids("c", "d", "e"), whole.take(np.arange(2, 5)))
    assert_alike(one.join(other), TaskStatistics.of(ids(*"abcde"), whole))
    assert len(one.join(other).sample) == 3
