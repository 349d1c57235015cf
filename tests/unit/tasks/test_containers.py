"""Values that are no rows and no targets: refused before anything is read from them."""

from __future__ import annotations

import numpy as np
import pytest

import condmeta as cm
from condmeta.errors import DataError

X, Y, TASK = np.arange(8.0).reshape(4, 2), np.arange(4.0), [0, 0, 1, 1]
ODD = {
    "a set": ({1.0}, "X is a set: pass an array, a list or a table"),
    "a dict": ({"price": X[:, 0]}, "X is a dict"),
    "a text": ("rows.csv", "X is a str"),
    "a generator": ((row for row in X), "X is a generator"),
    "a class": (np.ndarray, "X is a class"),
    "a function": (print, "X is a builtin_function_or_method"),
    "a structured array": (np.zeros(4, [("a", float)]), "X is a structured array: pass its fields"),
    "rows of unequal length": ([[1.0], [1.0, 2.0], [1.0], [1.0]], "rows of unequal length"),
}


@pytest.mark.parametrize("given", ODD)
def test_rows(given):
    bad, sentence = ODD[given]
    model = cm.FixedBiasRegressor().fit(X, Y, task=TASK)
    before = model.fitted_
    for call in (
        lambda: model.fit(bad, Y, task=TASK),
        lambda: model.predict(bad, task=TASK),
        lambda: model.update(bad, Y, task=TASK),
        lambda: model.adapt(bad, Y),
        lambda: model.adapt(X, Y).predict(bad),
    ):
        with pytest.raises(DataError, match=sentence):
            call()
    assert model.fitted_ is before


def test_targets():
    for bad in ({1.0}, "sold", print):
        with pytest.raises(DataError, match=r"^y is a"):
            cm.FixedBiasRegressor().fit(X, bad, task=TASK)


def test_an_array_without_masked_values_is_an_array():
    whole = np.ma.masked_greater(X, 99)
    assert cm.FixedBiasRegressor().fit(whole, Y, task=TASK).n_tasks_ == 2


def test_labels_that_are_lists():
    y = np.empty(4, object)
    y[:] = [[1], [2], [1], [2]]
    with pytest.raises(DataError, match="y holds lists as labels"):
        cm.FixedBiasClassifier().fit(X, y, task=TASK)


def test_other_arguments():
    for bad in (3.0, "stores.csv"):
        with pytest.raises(DataError, match="Side information is a"):
            cm.TaskTable(bad, ids=[1])
    with pytest.raises(DataError, match="split"):
        cm.cross_validate_tasks(cm.FixedBiasRegressor(), X, Y, task=TASK, split="half")
    with pytest.raises(DataError, match=r"a learner, not its class: ConditionalRidge\(\)"):
        cm.calibrate(cm.ConditionalRidge, X, Y, task=TASK)
    with pytest.raises(
        DataError, match="'x_transform' parameter of ConditionalRidge must be 'auto"
    ):
        cm.ConditionalRidge(x_transform=3).fit(X, Y, task=TASK)
    with pytest.raises(DataError, match="'shots' parameter of AutoRegressor must be a sequence"):
        cm.AutoRegressor(shots=[-1]).fit(X, Y, task=TASK)
    for lams in ([], [-1.0], ["a"], "all"):
        with pytest.raises(DataError, match=r"'lams' parameter .* a sequence of floats in"):
            cm.ConditionalSGDRegressorCV(lams=lams).fit(X, Y, task=TASK)
