"""What constructor parameters may be, in one table, checked when a learner is fitted."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from joblib import effective_n_jobs

from condmeta.errors import DataError
from condmeta.estimators.preparation import SCALES
from condmeta.meta.sgd import AVERAGING, GRADIENT_AT


def _is_real(value) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def _positive(value) -> bool:
    return _is_real(value) and 0 < value < np.inf


def one_of(choices):
    """Return the rule of a parameter that is one of some names."""
    text = ", ".join(repr(choice) for choice in choices)
    return (lambda value: isinstance(value, str) and value in choices), f"one of {text}"


def or_auto(rule):
    """Return a rule that also takes "auto"."""
    allowed, description = rule
    return (
        lambda value: (isinstance(value, str) and value == "auto") or allowed(value),
        f"'auto' or {description}",
    )


POSITIVE = (_positive, "a float in (0, inf)")
POSITIVE_OR_INF = (lambda value: _is_real(value) and value > 0, "a float in (0, inf]")
NON_NEGATIVE = (lambda value: _is_real(value) and value >= 0, "a float in [0, inf]")
BOOLEAN = (lambda value: isinstance(value, (bool, np.bool_)), "True or False")

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
    "keep_tasks": BOOLEAN,
    "n_jobs": (
        lambda value: value is None or (isinstance(value, Integral) and value != 0),
        "None or a non-zero integer",
    ),
}


def check_parameters(estimator, **special) -> None:
    """Say which parameter is out of range; `special` holds rules of the class's own."""
    for name, value in estimator.get_params(deep=False).items():
        rule = special.get(name) or RULES.get(name)
        if rule is not None:
            _check(estimator, name, value, rule)


def jobs_of(estimator) -> int:
    """Return the number of threads that `n_jobs` stands for here."""
    _check(estimator, "n_jobs", estimator.n_jobs, RULES["n_jobs"])
    return effective_n_jobs(estimator.n_jobs)


def _check(estimator, name, value, rule) -> None:
    allowed, description = rule
    if not allowed(value):
        raise DataError(
            f"The '{name}' parameter of {type(estimator).__name__} must be {description}. "
            f"Got {value!r} instead."
        )
