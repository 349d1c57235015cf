"""The quasi-Newton ascent: its end in a box, its steps, and where it stops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear, rosen, rosen_der

from condmeta.meta.ascent import MEMORY, Memory, Stopping, ascend

FREE = -np.inf, np.inf


def quadratic(A, b):
    """Return -||A x - b||^2 / 2 and its gradient as a function of x."""
    return lambda x: (-np.sum((A @ x - b) ** 2) / 2, A.T @ (b - A @ x))


@pytest.mark.parametrize("wall", [0.05, 1.0, np.inf])
def test_end_is_that_of_bounded_least_squares(wall):
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(40, 12)), rng.normal(size=40)
    lowest, highest = np.full(12, -wall), np.full(12, wall)
    found = ascend(quadratic(A, b), np.zeros(12), lowest, highest, Stopping(1e-8, 500))
    theirs = lsq_linear(A, b, (lowest, highest), tol=1e-14).x
    np.testing.assert_allclose(found.x, theirs, atol=1e-7)
    assert found.values[-1] == pytest.approx(quadratic(A, b)(theirs)[0], abs=1e-12)
    assert (np.abs(found.x) == wall).any() == (wall < 0.1)


def test_a_bent_valley_is_followed_to_its_end():
    start = np.full(6, -1.2)
    found = ascend(lambda x: (-rosen(x), -rosen_der(x)), start, *FREE, Stopping(1e-8, 500))
    np.testing.assert_allclose(found.x, 1.0, atol=1e-6)
    assert np.diff(found.values).min() >= 0
    assert found.passes < 150


def test_places_without_a_value_are_avoided():
    def slope(x):  # log x - x, no number below zero
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(np.sum(np.log(x) - x)), 1 / x - 1

    found = ascend(slope, np.array([10.0, 5.0]), *FREE, Stopping(1e-8, 100))
    np.testing.assert_allclose(found.x, 1.0, atol=1e-7)


def test_the_ends():
    slope = quadratic(np.diag([1.0, 30.0]), np.array([1.0, 1.0]))
    start = np.zeros(2)
    assert ascend(slope, start, *FREE, Stopping(1e-10, 3)).passes <= 3
    assert len(ascend(slope, start, *FREE, Stopping(100.0, 100)).values) == 1  # no step


def test_an_ascent_ends_where_its_units_do_not_hold():
    slope = quadratic(np.diag([1.0, 0.01]), np.array([1.0, 1.0]))
    stopping = Stopping(1e-8, 500)
    whole = ascend(slope, np.zeros(2), *FREE, stopping)
    short = ascend(slope, np.zeros(2), *FREE, stopping, holds=lambda x: x[1] < 5)
    assert whole.x[1] == pytest.approx(100.0)
    assert short.x[1] >= 5
    assert len(short.values) < len(whole.values)
    np.testing.assert_array_equal(short.values, whole.values[: len(short.values)])


@pytest.mark.parametrize("reach", [0.8, 1.0])
def test_steps_go_a_share_of_the_way_to_a_bound(reach):
    """Where the objective falls without end towards the bound, steps to it are wasted."""
    seen = []

    def slope(x):  # log x - 10 x, from x = 1 with a bound near 0
        seen.append(x[0])
        return float(np.log(x[0]) - 10 * x[0]), 1 / x - 10

    box = np.full(1, 1e-9), np.full(1, 5.0)
    ascend(slope, np.ones(1), *box, Stopping(1e-6, 60), reach=reach)
    assert seen[-1] == pytest.approx(0.1)
    assert seen[1] == pytest.approx(0.2 if reach < 1 else 1e-9)


def test_no_step_where_nothing_is_higher():
    found = ascend(lambda x: (-float(np.abs(x).sum()), np.ones(2)), np.zeros(2), *FREE, Stopping())
    assert len(found.values) == 1
    assert np.array_equal(found.x, [0, 0])


def test_with_the_inverse_of_the_hessian_one_step_is_enough():
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(40, 12)), rng.normal(size=40)
    inverse = np.linalg.inv(A.T @ A)
    found = ascend(quadratic(A, b), np.zeros(12), *FREE, Stopping(1e-8, 500), inverse)
    np.testing.assert_allclose(found.x, np.linalg.lstsq(A, b, rcond=None)[0], atol=1e-12)
    assert found.passes == 2


@pytest.mark.parametrize("known", [False, True])
def test_direction_is_that_of_bfgs(known):
    """The inverse Hessian by the recursion of BFGS, in full, from the pairs that are remembered."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(8, 8))
    inverse = np.diag(rng.uniform(0.5, 2.0, 8)) + 0.1 if known else None
    memory, pairs = Memory(8, inverse), []
    for _ in range(MEMORY + 5):
        s = rng.normal(size=8)
        pairs.append((s, (A @ A.T + np.eye(8)) @ s))
        memory.add(*pairs[-1])
    memory.add(rng.normal(size=8), np.zeros(8))  # without curvature: left out
    s, y = pairs[-1]
    H = inverse if known else s @ y / (y @ y) * np.eye(8)
    for s, y in pairs[-MEMORY:]:
        V = np.eye(8) - np.outer(y, s) / (s @ y)
        H = V.T @ H @ V + np.outer(s, s) / (s @ y)
    g = rng.normal(size=8)
    np.testing.assert_allclose(memory.direction(g), H @ g, rtol=1e-8)
