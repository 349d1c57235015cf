"""Normal weights on a tree: against reference values, a dense normal, and the other engine."""

import numpy as np
import pytest

from condmeta.inner.nested import NestedGaussian, NestedState
from condmeta.inner.squared import SquaredState
from condmeta.inner.tree import (
    Tree,
    go_down,
    go_up,
    sum_children,
    tree_down,
    tree_likelihood,
    tree_up,
    without_task,
)

# Four stores in two regions: values that were computed by another program.
X = np.array([[1, 1], [2, 1], [0, 1], [1, 1], [3, 1], [2, 1], [1, 1], [0, 1.0]])
Y = np.array([1, 3, 0.5, 2, 4, 1, -1, 0])
PHI = np.array([[0.5, 1], [-0.5, 1], [1, 1], [-1, 1]])
REGION = np.array([1.0, 1.0, -1.0, -1.0])
STORES = np.array([[0.2, 0.1], [1, 0.5]])
REGIONS = np.array([0.3, -0.2])
FACTORS = np.array([[[0.3, 0], [-0.1, 0.6]], [[0.5, 0], [0.1, 0.4]]])
S2 = 0.8


def four_stores():
    stats = SquaredState.of(X, Y, np.array([0, 2, 4, 6, 8]))
    theta = PHI @ STORES + REGION[:, None] * REGIONS
    return stats, theta, Tree.of(np.array([[0], [0], [1], [1]]))


def test_reference_values_of_two_levels():
    stats, theta, tree = four_stores()
    value, slopes = tree_likelihood(stats, theta, tree.parents, FACTORS, S2)
    assert value == pytest.approx(-12.4253933023, abs=1e-10)
    assert slopes.log_s2 == pytest.approx(-0.17684304, abs=1e-8)
    np.testing.assert_allclose(REGION @ slopes.theta, [0.8756477, 1.43590051], atol=1e-8)
    up = go_up(stats, theta, tree.parents, FACTORS, np.full(4, S2))
    (regions,) = go_down(up, tree.parents, FACTORS)
    np.testing.assert_allclose(regions.mean[0] + REGIONS, [0.30399012, -0.18994568], atol=1e-8)
    H = FACTORS[-1] @ FACTORS[-1].T
    store = regions.mean[0] + theta[0] + slopes.theta[0] @ H
    np.testing.assert_allclose(store, [1.29748215, 0.25733103], atol=1e-8)


def random_problem(seed=0, d=3, sizes=(2, 3, 4)):
    """Tasks in three levels; their numbers of points differ, and some have none."""
    rng = np.random.default_rng(seed)
    countries, regions, stores = sizes
    groups = np.array(
        [[c, r] for c in range(countries) for r in range(regions) for _ in range(stores)]
    )
    groups = groups[rng.permutation(len(groups))]
    T = len(groups)
    n = rng.integers(0, 6, T)
    offsets = np.append(0, np.cumsum(n))
    rows, y = rng.normal(size=(offsets[-1], d)), rng.normal(size=offsets[-1])
    theta = rng.normal(size=(T, d))
    factors = np.tril(rng.normal(size=(3, d, d))) * 0.5 + 0.3 * np.eye(d)
    return groups, rows, y, offsets, theta, factors, 0.7


class Dense:
    """All weights as one normal vector: the same answers by brute force."""

    def __init__(self, groups, rows, y, offsets, theta, factors, s2):
        T, d = theta.shape
        H = factors @ np.swapaxes(factors, 1, 2)
        country = groups[:, :1] == groups[:, :1].T
        region = country & (groups[:, 1:] == groups[:, 1:].T)
        same = np.stack([country, region, np.eye(T, dtype=bool)])
        self.prior = np.einsum("mtu,mij->tiuj", same.astype(float), H).reshape(T * d, T * d)
        design = np.zeros((len(y), T * d))
        for t in range(T):
            design[offsets[t] : offsets[t + 1], t * d : (t + 1) * d] = rows[
                offsets[t] : offsets[t + 1]
            ]
        self.design, self.theta = design, theta.ravel()
        V = design @ self.prior @ design.T + s2 * np.eye(len(y))
        gap = y - design @ self.theta
        self.loglik = -0.5 * (
            len(y) * np.log(2 * np.pi) + np.linalg.slogdet(V)[1] + gap @ np.linalg.solve(V, gap)
        )
        gain = self.prior @ design.T @ np.linalg.inv(V)
        self.mean = (self.theta + gain @ gap).reshape(T, d)
        full = self.prior - gain @ design @ self.prior
        self.covariance = np.einsum("titj->tij", full.reshape(T, d, T, d))


@pytest.mark.parametrize("seed", range(3))
def test_three_levels_are_the_dense_normal(seed):
    groups, rows, y, offsets, theta, factors, s2 = problem = random_problem(seed)
    dense, tree = Dense(*problem), Tree.of(groups)
    stats = SquaredState.of(rows, y, offsets).take(tree.order)
    base = theta[tree.order]
    up = go_up(stats, base, tree.parents, factors, np.full(len(base), s2))
    assert up.value == pytest.approx(dense.loglik, abs=1e-10)
    others = without_task(up, go_down(up, tree.parents, factors)[-1], tree.parents[-1])
    H = factors[-1] @ factors[-1].T
    state = NestedState(*stats, base, others.covariance + H)
    inner = NestedGaussian(factors, s2, False)
    mean = inner.posterior(state, base + others.mean).mean
    np.testing.assert_allclose(mean, dense.mean[tree.order], atol=1e-10)
    covariances = inner.covariances(state, base + others.mean)
    np.testing.assert_allclose(covariances, dense.covariance[tree.order], atol=1e-10)


