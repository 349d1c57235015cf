"""Statistics of the squared loss: other labels, other units, several tasks and weights at once."""

import numpy as np
import pytest

from condmeta.inner.squared import SquaredState

OFFSETS = np.array([0, 3, 3, 7, 12])


def draw(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(12, 2)), rng.normal(size=12), rng.uniform(0.5, 2, size=12)


def assert_same(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_other_labels_of_the_same_rows(weighted):
    X, y, weight = draw()
    weight = weight if weighted else None
    known = SquaredState.of(X, np.zeros(12), OFFSETS, weight)
    expected = SquaredState.of(X, y, OFFSETS, weight)
    assert_same(known.with_labels(X, y, OFFSETS, weight), expected)


def test_rows_that_are_divided():
    X, y, _ = draw()
    by = np.array([2.0, 1.0, 0.5, 3.0])
    rows = np.sqrt(by)[np.repeat(np.arange(4), np.diff(OFFSETS))]
    expected = SquaredState.of(X / rows[:, None], y / rows, OFFSETS)
    assert_same(SquaredState.of(X, y, OFFSETS).divided(by), expected)


def test_tasks_of_several_parts():
    parts = [SquaredState.of(*draw(seed)[:2], OFFSETS) for seed in (0, 1)]
    both = SquaredState.stack(parts)
    assert_same(both.take(slice(4, 8)), parts[1])
    assert_same(both.take(slice(0, 4)), parts[0])


def test_errors_of_several_weights_at_once():
    X, y, _ = draw()
    state, w = SquaredState.of(X, y, OFFSETS), np.random.default_rng(1).normal(size=(3, 4, 2))
    task = np.repeat(np.arange(4), np.diff(OFFSETS))
    for one, found in zip(w, state.squared_errors(w), strict=True):
        left = (y - np.einsum("ij,ij->i", X, one[task])) ** 2
        np.testing.assert_allclose(found, np.bincount(task, left, minlength=4), atol=1e-12)
        np.testing.assert_array_equal(found, state.squared_errors(one))
