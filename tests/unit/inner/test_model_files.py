"""Inner algorithms and their states can be stored in model files, each by itself."""

from __future__ import annotations

import numpy as np
import pytest

from condmeta.inner.algorithms import Batch, Online, solve_tasks
from condmeta.inner.coin import Coin
from condmeta.inner.no_adaptation import NoAdaptation
from condmeta.inner.posterior import Gaussian
from condmeta.inner.row_posterior import Bernoulli
from condmeta.inner.scatter import Scatter
from condmeta.losses import get_loss
from condmeta.meta.coin import CoinState
from condmeta.meta.sgd import SGDState
from condmeta.persistence import decode, encode

RNG = np.random.default_rng(0)
X, Y, OFFSETS = RNG.normal(size=(9, 3)), np.sign(RNG.normal(size=9)), np.array([0, 4, 4, 9])
THETA = RNG.normal(size=(3, 3))
L = np.tril(RNG.normal(size=(3, 3)))
ALGORITHMS = [
    Online(0.5, "absolute"), Batch(0.5, "squared"), Batch(0.1, "logistic", 1e-4), Coin(3.0, 0.2),
    Gaussian(L, 0.4, True), Bernoulli(L), NoAdaptation(get_loss("huber")),
]  # fmt: skip
each_algorithm = pytest.mark.parametrize("inner", ALGORITHMS, ids=lambda i: type(i).__name__)
STATES = [
    *(solve_tasks(inner, THETA, X, Y, OFFSETS).state for inner in ALGORITHMS),
    Scatter.of(X, Y, OFFSETS),
    Scatter.of(X, Y, OFFSETS, np.column_stack([np.full(len(Y), 2.0), np.arange(len(Y)) + 1.0])),
    SGDState(*(RNG.normal(size=(2, 3)) for _ in range(2)), np.array([0.5, 4.0])),
    CoinState.start(X, Y, THETA),
]
each_state = pytest.mark.parametrize(
    "state", [state for state in STATES if state is not None], ids=lambda s: type(s).__name__
)


@each_algorithm
def test_an_algorithm_comes_back_equal(inner):
    again = decode(*encode(inner))
    assert type(again) is type(inner)
    assert vars(again).keys() == vars(inner).keys()
    for name, value in vars(inner).items():
        np.testing.assert_array_equal(getattr(again, name), value)
    ours, theirs = (solve_tasks(one, THETA, X, Y, OFFSETS).coef for one in (inner, again))
    np.testing.assert_array_equal(ours, theirs)


@each_state
def test_a_state_comes_back_equal(state):
    again = decode(*encode(state))
    assert type(again) is type(state)
    for ours, theirs in zip(again, state, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert getattr(ours, "dtype", None) == getattr(theirs, "dtype", None)  # some are None


def test_a_stored_algorithm_is_checked_as_a_new_one():
    stored, arrays = encode(Batch(0.5, "squared"))
    stored["object"]["state"]["loss"] = "nonsense"
    with pytest.raises(ValueError, match="nonsense"):
        decode(stored, arrays)
