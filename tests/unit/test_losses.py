import pickle

import numpy as np
import pytest

from condmeta import losses
from condmeta.errors import DataError
from condmeta.losses import LOSSES, get_loss
from condmeta.testing import check_loss

POINTS = np.array([-3.0, -1.35, -1.0, -0.1, 0.0, 0.1, 0.5, 1.0, 2.0])


def labels(name):
    return (-1.0, 1.0) if name in ("hinge", "logistic") else (-0.7, 0.0, 2.0)


@pytest.mark.parametrize("name", LOSSES)
def test_protocol_holds(name):
    check_loss(get_loss(name), labels=labels(name))


@pytest.mark.parametrize("name", LOSSES)
def test_slope_is_the_derivative_away_from_kinks(name):
    rng = np.random.default_rng(0)
    loss = get_loss(name)
    z, y, h = rng.normal(size=200), rng.choice(labels(name), 200), 1e-6
    numeric = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
    np.testing.assert_allclose(loss.slope(z, y), numeric, atol=1e-6)


@pytest.mark.parametrize(
    ("loss", "z", "y", "value", "slope"),
    [
        ("absolute", 2.0, 0.5, 1.5, 1.0),
        ("squared", 2.0, 0.5, 1.125, 1.5),
        ("huber", 0.5, 0.0, 0.125, 0.5),
        ("huber", 3.0, 0.0, 1.35 * 3 - 1.35**2 / 2, 1.35),
        (losses.Pinball(q=0.25), 1.0, 0.0, 0.75, 0.75),
        (losses.Pinball(q=0.25), -1.0, 0.0, 0.25, -0.25),
        (losses.EpsilonInsensitive(eps=0.5), 2.0, 0.0, 1.5, 1.0),
        (losses.EpsilonInsensitive(eps=0.5), 0.25, 0.0, 0.0, 0.0),
        ("hinge", 0.25, 1.0, 0.75, -1.0),
        ("hinge", 0.25, -1.0, 1.25, 1.0),
        ("hinge", 2.0, 1.0, 0.0, 0.0),
        ("logistic", 0.0, 1.0, np.log(2), -0.5),
    ],
)
def test_fixed_values(loss, z, y, value, slope):
    loss = get_loss(loss)
    assert loss.value(z, y) == pytest.approx(value, rel=1e-15)
    assert loss.slope(z, y) == pytest.approx(slope, rel=1e-15)


@pytest.mark.parametrize(
    ("loss", "z", "y"),
    [("absolute", 0.5, 0.5), ("pinball", 0.5, 0.5), ("hinge", 1.0, 1.0), ("hinge", -1.0, -1.0)]
    + [(losses.EpsilonInsensitive(0.25), z, 0.0) for z in (-0.25, 0.25)],
)
def test_slope_at_a_kink_is_zero(loss, z, y):
    assert get_loss(loss).slope(z, y) == 0.0


def test_tie_widens_the_kink_of_piecewise_linear_losses_only():
    assert get_loss("absolute").slope(1e-12, 0.0, tie=1e-10) == 0.0
    assert get_loss("absolute").slope(1e-9, 0.0, tie=1e-10) == 1.0
    assert get_loss("squared").slope(1e-12, 0.0, tie=1e-10) == 1e-12


@pytest.mark.parametrize("name", LOSSES)
def test_conjugate_is_attained_at_the_slope_and_infinite_outside(name):
    loss = get_loss(name)
    for y in labels(name):
        a = loss.slope(POINTS, y)
        np.testing.assert_allclose(
            loss.value(POINTS, y) + loss.conjugate(a, y), a * POINTS, atol=1e-13
        )
        if np.isfinite(loss.lipschitz):
            assert np.isposinf(loss.conjugate(1.01 * loss.lipschitz, y))


def test_logistic_does_not_overflow():
    loss = get_loss("logistic")
    np.testing.assert_allclose(loss.value([-1e4, 1e4], 1.0), [1e4, 0.0])
    np.testing.assert_allclose(loss.slope([-1e4, 1e4], 1.0), [-1.0, 0.0])
    assert loss.conjugate(0.0, 1.0) == 0.0 == loss.conjugate(-1.0, 1.0)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_pickle_and_compare(name):
    assert pickle.loads(pickle.dumps(get_loss(name))) == get_loss(name)


def test_unknown_loss_is_named():
    with pytest.raises(DataError, match=r"must be one of 'absolute', .*Got 'mse' instead"):
        get_loss("mse")
    with pytest.raises(DataError, match="Got 3 instead"):
        get_loss(3)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: losses.Huber(delta=-1),
            r"'delta' parameter must be a float in \(0, inf\). Got -1",
        ),
        (lambda: losses.Pinball(q=1.5), r"'q' parameter must be a float in \(0, 1\). Got 1.5"),
        (lambda: losses.EpsilonInsensitive(eps=0), r"'eps' parameter .* Got 0 instead"),
    ],
)
def test_parameters_out_of_range(make, sentence):
    with pytest.raises(DataError, match=sentence):
        make()
