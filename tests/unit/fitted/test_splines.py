"""Natural cubic splines of columns, against scipy's."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from condmeta.fitted.splines import FEWEST_VALUES, MOST_COLUMNS, Splines


def test_the_columns_hold_every_natural_spline_with_these_knots():
    rng = np.random.default_rng(0)
    splines = Splines.learn(rng.normal(3.0, 2.0, size=(500, 1)))
    knots = splines.knots[0]
    natural = CubicSpline(knots, rng.normal(size=4), bc_type="natural")
    x = np.linspace(knots[0], knots[-1], 200)
    basis = np.column_stack([np.ones(200), splines.transform(x[:, None])])
    found = np.linalg.lstsq(basis, natural(x))[0]
    np.testing.assert_allclose(basis @ found, natural(x), atol=1e-10)


def test_outside_of_the_knots_they_are_straight():
    splines = Splines.learn(np.arange(100.0)[:, None])
    for x in (
        np.linspace(-50, splines.knots[0, 0], 20),
        np.linspace(splines.knots[0, -1], 300, 20),
    ):
        np.testing.assert_allclose(np.diff(splines.transform(x[:, None]), 2, axis=0), 0, atol=1e-9)


def test_a_row_of_weight_two_counts_twice():
    rng = np.random.default_rng(1)
    X, weight = rng.normal(size=(60, 2)), rng.integers(1, 4, 60)
    weighted, repeated = Splines.learn(X, weight.astype(float)), Splines.learn(X.repeat(weight, 0))
    np.testing.assert_array_equal(weighted.knots, repeated.knots)


def test_units_of_columns_do_not_matter():
    X = np.random.default_rng(2).normal(size=(80, 1))
    one, other = Splines.learn(X), Splines.learn(1e6 * X + 5.0)
    np.testing.assert_allclose(
        one.transform(X)[:, 1:], other.transform(1e6 * X + 5.0)[:, 1:], atol=1e-9
    )


def test_columns_with_few_values_or_one_frequent_value_stay_as_they_are():
    few, many = np.arange(60.0) % (FEWEST_VALUES - 1), np.arange(60.0) % FEWEST_VALUES
    mostly_zero = np.maximum(np.arange(60.0) - 40, 0)
    splines = Splines.learn(np.column_stack([few, many, mostly_zero]))
    assert splines.bends.tolist() == [False, True, False]
    assert splines.get_feature_names_out(list("abc")) == [*"abc", "b (bend 1)", "b (bend 2)"]


@pytest.mark.parametrize(("d", "bends"), [(MOST_COLUMNS, MOST_COLUMNS), (MOST_COLUMNS + 1, 0)])
def test_with_many_columns_none_bends(d, bends):
    assert Splines.learn(np.random.default_rng(0).normal(size=(50, d))).bends.sum() == bends


def test_far_beyond_the_knots_splines_are_lines():
    """The difference of two cubes has no digits left at 1e6, and overflows at 1e103."""
    splines = Splines.learn(np.arange(101.0)[:, None])
    at = splines.transform(np.array([[200.0], [201.0], [1e6], [1e300]]))[:, 1:]
    slope = at[1] - at[0]
    np.testing.assert_allclose(at[2], at[0] + (1e6 - 200) * slope, rtol=1e-9)
    np.testing.assert_allclose(at[3], 1e300 * slope, rtol=1e-9)
