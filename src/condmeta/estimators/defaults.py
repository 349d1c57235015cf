"""One constructor, other defaults: how sibling learners share their list of parameters."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType


def with_defaults(init: Callable, **defaults) -> Callable:
    """Return a copy of a constructor whose keyword-only parameters have other defaults.

    scikit-learn reads a learner's parameters off the signature of its own `__init__`; this keeps
    the signature whole without writing the list again.
    """
    unknown = set(defaults) - set(init.__kwdefaults__)
    if unknown:
        raise TypeError(f"{init.__qualname__} has no keyword-only parameters {sorted(unknown)}.")
    copy = FunctionType(
        init.__code__, init.__globals__, init.__name__, init.__defaults__, init.__closure__
    )
    copy.__kwdefaults__ = {**init.__kwdefaults__, **defaults}
    copy.__doc__ = init.__doc__
    return copy
