"""The built-in inner algorithms keep to the interface that is written down."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from condmeta.inner.algorithms import Batch, InnerAlgorithm, Online
from condmeta.inner.coin import Coin
from condmeta.inner.no_adaptation import NoAdaptation
from condmeta.inner.posterior import Gaussian
from condmeta.inner.row_posterior import Bernoulli
from condmeta.losses import get_loss

ALGORITHMS = [
    Online(0.5, "absolute"), Batch(0.5, "squared"), Batch(0.5, "logistic"), Coin(3.0, 0.2),
    Gaussian(np.eye(2), 0.4, True), Bernoulli(np.eye(2)), NoAdaptation(get_loss("huber")),
]  # fmt: skip
METHODS = {name for name, value in vars(InnerAlgorithm).items() if inspect.isfunction(value)}
METHODS = {name for name in METHODS if not name.startswith("_")}
each_algorithm = pytest.mark.parametrize("inner", ALGORITHMS, ids=lambda i: type(i).__name__)


@each_algorithm
def test_methods_take_the_arguments_of_the_interface(inner):
    for name in METHODS & set(dir(inner)):
        wanted = list(inspect.signature(getattr(InnerAlgorithm, name)).parameters)[1:]
        taken = list(inspect.signature(getattr(inner, name)).parameters)
        assert taken in (wanted, [each for each in wanted if each != "weight"]), name


@each_algorithm
def test_a_state_has_a_row_for_every_task_and_continues_if_it_says_so(inner):
    rng = np.random.default_rng(0)
    X, y, theta = rng.normal(size=(6, 2)), np.sign(rng.normal(size=6)), rng.normal(size=(2, 2))
    whole = inner.solve_tasks(theta, X, y, np.array([0, 4, 6]))
    if whole.state is None:
        assert not inner.resumable
        return
    assert {len(array) for array in whole.state} == {2}
    if inner.resumable:
        some = np.array([True, True, False, False, True, False])
        first = inner.solve_tasks(theta, X[some], y[some], np.array([0, 2, 3]))
        rest = X[~some], y[~some], np.array([0, 2, 3])
        again = inner.solve_tasks(theta, *rest, state=first.state)
        np.testing.assert_allclose(again.coef, whole.coef, atol=1e-12)
