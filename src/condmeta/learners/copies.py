"""Copies of learners; the learners themselves are not changed."""

from __future__ import annotations

import copy
from typing import Any


def altered(learner: Any, **changes: Any) -> Any:
    """Return a copy of a learner with other parameters."""
    learner = copy.copy(learner)
    for name, value in changes.items():
        setattr(learner, name, value)
    return learner


def with_fitted(learner: Any, fitted: Any) -> Any:
    """Return a copy of a learner that holds this fitted value."""
    return altered(learner, _model=fitted)
