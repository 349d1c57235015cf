"""A point of weight m is the point m times: the batch inner algorithm, loss by loss."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from helpers import draw_task

from condmeta.inner.batch import batch_tasks, certified_gap, mean_loss_at
from condmeta.inner.solution import objective
from condmeta.inner.squared import SquaredState
from condmeta.losses import LOSSES, get_loss

LAM = 0.3
TIMES = np.array([2.0, 1.0, 3.0, 1.0, 4.0, 1.0])


class Smooth:
    """A loss of one's own: sqrt(1 + e^2) - 1. The solver knows its slope, value and conjugate."""

    def value(self, z, y):
        return np.sqrt(1 + (z - y) ** 2) - 1

    def slope(self, z, y):
        return (z - y) / np.sqrt(1 + (z - y) ** 2)

    def conjugate(self, a, y):
        return a * y + 1 - np.sqrt(1 - np.minimum(a**2, 1))


def repeated(*arrays):
    return [np.repeat(array, TIMES.astype(int), axis=0) for array in arrays]


@pytest.mark.parametrize("loss", [*LOSSES, "own"])
@pytest.mark.parametrize("d", [3, 8])
def test_weights_repeat_points(engine, loss, d):
    theta, X, y = draw_task(np.random.default_rng(d), 6, d, loss)
    loss = Smooth() if loss == "own" else get_loss(loss)
    how = LAM, loss, 1e-11, 1
    coef, gradient, gap, slopes = batch_tasks(theta[None], X, y, np.array([0, 6]), *how, TIMES)
    XX, yy = repeated(X, y)
    many = batch_tasks(theta[None], XX, yy, np.array([0, 12]), *how)
    np.testing.assert_allclose(coef, many[0], atol=2e-5)
    np.testing.assert_allclose(gradient, LAM * (theta - coef), atol=1e-12)
    # the certificate, from the primal and the dual value of the repeated points
    primal = objective(coef[0], theta, XX, yy, LAM, loss)
    g = XX.T @ repeated(slopes)[0] / 12
    dual = g @ theta - g @ g / (2 * LAM) - np.mean(loss.conjugate(repeated(slopes)[0], yy))
    np.testing.assert_allclose(gap[0], primal - dual, atol=1e-12)


@pytest.mark.parametrize("loss", ["absolute", "logistic", "own"])
def test_gap_of_any_slopes_is_that_of_repeated_points(loss):
    theta, X, y = draw_task(np.random.default_rng(7), 6, 3, loss)
    loss = Smooth() if loss == "own" else get_loss(loss)
    a = 0.3 * loss.slope(X @ theta + 0.1, y)
    XX, yy, aa = repeated(X, y, a)
    g = XX.T @ aa / 12
    primal = objective(theta - g / LAM, theta, XX, yy, LAM, loss)
    dual = g @ theta - g @ g / (2 * LAM) - np.mean(loss.conjugate(aa, yy))
    found = certified_gap(a, theta, X, y, TIMES, LAM, loss)
    assert primal - dual > 0.01
    np.testing.assert_allclose(found, primal - dual, rtol=1e-10)


def test_mean_loss_counts_points_as_often_as_they_are_there():
    theta, X, y = draw_task(np.random.default_rng(8), 6, 3)
    offsets = np.array([0, 2, 2, 6])
    found = mean_loss_at(np.tile(theta, (3, 1)), X, y, offsets, get_loss("absolute"), TIMES)
    lost = np.abs(X @ theta - y)
    first, last = (np.average(lost[at], weights=TIMES[at]) for at in (slice(0, 2), slice(2, 6)))
    np.testing.assert_allclose(found, [first, 0.0, last])
    plain = objective(theta, theta, X, y, LAM, get_loss("absolute"), TIMES)
    np.testing.assert_allclose(plain, np.average(lost, weights=TIMES))


def test_coordinate_steps_are_exact(monkeypatch):
    """Of orthogonal points no coordinate changes another: one sweep ends at the minimiser."""
    monkeypatch.setattr(sys.modules[certified_gap.__module__], "MAX_ITER", 1)
    X, y, theta = np.array([[2.0, 0.0], [0.0, 1.5]]), np.array([3.0, -4.0]), np.array([0.2, 0.1])
    times = np.array([5.0, 2.0])
    _, _, gap, _ = batch_tasks.reference(
        theta[None], X, y, np.array([0, 2]), LAM, Smooth(), 1e-14, 1, times
    )
    assert gap[0] < 1e-12


def test_statistics_of_weighted_points_are_those_of_repeated_points():
    _, X, y = draw_task(np.random.default_rng(9), 6, 3)
    weighted = SquaredState.of(X, y, np.array([0, 6]), TIMES)
    XX, yy = repeated(X, y)
    for found, expected in zip(weighted, SquaredState.of(XX, yy, np.array([0, 12])), strict=True):
        np.testing.assert_allclose(found, expected)
    again = weighted.extend(X, y, np.array([0, 6]), TIMES)
    np.testing.assert_allclose(again.square, 2 * yy @ yy)
