"""Constructor parameters out of range: the sentence names parameter, class, range and value."""

import re

import numpy as np
import pytest
from helpers import draw_problem

from condmeta import ConditionalSGDRegressor, FixedBiasRegressor, IndependentRegressor
from condmeta.errors import DataError
from condmeta.feature_maps import Identity

X, Y, TASK, SIDE = draw_problem()


def refuses(learner, params, sentence):
    """Assert that a fit with these parameters says this and leaves the earlier fit alone."""
    learner.fit(X, Y, task=TASK, side_info=SIDE)
    keys, before = list(vars(learner)), learner.predict(X, task=TASK)
    good = {name: learner.get_params()[name] for name in params}
    learner.set_params(**params)
    with pytest.raises(DataError, match=sentence):
        learner.fit(X, Y, task=TASK, side_info=SIDE)
    assert list(vars(learner)) == keys
    learner.set_params(**good)
    np.testing.assert_array_equal(learner.predict(X, task=TASK), before)


BAD = {
    "lam": [0.0, -1, np.nan, np.inf, "1", None, "cv", True],
    "meta_step": [0.0, -0.5, "big"],
    "tol": [0.0, None],
    "scale": ["unit", None],
    "fit_intercept": [1, "yes"],
    "averaging": ["none", None],
    "gradient_at": ["best"],
    "conditioning": ["both"],
    "missing_side": ["zero"],
    "keep_tasks": ["yes"],
    "n_jobs": [0, 1.5],
    "task_column": [1.5],
    "side_columns": [["size", None]],
    "side_key": [{}, {"key": "store"}],
}
RANGES = {
    "lam": r"a float in \(0, inf\)",
    "averaging": r"one of 'uniform', 'linear', 'last'",
    "scale": r"one of 'none', 'standard', 'rows'",
    "n_jobs": "None or a non-zero integer",
    "side_key": "None, the name of a column or a list of names",
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
def test_out_of_range(name, value):
    sentence = rf"The '{name}' parameter of ConditionalSGDRegressor must be "
    sentence += RANGES.get(name, ".*") + rf"\. Got {re.escape(repr(value))} instead"
    refuses(ConditionalSGDRegressor(Identity()), {name: value}, sentence)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"loss": "cubic"}, r"'loss' parameter must be one of 'absolute', .*Got 'cubic' instead"),
        ({"loss": object()}, r"'loss' parameter must be .*methods 'value' and 'slope'"),
        ({"loss": "hinge"}, r"The loss 'hinge' is for classes\. Use the classifier"),
        ({"inner": "full"}, r"'inner' parameter must be 'online', 'batch' or.*Got 'full' instead"),
        ({"inner": object()}, r"an object with a method 'solve'"),
        ({"feature_map": "fancy"}, r"'feature_map' parameter must be 'auto'.*Got 'fancy' instead"),
        ({"feature_map": Identity}, r"'feature_map' parameter must be .*Got <class"),
        ({"feature_map": [Identity(), 3]}, r"'feature_map' parameter must be .*Got 3 instead"),
        (
            {"gradient_at": "average", "averaging": "last"},
            r"gradient_at='average' goes with averaging='uniform'\. Got averaging='last' instead",
        ),
    ],
)
def test_unknown_part(params, sentence):
    refuses(ConditionalSGDRegressor(Identity()), params, sentence)


@pytest.mark.parametrize("lam", [0.0, "auto", np.array([1.0, 2.0])])
def test_lam_of_a_baseline(lam):
    sentence = r"The 'lam' parameter of IndependentRegressor must be 'cv' or .*\(0, inf\)\. Got"
    refuses(IndependentRegressor(), {"lam": lam}, sentence)


@pytest.mark.parametrize(
    ("theta", "sentence"),
    [
        ([1.0, 2.0], r"'theta' parameter must be a number or 3 numbers\. Got.*\(2,\) instead"),
        ("zero", r"'theta' parameter must hold finite numbers\. Got 'zero' instead"),
        ([1.0, np.nan, 1.0], r"'theta' parameter must hold finite numbers"),
    ],
)
def test_theta_of_a_fixed_bias(theta, sentence):
    refuses(FixedBiasRegressor(), {"theta": theta}, sentence)
