"""The prior of tasks in groups: J, its gradient, the covariance of the map, and the choice."""

import numpy as np
import pytest

from condmeta.fitted.groups import regroup
from condmeta.inner.nested import NestedGaussian, NestedState
from condmeta.inner.squared import SquaredState
from condmeta.inner.tree import Tree
from condmeta.meta.ascent import Stopping
from condmeta.meta.levels import LevelsModel, LevelsPrior, learn_levels, without_levels
from condmeta.meta.levels_choice import choose_levels, whole_groups
from condmeta.meta.levels_covariance import levels_covariance
from condmeta.meta.ridge import learn_prior
from condmeta.meta.ridge_choice import RidgeSetting

D, K = 2, 2


def draw(seed=0, countries=3, regions=4, stores=5, spread=(0.7, 0.8, 0.6)):
    """Return statistics, Phi, groups, rows and labels of tasks in three levels."""
    rng = np.random.default_rng(seed)
    T = countries * regions * stores
    groups = np.stack(
        [np.arange(T) // (regions * stores), np.arange(T) // stores % regions], axis=1
    )
    offsets = np.append(0, np.cumsum(rng.integers(1, 6, T)))
    task = np.repeat(np.arange(T), np.diff(offsets))
    Phi = rng.normal(size=(T, K))
    Phi[:, 0] = rng.normal(size=countries * regions)[np.arange(T) // stores]  # of the region
    w = Phi @ [[1.0, 0.0], [0.0, 0.5]] + [0.5, -0.5]
    w += spread[0] * rng.normal(size=(countries, D))[groups[:, 0]]
    w += spread[1] * rng.normal(size=(countries * regions, D))[np.arange(T) // stores]
    w += spread[2] * rng.normal(size=(T, D))
    rows = np.column_stack([rng.normal(size=len(task)), np.ones(len(task))])
    y = np.sum(rows * w[task], axis=1) + 0.5 * rng.normal(size=len(task))
    order = rng.permutation(T)
    stats = SquaredState.of(rows, y, offsets)
    return stats.take(order), Phi[order], groups[order], (rows, y, offsets, order)


def prior(seed=1, levels=3):
    rng = np.random.default_rng(seed)
    factors = np.tril(rng.normal(size=(levels, D, D))) * 0.3 + 0.5 * np.eye(D)
    return LevelsPrior(rng.normal(size=(K + 1, D)), factors, 0.4)


@pytest.mark.parametrize("kappa", [0.0, 2.0, np.inf])
@pytest.mark.parametrize("metrics", [("full",) * 3, ("identity", "diagonal", "full")])
def test_the_gradient_in_the_frame_is_a_finite_difference(kappa, metrics):
    stats, Phi, groups, _ = draw()
    model = LevelsModel(stats, Phi, kappa, Tree.of(groups), 1)
    frame = model.frame(model.adopt(prior(), metrics), metrics)
    x = 0.5 * np.random.default_rng(2).normal(size=frame.size)
    _, gradient = model.slope(frame, x)
    low, high = frame.bounds(*model.noise_range())
    assert low.shape == high.shape == gradient.shape == x.shape
    for j in range(frame.size):
        step = np.zeros(frame.size)
        step[j] = 1e-5
        numeric = (model.slope(frame, x + step)[0] - model.slope(frame, x - step)[0]) / 2e-5
        assert gradient[j] == pytest.approx(numeric, rel=1e-6, abs=1e-6)


def test_the_gradient_with_shared_columns_is_a_finite_difference():
    stats, Phi, groups, _ = draw()
    own, metrics = np.array([False, True]), ("full",) * 3
    model = LevelsModel(stats, Phi, 2.0, Tree.of(groups), 1, own)
    start = prior()
    start.W[:-1, 0] = 0.0
    frame = model.frame(model.adopt(start, metrics), metrics)
    x = 0.5 * np.random.default_rng(2).normal(size=frame.size)
    moved, (_, gradient) = frame.prior(x), model.slope(frame, x)
    assert not moved.W[:-1, 0].any()
    assert not moved.factors[:, 0].any()
    assert moved.W[-1, 0] != start.W[-1, 0]
    for j in range(frame.size):
        step = np.zeros(frame.size)
        step[j] = 1e-5
        numeric = (model.slope(frame, x + step)[0] - model.slope(frame, x - step)[0]) / 2e-5
        assert gradient[j] == pytest.approx(numeric, rel=1e-6, abs=1e-6)


def test_levels_left_out_leave_the_model_of_tasks():
    stats, Phi, groups, _ = draw(spread=(0.0, 0.0, 0.6))
    flat = learn_prior(stats, Phi, "full", 1.0, stopping=Stopping(1e-4, 500))
    zero = np.zeros((2, D, D))
    start = LevelsPrior(flat.prior.W, np.concatenate([zero, flat.prior.L[None]]), flat.prior.s2)
    metrics = ("none", "none", "full")
    tight = Stopping(1e-4, 500)
    alone = learn_levels(stats, Phi, Tree.of(groups), metrics, 1.0, start, stopping=tight)
    assert alone.objective == pytest.approx(flat.objective, abs=1e-5)
    np.testing.assert_allclose(alone.prior.H, flat.prior.H, atol=1e-3)
    nested = learn_levels(
        stats, Phi, Tree.of(groups), ("full",) * 3, 1.0, prior(), stopping=tight
    )  # fmt: skip
    assert nested.objective >= flat.objective - 1e-4
    assert (np.trace(nested.prior.factors[:2], axis1=1, axis2=2) < 0.2).all()


def test_a_level_is_left_out_of_the_tree():
    groups = np.array([[0, 0], [1, 0], [0, 1], [1, 0]])
    tree = without_levels(Tree.of(groups), np.array([True, False, True]))
    assert tree.sizes == (2, 4)
    assert tree.order.tolist() == [0, 2, 1, 3]
    tree = without_levels(Tree.of(groups), np.array([False, True, True]))
    assert tree.sizes == (3, 4)


def dense_information(phi, groups, factors, s2, rows, offsets, order):
    """Return the information about vec W of labels whose covariance is written out."""
    task = np.repeat(np.argsort(order), np.diff(offsets))  # rows are in another order than tasks
    H = factors @ np.swapaxes(factors, 1, 2)
    same = [groups[task][:, : j + 1] for j in range(groups.shape[1])] + [task[:, None]]
    V = s2 * np.eye(len(rows))
    for ids, covariance in zip(same, H, strict=True):
        together = (ids[:, None] == ids[None]).all(axis=2)
        V += together * (rows @ covariance @ rows.T)
    design = (phi[task][:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
    return design.T @ np.linalg.solve(V, design)


@pytest.mark.parametrize("kappa", [0.0, 2.0])
def test_the_information_about_the_map_is_the_dense_one(kappa):
    stats, Phi, groups, (rows, _, offsets, order) = draw()
    W, factors, s2 = prior()
    tree, inner = Tree.of(groups), NestedGaussian(factors, s2, False)
    at, phi = tree.order, np.column_stack([Phi, np.ones(len(Phi))])
    state = NestedState(*stats.take(at), (phi @ W)[at], np.zeros((len(Phi), D, D)))
    found = levels_covariance(state, Phi[at], tree, inner, np.full(len(Phi), s2), kappa, False)
    information = dense_information(phi, groups, factors, s2, rows, offsets, order)
    penalty = np.kron(np.diag([1.0, 1.0, 0.0]), kappa * np.linalg.inv(prior().H))
    expected = np.linalg.inv(information + penalty)
    np.testing.assert_allclose(
        found.covariance.matrix.reshape(6, 6), expected, rtol=1e-6, atol=1e-9
    )


def test_the_map_moves_the_means_of_tasks_as_it_is_said():
    stats, Phi, groups, _ = draw(3)
    W, factors, s2 = prior()
    ids = np.fromiter(((*g, t) for t, g in enumerate(groups.tolist())), object, len(groups))
    inner, phi = NestedGaussian(factors, s2, False), np.column_stack([Phi, np.ones(len(Phi))])
    tree = Tree.of(groups)
    state = NestedState(*stats.take(tree.order), (phi @ W)[tree.order], np.zeros((len(Phi), D, D)))
    noise = np.full(len(Phi), s2)
    found = levels_covariance(state, Phi[tree.order], tree, inner, noise, 0.0, False)
    means = found.of_means(Phi[tree.order], inner.covariance_below(1), slice(None))
    slopes = np.empty((len(Phi), D, (K + 1) * D))
    for j in range((K + 1) * D):  # the means are linear in W
        step = np.zeros((K + 1) * D)
        step[j] = 1.0
        moved = phi @ (W + step.reshape(K + 1, D))
        coef = [regroup(ids, stats, base, None, inner).coef for base in (moved, phi @ W)]
        slopes[:, :, j] = coef[0] - coef[1]
    matrix = found.covariance.matrix.reshape((K + 1) * D, -1)
    expected = (slopes @ matrix @ np.swapaxes(slopes, 1, 2))[tree.order]
    np.testing.assert_allclose(means, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("spread", "expected"),
    [
        ((0.0, 1.0, 0.5), (True, False)),
        ((1.5, 0.0, 0.5), (False, True)),
        ((0.0, 0.0, 0.5), (True, True)),
    ],
)
def test_the_levels_that_differ_are_chosen(spread, expected):
    stats, Phi, groups, _ = draw(4, countries=12, regions=6, spread=spread)
    flat = learn_prior(stats, Phi, "diagonal", 1.0)
    candidates = ("none", "identity", "diagonal", "full")
    setting = RidgeSetting("diagonal", "shared", 1.0)
    found = choose_levels(stats, Phi, groups, candidates, setting, flat.prior)
    assert tuple(metric == "none" for metric in found.metrics) == expected
    assert len(found.scores) >= 2 * len(candidates)


def test_groups_are_sampled_whole():
    top = np.repeat(np.arange(40), 200)
    some = whole_groups(top)
    found, counts = np.unique(top[some], return_counts=True)
    assert (counts == 200).all()
    assert len(found) == 14
    one = whole_groups(np.zeros(10_000, int))
    assert len(one) == 10_000
