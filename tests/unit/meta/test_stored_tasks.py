"""Tasks whose statistics are in files: the sums and the models of tasks in memory, bit for bit."""

import numpy as np
import pytest

import condmeta as cm
from condmeta.errors import DataError
from condmeta.learners.parts import fit_parts
from condmeta.meta import blocks, task_files
from condmeta.meta.blocks import leaf_bits
from condmeta.meta.stored_tasks import Here, StoredTasks
from condmeta.meta.task_files import write_piece
from condmeta.meta.task_statistics import TaskStatistics
from condmeta.meta.trained_tasks import InMemory, Scaling
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.points import Points

T = 700


@pytest.fixture(autouse=True)
def small_leaves(monkeypatch):
    """Make 32 leaves, in 8 shards."""
    monkeypatch.setattr(blocks, "LEAF", 16)
    monkeypatch.setattr(task_files, "BUCKETS", 3)


def draw(precision=False):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 9, T)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = rng.normal(size=(offsets[-1], 3)) * [1, 10, 0.1] + [0, 100, 5]
    side = rng.normal(size=(T, 2))
    w = np.column_stack([side @ rng.normal(size=(2, 3)), side[:, :1]]) + 0.5
    task = np.repeat(np.arange(T), sizes)
    y = (X * w[task, :3]).sum(axis=1) + w[task, 3] + rng.normal(size=len(X))
    weight = rng.uniform(0.5, 2, (len(X), 2)) if precision else None
    return X, y, offsets, task, side, weight


def pieces_of(points, folder, cuts):
    pieces, sampled = [], None
    for number, at in enumerate(cuts):
        found = TaskStatistics.of(at.astype(object), points.take(at))
        pieces.append(write_piece(folder / f"piece-{number}", found))
        more = found.sampled()
        sampled = more if sampled is None else sampled.join(more).sampled()
    return pieces, sampled


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("precision", [False, True])
def test_sums_and_statistics_have_the_bits_of_those_in_memory(tmp_path, n_jobs, precision):
    X, y, offsets, _, side, weight = draw(precision)
    points = Points(X, y, offsets, weight)
    whole = TaskStatistics.of(np.arange(T).astype(object), points)
    memory = InMemory(whole, side)
    cuts = np.array_split(np.random.default_rng(n_jobs).permutation(T), 2 + n_jobs)
    stored = StoredTasks.merge(tmp_path, *pieces_of(points, tmp_path, cuts)[::-1], Here(n_jobs))
    assert stored.leaves.n_leaves == 1 << leaf_bits(T) == 32
    assert len(stored.leaves.shards) == 8
    stored = stored.with_features(side[stored.ids[stored.at].astype(int)])
    for left, right in zip(stored.moments, memory.moments, strict=True):
        np.testing.assert_array_equal(left, right)
    for left, right in zip(stored.rotation(), memory.rotation(), strict=True):
        np.testing.assert_array_equal(left, right)
    np.testing.assert_array_equal(stored.sample.Phi, memory.sample.Phi)
    for left, right in zip(stored.sample.query, memory.sample.query, strict=True):
        np.testing.assert_array_equal(left, right)
    loaded = stored.load()
    place = np.argsort(loaded.ids.astype(int))
    for left, right in zip(loaded.whole.take(place), whole.whole, strict=True):
        np.testing.assert_array_equal(left, right)
    np.testing.assert_array_equal(loaded.keys[place], whole.keys)
    np.testing.assert_array_equal(loaded.ids[loaded.sample], whole.ids[whole.sample])


