"""What constructor parameters may be, in one table, checked when a learner is fitted."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import is_classifier

from condmeta.errors import DataError
from condmeta.fitted.scales import SCALES
from condmeta.fitted.splines import SPLINES
from condmeta.losses import get_loss
from condmeta.meta.sgd import AVERAGING, GRADIENT_AT


def _is_real(value: Any) -> bool:
    """Return whether a value is a number that NumPy can read; booleans are none."""
    if isinstance(value, Integral) and abs(value) >= 1 << 63:
        return False
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def _positive(value: Any) -> bool:
    return _is_real(value) and 0 < value < np.inf


def _counts(value: Any) -> bool:
    return np.ndim(value) == 1 and all(isinstance(n, Integral) and n >= 0 for n in value)


def _names(value: Any) -> bool:
    """Return whether a value is None, the name of a column, or a list or tuple of names."""
    many = value if isinstance(value, (list, tuple)) else [value]
    return value is None or all(isinstance(name, str | Integral) for name in many)


def one_of(choices: Any):
    """Return the rule of a parameter that is one of some names, or of True, False and None."""
    text = ", ".join(repr(choice) for choice in choices)
    kinds = str, bool, type(None)
    return (lambda value: isinstance(value, kinds) and value in choices), f"one of {text}"


def or_word(word: str, rule: Any):
    """Return a rule that also allows a word, such as "auto"."""
    allowed, description = rule
    return (
        lambda value: (isinstance(value, str) and value == word) or allowed(value),
        f"'{word}' or {description}",
    )


POSITIVE = (_positive, "a float in (0, inf)")
POSITIVE_OR_INF = (lambda value: _is_real(value) and value > 0, "a float in (0, inf]")
NON_NEGATIVE = (lambda value: _is_real(value) and value >= 0, "a float in [0, inf]")
FINITE = (lambda value: _is_real(value) and 0 <= value < np.inf, "a float in [0, inf)")
POSITIVES = (
    lambda value: np.ndim(value) == 1 and len(value) > 0 and all(map(_positive, value)),
    "a sequence of floats in (0, inf)",
)
BOOLEAN = (lambda value: isinstance(value, (bool, np.bool_)), "True or False")
NAMES = (_names, "None, the name of a column or a list of names")

RULES = {
    "lam": POSITIVE,
    "meta_step": POSITIVE,
    "tol": POSITIVE,
    "max_iter": (
        lambda value: isinstance(value, Integral) and not isinstance(value, bool) and value > 0,
        "a positive integer",
    ),
    "scale": one_of(SCALES),
    "fit_intercept": BOOLEAN,
    "averaging": one_of(AVERAGING),
    "gradient_at": one_of(GRADIENT_AT),
    "conditioning": one_of(("shared", "split")),
    "missing_side": one_of(("error", "mean")),
    "task_column": NAMES,
    "side_columns": NAMES,
    "side_key": NAMES,
    "keep_tasks": BOOLEAN,
    "order": one_of(("random", "first")),
    "shots": (
        lambda value: _counts(value) and len(value) > 0,
        "a sequence of one or more ints of at least 0",
    ),
    "x_transform": (
        lambda value: (
            value is None
            or (isinstance(value, str) and value in ("auto", SPLINES))
            or (hasattr(value, "transform") and hasattr(value, "fit"))
        ),
        "'auto', None, 'splines' or a scikit-learn transformer",
    ),
    "n_jobs": (
        lambda value: value is None or (isinstance(value, Integral) and value != 0),
        "None or a non-zero integer",
    ),
}


def is_auto(value: Any) -> bool:
    """Return whether a parameter is the word "auto"; transformers may define `==` as they like."""
    return isinstance(value, str) and value == "auto"


def check_parameters(learner: Any) -> None:
    """Raise if a parameter is out of range; `learner._rules` holds rules of its class."""
    params = learner.get_params(deep=False)
    for name, value in params.items():
        rule = learner._rules.get(name) or RULES.get(name)
        if rule is not None:
            _check(learner, name, value, rule)
    if params.get("gradient_at") == "average" and params["averaging"] != "uniform":
        raise DataError(
            "gradient_at='average' goes with averaging='uniform'. "
            f"Got averaging={params['averaging']!r} instead."
        )


def check_learner(learner: Any) -> None:
    """Raise if a parameter is out of range, or if the loss does not fit the target."""
    check_parameters(learner)
    loss = get_loss(learner.loss)
    if not is_classifier(learner) and getattr(loss, "signed", False):
        raise DataError(
            f"The loss {loss.name!r} is for classes. Use the classifier of the same name, or a "
            "regression loss."
        )
    if is_classifier(learner) and hasattr(loss, "native") and not loss.signed:
        raise DataError(f"The loss {loss.name!r} is for numbers. Use 'hinge' or 'logistic'.")


def jobs_of(learner: Any) -> int:
    """Return the number of threads that `n_jobs` means on this machine."""
    if learner.n_jobs is None:
        return effective_n_jobs(None)
    _check(learner, "n_jobs", learner.n_jobs, RULES["n_jobs"])
    return effective_n_jobs(learner.n_jobs)


def _check(learner: Any, name: str, value: Any, rule: Any) -> None:
    allowed, description = rule
    if not allowed(value):
        raise DataError(
            f"The '{name}' parameter of {type(learner).__name__} must be {description}. "
            f"Got {value!r} instead."
        )
