"""Statistics of tasks that come in parts: the same as those of all tasks and points at once."""

from __future__ import annotations

import numpy as np

from condmeta.meta import task_statistics
from condmeta.meta.task_statistics import TaskStatistics
from condmeta.tasks.ids import as_id_array
from condmeta.tasks.points import Points
from condmeta.tasks.splits import in_content_order


def draw(sizes, seed=0) -> Points:
    rng, n = np.random.default_rng(seed), sum(sizes)
    return Points(rng.normal(size=(n, 2)), rng.normal(size=n), np.append(0, np.cumsum(sizes)), None)


def ids(*names):
    return as_id_array(list(names))


def assert_alike(one: TaskStatistics, other: TaskStatistics) -> None:
    parts = [(getattr(one, n), getattr(other, n)) for n in ("whole", "support", "query")]
    for mine, theirs in [*parts, *zip(one.few, other.few, strict=True)]:
        for a, b in zip(mine, theirs, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(a, b, atol=1e-12)
    assert one.sizes.tolist() == other.sizes.tolist()
    assert one.sample.tolist() == other.sample.tolist()


def test_further_points_go_on_with_the_halves():
    """A task with an odd number of points: its next point belongs to the other half."""
    first, rest, last = draw([3, 1, 2]), draw([2, 3, 5], seed=1), draw([1, 2, 1], seed=2)
    found = TaskStatistics.of(ids("a", "b", "c"), first)
    for more in (rest, last, last):
        found = found.extend(np.arange(3), more)
    assert found.sizes.tolist() == [7, 8, 9]
    for at, task in enumerate(found.sample):
        parts = (part.take(np.array([task])) for part in (first, rest, last, last))
        points = [in_content_order(part) for part in parts]  # of one call
        rows = np.vstack([np.column_stack([part.X, part.y]) for part in points])
        np.testing.assert_allclose(found.whole.mean[task], rows.mean(axis=0))
        np.testing.assert_allclose(found.support.mean[at], rows[1::2].mean(axis=0))
        np.testing.assert_allclose(found.query.mean[at], rows[0::2].mean(axis=0))


def test_few_are_the_first_points_of_the_support():
    points = draw([14, 3])
    found = TaskStatistics.of(ids("a", "b"), points)
    for at, task in enumerate(found.sample):
        support = in_content_order(points.take(np.array([task]))).X[1::2]
        for n, part in zip(task_statistics.FEW, found.few, strict=True):
            assert part.count[at] == min(n, len(support))
            np.testing.assert_allclose(part.mean[at, :2], support[:n].mean(axis=0))
    doubled = found.transformed(2 * np.eye(3), np.zeros(3))
    for part, before in zip(doubled.few, found.few, strict=True):
        np.testing.assert_allclose(part.mean, 2 * before.mean)


def test_tasks_of_two_calls_are_the_tasks_of_one(monkeypatch):
    monkeypatch.setattr(task_statistics, "SAMPLE", 3)
    whole = draw([2, 3, 4, 3, 2])
    one = TaskStatistics.of(ids("a", "b"), whole.take(np.arange(2)))
    other = TaskStatistics.of(ids("c", "d", "e"), whole.take(np.arange(2, 5)))
    assert_alike(one.join(other), TaskStatistics.of(ids(*"abcde"), whole))
    assert len(one.join(other).sample) == 3