def test_blocks_have_the_bits_of_those_in_memory(tmp_path):
    X, y, offsets, _, side, _ = draw()
    points = Points(X, y, offsets, None)
    memory = InMemory(TaskStatistics.of(np.arange(T).astype(object), points), side)
    pieces, sampled = pieces_of(points, tmp_path, np.array_split(np.arange(T), 5))
    stored = StoredTasks.merge(tmp_path, sampled, pieces, Here())
    stored = stored.with_features(side[stored.at])
    start = cm.ConditionalRidge().fit(X, y, task=np.repeat(np.arange(T), np.diff(offsets)))
    scaling = Scaling(start.fitted_.scales, memory.rotation())
    both = memory.blocks(scaling), stored.blocks(scaling)

    def grams(block):
        return block.stats.gram.sum(axis=0), block.Phi1.T @ block.Phi1, block.stats.square.sum()

    def halved(stats):
        return stats._replace(gram=stats.gram / 3)

    def compare(one, other):
        for left, right in zip(one.map_sum(grams), other.map_sum(grams), strict=True):
            np.testing.assert_array_equal(left, right)

    compare(*both)
    compare(*(blocks.changed(halved) for blocks in both))
    heads = [list(blocks.heads()) for blocks in both]
    assert [len(h.leaves) for h in heads[0]] == [h.n_leaves for h in heads[1]] == [1, 8]
    for one, other in zip(*heads, strict=True):
        compare(one, other)
    only = [blocks.head(1).only for blocks in both]
    np.testing.assert_array_equal(only[0].stats.gram, only[1].stats.gram)
    np.testing.assert_array_equal(only[0].Phi1, only[1].Phi1)


@pytest.mark.parametrize("options", [{}, {"missing_side": "mean"}, {"random": "intercept"}])
def test_a_fit_has_the_bits_of_one_in_memory(tmp_path, options):
    X, y, _, task, side, _ = draw()
    table = TaskTable(np.vstack([side, side[:40] + 1]), ids=range(T + 40))  # 40 without points
    if "missing_side" in options:
        table = table.rows(np.arange(5, T + 40))
    whole = cm.ConditionalRidge(**options).fit(X, y, task=task, side_info=table)
    parts = []
    for some in np.array_split(np.arange(T), 4):
        rows = np.isin(task, some)
        parts.append(TaskSet.from_arrays(X[rows], y[rows], task=task[rows]))
    for keep in (0, 10**9):
        stored = fit_parts(
            cm.ConditionalRidge(**options), parts, tmp_path, lambda: table, keep=keep
        )
        np.testing.assert_array_equal(stored.M_, whole.M_)
        np.testing.assert_array_equal(stored.b_, whole.b_)
        np.testing.assert_array_equal(stored.H_, whole.H_)
        assert (stored.s2_, stored.objective_) == (whole.s2_, whole.objective_)
        one, other = stored.fitted_.tasks, whole.fitted_.tasks
        at = other.positions(one.ids.tolist())
        for name in ("theta", "coef", "sizes", "Phi"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name)[at])
    more = {"X": X[:3], "y": y[:3] + 1, "task": task[:3]}
    updated = [learner.update(**more).predict(X, task=task) for learner in (stored, whole)]
    np.testing.assert_array_equal(*updated)


def test_a_model_without_statistics_says_so(tmp_path):
    X, y, _, task, _, _ = draw()
    parts = [TaskSet.from_arrays(X, y, task=task)]
    stored = fit_parts(cm.ConditionalRidge(), parts, tmp_path)
    with pytest.raises(DataError, match="without the statistics"):
        stored.partial_fit(X[:3] + 1, y[:3], task=[-1, -1, -1])
    with pytest.raises(DataError, match="without the statistics that update needs"):
        stored.update(X[:3], y[:3], task=task[:3])


def test_a_file_that_was_cut_is_an_error(tmp_path):
    X, y, offsets, _, side, _ = draw()
    pieces, sampled = pieces_of(Points(X, y, offsets, None), tmp_path, [np.arange(T)])
    stored = StoredTasks.merge(tmp_path, sampled, pieces, Here()).with_features(side)
    path = tmp_path / "shard-005"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(OSError, match="shard-005' ends too early: was the work folder changed"):
        stored.moments  # noqa: B018
