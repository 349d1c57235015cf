"""Scales: there and back, weights as repeated rows, and weights in other scales."""

from __future__ import annotations

import numpy as np
import pytest

import condmeta as cm
from condmeta.fitted.change_of_scale import ChangeOfScale
from condmeta.fitted.row_moments import row_moments
from condmeta.fitted.scales import Scales


def draw(seed=0, n=30):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) * [1.0, 5.0, 0.2] + [2.0, -7.0, 1.0], rng.normal(size=n) + 4


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("scale", ["standard", "none"])
def test_weights_in_the_users_units_predict_the_same(scale, intercept):
    X, y = draw()
    scales = Scales.learn(X, y, scale, intercept, np.mean)
    w = np.random.default_rng(1).normal(size=scales.width)
    coef, constant = scales.to_user(w)
    np.testing.assert_allclose(X @ coef + constant, scales.rows(X) @ w + scales.y_offset)
    np.testing.assert_allclose(scales.answer(scales.rows(X) @ w), X @ coef + constant)
    np.testing.assert_allclose(scales.target(y), y - (y.mean() if intercept else 0.0))
    theta = scales.user_vector(w)
    np.testing.assert_allclose(scales.from_user(theta), w)
    again = scales.user_matrix() @ w + scales.user_vector(np.zeros(scales.width))
    np.testing.assert_allclose(again, theta)


@pytest.mark.parametrize("size", [2.0**660, 2.0**-660])
def test_spread_of_huge_and_tiny_numbers(size):
    """Their squares overflow or underflow; powers of two change no digit."""
    X, y = draw()
    scales, want = (Scales.learn(rows, y, "standard", True, np.mean) for rows in (X * size, X))
    np.testing.assert_allclose(want.x_scale, X.std(axis=0))
    np.testing.assert_array_equal(scales.rows(X * size), want.rows(X))
    mean, spread, _ = row_moments(X * size, None)
    np.testing.assert_allclose(spread / size, X.std(axis=0))
    np.testing.assert_allclose(mean / size, X.mean(axis=0))


def test_weights_repeat_rows():
    X, y = draw()
    times = np.arange(30) % 4 + 1
    weighted = Scales.learn(X, y, "standard", True, np.median, weight=times.astype(float))
    repeated = Scales.learn(
        np.repeat(X, times, axis=0), np.repeat(y, times), "standard", True, np.median
    )
    np.testing.assert_allclose(weighted.x_mean, repeated.x_mean)
    np.testing.assert_allclose(weighted.x_scale, repeated.x_scale)
    assert weighted.y_offset == pytest.approx(repeated.y_offset)


@pytest.mark.parametrize("intercept", [True, False])
def test_other_scales_predict_the_same(intercept):
    (X, y), (other_X, other_y) = draw(0), draw(1)
    one = Scales.learn(X, y, "standard", intercept, np.mean)
    other = Scales.learn(2 * other_X + 1, other_y - 3, "standard", intercept, np.mean)
    change, rng = ChangeOfScale.between(one, other), np.random.default_rng(2)
    W = rng.normal(size=(3, one.width))  # a map of two features, b last
    Phi1 = np.column_stack([rng.normal(size=(5, 2)), np.ones(5)])
    for theta, moved in zip(Phi1 @ W, Phi1 @ change.map(W), strict=True):
        here = one.rows(X) @ theta + one.y_offset
        np.testing.assert_allclose(other.rows(X) @ moved + other.y_offset, here)
    # The spread of predictions at a row does not depend on the scales.
    root = rng.normal(size=(one.width, one.width))
    H = root @ root.T
    before = np.einsum("ij,jk,ik->i", one.rows(X), H, one.rows(X))
    after = np.einsum("ij,jk,ik->i", other.rows(X), change.covariance(H), other.rows(X))
    np.testing.assert_allclose(after, before)


@pytest.mark.parametrize(("loss", "centre"), [("squared", np.mean), ("absolute", np.median)])
def test_the_offset_of_y_is_what_the_loss_estimates(loss, centre):
    X, y = draw()
    y[0] = 50.0
    model = cm.PooledRegressor(loss=loss, inner="batch", lam=1.0).fit(X, y)
    assert model.y_offset_ == pytest.approx(centre(y))
    assert abs(np.mean(y) - np.median(y)) > 0.5
