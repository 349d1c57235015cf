"""Errors that named the wrong thing, and mistakes that were not noticed, say what is meant."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import condmeta as cm
from condmeta.errors import DataError, OneTaskWarning

RNG = np.random.default_rng(0)
TASK = np.repeat(np.arange(22), 4)
X = RNG.normal(size=(88, 2))
Y = X[:, 0] + RNG.normal(size=88)
SIDE = pd.DataFrame({"size": RNG.normal(size=22)}, index=pd.Index(range(22), name="task"))


class ReturnsWeights:
    def solve(self, theta, X, y):
        return theta


class ReturnsTooFew:
    def solve(self, theta, X, y):
        return theta, theta


class ReturnsAnotherShape:
    def solve(self, theta, X, y):
        return theta[:1], theta, 0.0


@pytest.mark.parametrize(
    ("inner", "sentence"),
    [
        (ReturnsWeights(), "of ReturnsWeights must return three values: .* It returned ndarray"),
        (ReturnsTooFew(), "of ReturnsTooFew must return three values: .* a tuple of 2"),
        (ReturnsAnotherShape(), r"returned weights of shape \(1,\); theta has the shape \(2,\)"),
    ],
)
@pytest.mark.parametrize("learner", [cm.ConditionalSGDRegressor, cm.IndependentRegressor])
def test_a_wrong_inner_algorithm(learner, inner, sentence):
    options = {"lam": 1.0} if learner is cm.IndependentRegressor else {}
    with pytest.raises(DataError, match=sentence):
        learner(inner=inner, fit_intercept=False, **options).fit(X, Y, task=TASK)


def test_which_task_asks_for_a_side_row_only_where_there_is_one():
    with pytest.raises(DataError, match=r"For a new task give an id that the model does not know"):
        cm.ConditionalRidge().fit(X, Y, task=TASK).predict(X)
    with pytest.raises(DataError, match="For a new task give its row as side_info"):
        cm.ConditionalRidge().fit(X, Y, task=TASK, side_info=SIDE).predict(X)


def test_values_without_names_are_called_so():
    model = cm.ConditionalRidge().fit(X, Y, task=TASK, side_info=SIDE)
    with pytest.raises(DataError, match=r"2 values without names .* fit saw 1 column: 'size'"):
        cm.explain(model, {"a": [1.0, 2.0]})


@pytest.mark.parametrize("where", ["X", "y"])
def test_integers_beyond_floats(where):
    X, y = [[1.0], [2.0]], [1, 2]
    if where == "X":
        X[0][0] = 10**400
    else:
        y[0] = 10**400
    with pytest.raises(DataError, match="a whole number of 401 digits, which is beyond the range"):
        cm.PooledRegressor(lam=1.0).fit(X, y, task=[1, 2])


def test_mixed_class_labels():
    labels = np.array(["a", 0] * 44, object)
    with pytest.raises(DataError, match=r"y mixes text and numbers \('a' and 0\)"):
        cm.ConditionalLogistic().fit(X, labels, task=TASK)
    frame = pd.DataFrame({"t": TASK, "x": X[:, 0], "y": labels})
    with pytest.raises(DataError, match=r"'y' \(target\) mixes text and numbers \('a' and 0\)"):
        cm.TableModel(task="t", target="y").fit(frame)


def test_one_task_is_said():
    for learner in (cm.ConditionalRidge(), cm.ConditionalSGDRegressor()):
        with pytest.warns(OneTaskWarning, match=r"all rows count as one task .*\. Pass task="):
            learner.fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cm.PooledRegressor(lam=1.0).fit(X, Y)  # what it is for
        cm.ConditionalSGDRegressor().partial_fit(X, Y)  # a stream gives one task a call
        cm.ConditionalRidge().fit(X, Y, task=TASK)


def test_near_ids_are_hinted_at_in_predict_and_update():
    frame = pd.DataFrame({"t": [f"{t:04d}" for t in TASK], "x": X[:, 0], "y": Y})
    model = cm.TableModel(task="t", target="y").fit(frame)
    rows = frame[:1].assign(t="7")
    for call in (model.predict, model.predict_frame, model.update):
        with pytest.warns(UserWarning, match="Ids '7' and '0007' do not match: leading zeros"):
            call(rows)


def test_gaps_in_predict_name_what_fit_can_do():
    frame = pd.DataFrame({"t": TASK, "x": X[:, 0], "y": Y})
    model = cm.TableModel(task="t", target="y").fit(frame)
    with pytest.raises(DataError, match="or fit the model with missing='impute'"):
        model.predict(frame.assign(x=np.nan))
