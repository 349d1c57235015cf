"""Statistics around a task's own means, against sums over its rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from condmeta import engine
from condmeta.inner.posterior import posterior_pass, scaled_posterior_pass
from condmeta.inner.scaled import scaled_squares
from condmeta.inner.scatter import Scatter
from condmeta.inner.squared import SquaredState
from condmeta.persistence import decode, encode

OFFSETS = np.array([0, 4, 4, 9, 12])


def draw(seed=0, n=12):
    rng = np.random.default_rng(seed)
    return rng.normal([5.0, 0.0, -2.0], size=(n, 3)), rng.normal(size=n) + 7


def test_statistics_are_sums_over_rows():
    X, y = draw()
    found = Scatter.of(X, y, OFFSETS)
    for t, (lo, hi) in enumerate(pairwise(OFFSETS)):
        z = np.column_stack([X, y])[lo:hi]
        mean = z.mean(axis=0) if lo < hi else np.zeros(4)
        np.testing.assert_allclose(found.mean[t], mean)
        np.testing.assert_allclose(found.scatter[t], (z - mean).T @ (z - mean), atol=1e-12)


def test_weights_repeat_rows():
    X, y = draw()
    times = np.array([1, 3, 2, 1, 1, 1, 4, 1, 2, 2, 1, 1])
    weighted = Scatter.of(X, y, OFFSETS, times.astype(float))
    cuts = np.append(0, np.cumsum(times))[OFFSETS]
    repeated = Scatter.of(np.repeat(X, times, axis=0), np.repeat(y, times), cuts)
    for found, expected in zip(weighted[:3], repeated[:3], strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_chunks_add_up():
    X, y = draw()
    more, labels = draw(1, 7)
    cuts = np.array([0, 1, 3, 7, 7])
    together = Scatter.of(X, y, OFFSETS).extend(Scatter.of(more, labels, cuts))
    rows = [
        (np.vstack([X[a:b], more[c:d]]), np.concatenate([y[a:b], labels[c:d]]))
        for a, b, c, d in zip(OFFSETS, OFFSETS[1:], cuts, cuts[1:], strict=False)
    ]
    offsets = np.append(0, np.cumsum([len(part[1]) for part in rows]))
    whole = Scatter.of(*(np.concatenate(part) for part in zip(*rows, strict=True)), offsets)
    for found, expected in zip(together[:3], whole[:3], strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("precision", [False, True])
def test_points_of_some_tasks_are_added_where_they_belong(precision):
    X, y = draw()
    more, labels = draw(1, 5)
    weight = np.column_stack([np.ones(5), np.arange(1.0, 6.0)]) if precision else None
    before = Scatter.of(X, y, OFFSETS)
    added = Scatter.of(more, labels, np.array([0, 2, 5]), weight)
    found = before.extend_at(np.array([3, 1]), added)
    rest = Scatter.of(*draw(2, 0), np.array([0, 0]))
    every = Scatter.joined([rest, added.take([1]), rest, added.take([0])])
    for mine, expected in zip(found, before.extend(every), strict=True):
        np.testing.assert_array_equal(mine, expected)


def test_moments_of_all_rows():
    X, y = draw()
    mean, spread = Scatter.of(X, y, OFFSETS).overall([np.arange(len(OFFSETS) - 1)])
    z = np.column_stack([X, y])
    np.testing.assert_allclose(mean, z.mean(axis=0))
    np.testing.assert_allclose(spread, z.std(axis=0))
    part, _ = Scatter.of(X, y, OFFSETS).overall([np.array([2]), np.array([3])])
    np.testing.assert_allclose(part, z[4:].mean(axis=0))


def test_scaled_statistics_are_those_of_scaled_rows():
    X, y = draw()
    mean, scale = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 0.5, 4.0])
    rows, labels = (X - mean[:3]) / scale, y - mean[3]
    for intercept in (True, False):
        given = np.column_stack([rows, np.ones(12)]) if intercept else rows
        expected = SquaredState.of(given, labels, OFFSETS)
        found = Scatter.of(X, y, OFFSETS).statistics(mean, scale, intercept)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.skipif(engine.compiled_core() is None, reason="needs the compiled engine")
@pytest.mark.parametrize("intercept", [True, False])
def test_engines_agree_on_scaled_statistics(intercept):
    X, y = draw()
    scatter = Scatter.of(X, y, OFFSETS)
    at = np.array([3, 0, 2, 2])
    rest = np.full(4, 2.5), at, np.linspace(-1, 1, 4), np.linspace(0.5, 2, 4), intercept
    ours = engine.compiled_core().scaled_squares(scatter.triangles, scatter.mean, *rest)
    theirs = scaled_squares.reference(scatter.triangles, scatter.mean, *rest)
    for found, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
    with pytest.raises(ValueError, match="'at' must be positions of tasks"):
        engine.compiled_core().scaled_squares(
            scatter.triangles, scatter.mean, rest[0], at + 9, *rest[2:]
        )


@pytest.mark.skipif(engine.compiled_core() is None, reason="needs the compiled engine")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("rounds", [0, 3])
def test_posteriors_of_packed_tasks_are_those_of_whole_matrices(intercept, rounds):
    """The pass that makes statistics as it reads them: the same bits, and the plain formulas."""
    rng = np.random.default_rng(1)
    sizes = rng.integers(0, 9, 11)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X, y = draw(n=offsets[-1])
    scatter, at = Scatter.of(X, y, offsets), rng.permutation(11)[:9]
    tasks = scatter.scaled(np.linspace(-1, 1, 4), np.linspace(0.5, 2, 3), intercept, at)
    d = 3 + intercept
    L = np.tril(rng.normal(size=(d, d)))
    rest = (
        tasks.count.astype(float),
        rng.normal(size=(9, d)),
        L,
        np.full(9, 0.7),
        2,
        True,
        rounds,
        4.0,
    )
    found = scaled_posterior_pass(*tasks[:-1], *rest)
    for ours, whole in zip(found, posterior_pass(*tasks.squared[:3], *rest), strict=True):
        np.testing.assert_array_equal(ours, whole)
    for ours, plain in zip(found, scaled_posterior_pass.reference(*tasks[:-1], *rest), strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-8, atol=1e-8)
    taken = scatter.scaled(np.zeros(4), np.ones(3), intercept).take(at)
    for ours, whole in zip(
        taken.squared, scatter.take(at).statistics(np.zeros(4), np.ones(3), intercept), strict=True
    ):
        np.testing.assert_array_equal(ours, whole)


def test_files_with_whole_matrices_load():
    X, y = draw()
    scatter = Scatter.of(X, y, OFFSETS)
    value, arrays = encode(scatter)
    state = value["object"]["state"]
    state["scatter"] = state.pop("triangles")
    arrays[state["scatter"]["array"]] = scatter.scatter
    for found, expected in zip(decode(value, arrays), scatter, strict=True):
        np.testing.assert_array_equal(found, expected)
