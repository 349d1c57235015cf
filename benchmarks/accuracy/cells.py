"""A cell: the errors of all methods on one data set at one support size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.accuracy.data import PROBLEMS, group
from benchmarks.accuracy.methods import METHODS
from benchmarks.accuracy.run import Outcome
from benchmarks.accuracy.store import Outcomes


class Cell(NamedTuple):
    """Errors by method, (splits,) each; all methods have the same splits."""

    data: str
    size: int
    errors: dict[str, np.ndarray]


def cells(outcomes: Outcomes, groups, field: str, classes: bool = False) -> Iterator[Cell]:
    """Yield the cells of some groups; `field` is a list of `Outcome`, such as "errors"."""
    for name, problem in PROBLEMS.items():
        if name in outcomes and group(name) in groups and problem.classes == classes:
            for j, size in enumerate(problem.sizes):
                errors = at_size(outcomes[name], j, field)
                if errors:
                    yield Cell(name, size, errors)


def most_splits(outcomes: dict[str, Outcome]) -> int:
    """Return the most splits that half of the methods which did not fail have."""
    counts = [len(outcome.errors) for outcome in outcomes.values() if not outcome.failure]
    counts = sorted(counts, reverse=True) or [0]
    return counts[(len(counts) - 1) // 2]


def at_size(outcomes: dict[str, Outcome], j: int, field: str = "errors") -> dict[str, np.ndarray]:
    """Return the errors (splits,) of every complete method at one support size."""
    splits = most_splits(outcomes)
    return {
        method: np.array(getattr(outcome, field)[:splits])[:, j]
        for method, outcome in outcomes.items()
        if method in METHODS and splits and _has(outcome, field, splits)
    }


def _has(outcome: Outcome, field: str, splits: int) -> bool:
    rows = getattr(outcome, field)
    return len(rows) >= splits and all(rows[:splits])
