"""Which method is best in a cell, and whether another is within the tolerance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

SLACK = 0.01  # of the best error, beside two standard errors of the difference


class Gap(NamedTuple):
    """How far a method is behind the best one, with the standard error of the difference."""

    best: str
    best_error: float
    difference: float
    se: float

    @property
    def within(self) -> bool:
        """Whether the method is no more than 1 % and two standard errors behind."""
        return self.difference <= SLACK * self.best_error + 2 * self.se


def standard_error(values: np.ndarray) -> float:
    """Return the standard error of a mean over splits; 0 of one split."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def best_of(errors: Mapping[str, np.ndarray], among: Iterable[str]) -> str:
    """Return the method of least mean error; `errors` holds the splits of one support size."""
    return min(among, key=lambda name: errors[name].mean())


def gap(errors: Mapping[str, np.ndarray], method: str, among: Iterable[str]) -> Gap:
    """Compare a method with the best of others on the same splits."""
    best = best_of(errors, among)
    difference = errors[method] - errors[best]
    return Gap(
        best, float(errors[best].mean()), float(difference.mean()), standard_error(difference)
    )
