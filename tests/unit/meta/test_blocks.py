"""Tasks in leaves: the same answers as in one block, and the same bits for any order of rows."""

import math
from functools import partial, reduce

import numpy as np
import pytest

import condmeta as cm
from condmeta.inner.scatter import Scatter
from condmeta.meta import blocks
from condmeta.meta.blocks import Leaves, OneBlock, by_leaf, with_one
from condmeta.meta.prior import Prior
from condmeta.meta.ridge import RidgeModel, learn_from_blocks, learn_prior
from condmeta.meta.task_statistics import TaskStatistics
from condmeta.tasks import TaskTable
from condmeta.tasks.numbers import tree_sum
from condmeta.tasks.points import Points

T, D, K = 120, 3, 2


@pytest.fixture(autouse=True)
def small_leaves(monkeypatch):
    monkeypatch.setattr(blocks, "LEAF", 8)


def draw(seed=0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, T)
    Phi, offsets = rng.normal(size=(T, K)), np.append(0, np.cumsum(sizes))
    W = np.repeat(Phi @ rng.normal(size=(K, D)) + 0.4 * rng.normal(size=(T, D)), sizes, axis=0)
    X = rng.normal(size=(offsets[-1], D)) + 3
    y = np.einsum("ni,ni->n", X, W) + rng.normal(size=offsets[-1])
    keys = rng.integers(0, 2**64, T, dtype=np.uint64)
    return X, y, offsets, Phi, keys


def in_leaves(n_jobs=1):
    X, y, offsets, Phi, keys = draw()
    scatter, leaves = Scatter.of(X, y, offsets), by_leaf(keys)
    read = partial(scatter.statistics, np.full(D + 1, 3.0), np.full(D, 1.5), True)
    order = np.concatenate(leaves)
    return (
        Leaves(lambda at: read(at=at), leaves, with_one(Phi[order]), n_jobs),
        OneBlock.of(read(at=order), Phi[order]),
    )


def test_leaves_are_the_leading_bits_of_the_keys():
    keys = draw()[-1]
    leaves = by_leaf(keys)
    assert len(leaves) == 8  # 120 // 8 = 15: between 8 and 16 tasks a leaf on average
    assert sorted(np.concatenate(leaves)) == list(range(T))
    for number, leaf in enumerate(leaves):
        assert (keys[leaf] >> np.uint64(61) == number).all()
        assert (np.diff(keys[leaf].astype(object)) > 0).all()


@pytest.mark.parametrize("count", [0, 1, 7, 15, 16])
def test_few_tasks_are_few_leaves(count):
    assert len(by_leaf(np.arange(count, dtype=np.uint64))) == (2 if count == 16 else 1)


def test_a_subtree_has_the_bits_that_it_has_in_the_tree():
    parts = [(x,) for x in np.random.default_rng(0).normal(size=16) * 10.0 ** np.arange(16)]
    (whole,) = tree_sum(parts)
    halves = [tree_sum(parts[:8]), tree_sum(parts[8:])]
    assert tree_sum(halves)[0] == whole
    assert whole == pytest.approx(math.fsum(x for (x,) in parts), rel=1e-14)


@pytest.mark.parametrize("correlated", [True, False])
@pytest.mark.parametrize("kappa", [0.7, np.inf])
def test_the_objective_and_its_gradient_are_those_of_one_block(correlated, kappa):
    leaves, one = in_leaves()
    ours, theirs = RidgeModel(leaves, kappa), RidgeModel(one, kappa)
    L = np.eye(D + 1) + (np.tri(D + 1, k=-1) * 0.1 if correlated else 0.0)
    prior = Prior(np.random.default_rng(1).normal(size=(ours.rows, D + 1)), L, 0.8)
    (J, slope), (expected, by) = (model.evaluate(prior, correlated) for model in (ours, theirs))
    assert pytest.approx(expected, rel=1e-13) == J
    for a, b in zip(slope, by, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(ours.start().W, theirs.start().W, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ours.root, theirs.root, rtol=1e-10)


def test_a_prior_learned_in_leaves_is_that_of_one_block():
    leaves, one = in_leaves()
    found = learn_from_blocks(leaves, "full", 1.0)
    expected = learn_prior(one.only.stats, one.only.Phi1[:, :-1], "full", 1.0)
    assert found.objective == pytest.approx(expected.objective, abs=1e-3)
    np.testing.assert_allclose(found.prior.theta(draw()[3]), expected.prior.theta(draw()[3]),
                               atol=0.02)  # fmt: skip


def test_threads_do_not_change_a_bit():
    one, two = (learn_from_blocks(in_leaves(jobs)[0], "diagonal", 1.0) for jobs in (1, 2))
    for a, b in zip(one.prior, two.prior, strict=True):
        np.testing.assert_array_equal(a, b)


def test_warm_starts_read_ever_more_leaves():
    assert [len(head.leaves) for head in in_leaves()[0].heads()] == [1]


def test_a_fit_has_the_same_bits_for_any_order_of_tasks(monkeypatch):
    monkeypatch.setattr("condmeta.meta.task_statistics.SAMPLE", 40)
    X, y, offsets, Phi, _ = draw()
    task, ids = np.repeat(np.arange(T), np.diff(offsets)), np.arange(T)
    Phi[::7, 0] = np.nan

    def fit(tasks):
        # The rows of a task keep their order.
        rows = np.concatenate([np.arange(offsets[t], offsets[t + 1]) for t in tasks])
        side = cm.TaskTable(Phi[tasks[:-3]], ids=ids[tasks[:-3]])
        learner = cm.ConditionalRidge(missing_side="mean", scale="standard")
        return learner.fit(X[rows], y[rows], task=task[rows], side_info=side)

    late = np.append(np.setdiff1d(ids, ids[-3:]), ids[-3:])
    mixed = np.append(np.random.default_rng(5).permutation(T - 3), ids[-3:])
    one, two = fit(late), fit(mixed)
    for name in ("M_", "b_", "H_", "s2_", "objective_", "choice_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    coef = [m.fitted_.tasks.coef[m.fitted_.tasks.positions(ids.tolist())] for m in (one, two)]
    np.testing.assert_array_equal(*coef)


def test_parts_joined_at_once_are_those_joined_one_by_one(monkeypatch):
    monkeypatch.setattr("condmeta.meta.task_statistics.SAMPLE", 15)
    X, y, offsets, Phi, _ = draw()
    parts = []
    for lo in range(0, T, 30):
        rows = slice(offsets[lo], offsets[lo + 30])
        ids = np.array([f"t{t}" for t in range(lo, lo + 30)], object)
        table = TaskTable({"a": Phi[lo : lo + 30, 0]}, ids)
        points = Points(X[rows], y[rows], offsets[lo : lo + 31] - offsets[lo])
        parts.append(TaskStatistics.of(ids, points, table))
    one_by_one = reduce(TaskStatistics.join, parts)
    at_once = TaskStatistics.joined(parts)
    assert parts == []
    assert at_once.ids.tolist() == one_by_one.ids.tolist()
    np.testing.assert_array_equal(at_once.sample, one_by_one.sample)
    for name in ("whole", "support", "query"):
        for a, b in zip(getattr(at_once, name), getattr(one_by_one, name), strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(at_once.table.data["a"], one_by_one.table.data["a"])
