"""The choice of lam for the baselines, by cross-validation of their own prediction problem."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.inner.algorithms import solve_tasks
from condmeta.meta.points import WeightedPoints

GRID = np.logspace(-5, 5, 21)
FOLDS = 5
MOST_TASKS = 2000  # tasks that the choice looks at; more would cost time and change little
MOST_ROWS = 20_000


class Trial(NamedTuple):
    """Learning problems with held-out rows, whose tasks are the problems."""

    support: WeightedPoints
    query: WeightedPoints


def within_tasks(points: WeightedPoints) -> Trial:
    """Hold out every fifth row of each task in turn, once for each of the five remainders."""
    tasks, offsets = _spread(np.flatnonzero(points.sizes > 1), MOST_TASKS), points.offsets
    rows = [np.arange(offsets[t], offsets[t + 1]) for t in tasks]
    pairs = [_hold_out(r, np.arange(len(r)) % FOLDS == f) for r in rows for f in range(FOLDS)]
    return _stack(points, [pair for pair in pairs if len(pair[0]) and len(pair[1])])


def across_tasks(points: WeightedPoints) -> Trial:
    """Hold out every fifth task in turn; every fifth row if there are fewer than five tasks."""
    sizes, every = points.sizes, np.arange(len(points.y))
    task_of_row = np.repeat(np.arange(len(sizes)), sizes)
    unit = task_of_row if (sizes > 0).sum() >= FOLDS else every
    rows = _spread(every, MOST_ROWS)
    pairs = [_hold_out(rows, unit[rows] % FOLDS == f) for f in range(FOLDS)]
    return _stack(points, [pair for pair in pairs if len(pair[0]) and len(pair[1])])


def best_lam(trial: Trial, theta, make_inner, loss, n_jobs: int) -> float:
    """Return the lam of the grid with the least mean query loss over the problems.

    Among those within 1e-9 of the least the largest is taken; 1.0 if nothing can be held out.
    """
    X, y, offsets, weight = trial.query
    problems = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    if len(y) == 0:
        return 1.0
    start = np.tile(theta, (len(offsets) - 1, 1))
    errors, (*shown, times) = np.full(len(GRID), np.inf), trial.support
    for i, lam in enumerate(GRID):
        try:
            solved = solve_tasks(make_inner(lam), start, *shown, n_jobs, False, times)
        except ArithmeticError:  # an online pass that diverges is no candidate
            continue
        lost = loss.value(np.einsum("ij,ij->i", X, solved.coef[problems]), y)
        lost = lost if weight is None else weight * lost
        errors[i] = np.mean(np.bincount(problems, lost) / np.bincount(problems, weight))
    return float(GRID[np.flatnonzero(errors <= errors.min() * (1 + 1e-9))[-1]])


def _hold_out(rows, held) -> tuple[np.ndarray, np.ndarray]:
    return rows[~held], rows[held]


def _spread(items, most: int):
    """Return at most `most` items, evenly spread."""
    if len(items) <= most:
        return items
    return items[np.linspace(0, len(items) - 1, most).astype(int)]


def _stack(points: WeightedPoints, pairs) -> Trial:
    def flat(part) -> WeightedPoints:
        rows = [pair[part] for pair in pairs]
        chosen = np.concatenate([*rows, np.empty(0, int)]).astype(int)
        weight = None if points.weight is None else points.weight[chosen]
        offsets = np.cumsum([0, *map(len, rows)])
        return WeightedPoints(points.X[chosen], points.y[chosen], offsets, weight)

    return Trial(flat(0), flat(1))