def test_a_new_store_and_a_new_region_are_the_dense_normal():
    groups, rows, y, offsets, theta, factors, s2 = random_problem(5)
    groups = np.vstack([groups, [[1, 2], [1, 9], [9, 9]]])  # no points in the last three
    theta = np.vstack([theta, np.zeros((3, 3))])
    offsets = np.append(offsets, [offsets[-1]] * 3)
    dense = Dense(groups, rows, y, offsets, theta, factors, s2)
    T, H = len(groups) - 3, factors @ np.swapaxes(factors, 1, 2)
    tree = Tree.of(groups[:T])
    stats = SquaredState.of(rows, y, offsets[: T + 1]).take(tree.order)
    up = go_up(stats, theta[:T][tree.order], tree.parents, factors, np.full(T, s2))
    countries, regions = go_down(up, tree.parents, factors)
    at = groups[tree.first[1]].tolist().index([1, 2])
    np.testing.assert_allclose(regions.mean[at], dense.mean[T], atol=1e-10)
    np.testing.assert_allclose(regions.covariance[at] + H[2], dense.covariance[T], atol=1e-10)
    np.testing.assert_allclose(countries.mean[1], dense.mean[T + 1], atol=1e-10)
    known = countries.covariance[1] + H[1] + H[2]
    np.testing.assert_allclose(known, dense.covariance[T + 1], atol=1e-10)
    np.testing.assert_allclose(H.sum(axis=0), dense.covariance[T + 2], atol=1e-12)


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_derivatives_are_finite_differences(levels):
    groups, rows, y, offsets, theta, factors, s2 = random_problem(1)
    tree, factors = Tree.of(groups[:, : levels - 1]), factors[3 - levels :]
    stats, theta = SquaredState.of(rows, y, offsets).take(tree.order), theta[tree.order]

    def value(theta=theta, factors=factors, growth=0.0):
        return tree_likelihood(stats, theta, tree.parents, factors, s2 * np.exp(growth))[0]

    _, slopes = tree_likelihood(stats, theta, tree.parents, factors, s2)
    h = 1e-5
    numeric = (value(growth=h) - value(growth=-h)) / (2 * h)
    assert slopes.log_s2 == pytest.approx(numeric, abs=1e-7)
    for t in (0, 7, 23):
        for j in range(3):
            step = np.zeros_like(theta)
            step[t, j] = h
            numeric = (value(theta + step) - value(theta - step)) / (2 * h)
            assert slopes.theta[t, j] == pytest.approx(numeric, abs=1e-7)
    for level in range(levels):
        for i, j in zip(*np.tril_indices(3), strict=True):
            step = np.zeros_like(factors)
            step[level, i, j] = h
            numeric = (value(factors=factors + step) - value(factors=factors - step)) / (2 * h)
            assert slopes.factors[level, i, j] == pytest.approx(numeric, abs=1e-7)


@pytest.mark.parametrize("d", [1, 2, 5, 9])
@pytest.mark.parametrize("n", [1, 6, 300])
def test_engines_agree(d, n):
    rng = np.random.default_rng(d)
    points = rng.normal(size=(n, d + 1, d))
    points[::4] = 0.0  # nodes without points
    gram, moment = np.swapaxes(points, 1, 2) @ points, rng.normal(size=(n, d))
    theta, factor = rng.normal(size=(n, d)), np.tril(rng.normal(size=(d, d)))
    s2, parent = rng.uniform(0.5, 2.0, n), np.sort(rng.integers(0, 3, n))
    call = gram, moment, theta, factor, s2, 2
    for ours, theirs in zip(tree_up(*call), tree_up.reference(*call), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    root = rng.normal(size=(3, d, d))
    call = gram, moment, rng.normal(size=(3, d)), root @ np.swapaxes(root, 1, 2), parent, 2
    for ours, theirs in zip(tree_down(*call), tree_down.reference(*call), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_a_level_without_variance_changes_nothing():
    groups, rows, y, offsets, theta, factors, s2 = random_problem(2)
    tree, flat = Tree.of(groups), Tree.of(groups[:, :0])
    stats = SquaredState.of(rows, y, offsets)
    factors[:2] = 0.0
    value, slopes = tree_likelihood(
        stats.take(tree.order), theta[tree.order], tree.parents, factors, s2
    )
    alone, own = tree_likelihood(stats, theta, flat.parents, factors[2:], s2)
    assert value == pytest.approx(alone, abs=1e-11)
    np.testing.assert_allclose(slopes.factors[2], own.factors[0], atol=1e-11)
    assert not slopes.factors[:2].any()


def test_the_tree_knows_a_group_by_all_its_numbers():
    tree = Tree.of(np.array([[1, 5], [0, 5], [1, 5], [0, 4]]))
    assert tree.sizes == (2, 3, 4)
    assert tree.order.tolist() == [3, 1, 0, 2]
    assert [part.tolist() for part in tree.parents] == [[0, 0, 1], [0, 1, 2, 2]]
    assert sum_children(np.arange(4.0), tree.parents[1]).tolist() == [0.0, 1.0, 5.0]


def test_own_noise_is_a_fixed_point():
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(12, 2)), rng.normal(size=12) * 5
    inner, theta = NestedGaussian(np.array([np.eye(2)]), 1.0, True), np.zeros((1, 2))
    state = inner.solve_tasks(theta, rows, y, np.array([0, 12])).state
    mean, s2 = inner.posterior(state, theta)
    P = inner.covariances(state, theta)[0]
    rss = np.sum((y - rows @ mean[0]) ** 2) + np.trace(rows.T @ rows @ P)
    assert s2[0] == pytest.approx((rss + 4.0) / 16, rel=1e-3)
