"""The choice of lam for the baselines, by cross-validation of their own prediction problem."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.inner.algorithms import solve_tasks

GRID = np.logspace(-5, 5, 21)
FOLDS = 5
MOST_TASKS = 2000  # tasks that the choice looks at; more would cost time and change little
MOST_ROWS = 20_000


class Trial(NamedTuple):
    """Learning problems with held-out rows: support and query, each (X, y, offsets)."""

    support: tuple
    query: tuple


def within_tasks(X, y, offsets) -> Trial:
    """Hold out every fifth row of each task in turn, once for each of the five remainders."""
    tasks = _spread(np.flatnonzero(np.diff(offsets) > 1), MOST_TASKS)
    rows = [np.arange(offsets[t], offsets[t + 1]) for t in tasks]
    pairs = [_hold_out(r, np.arange(len(r)) % FOLDS == f) for r in rows for f in range(FOLDS)]
    return _stack(X, y, [pair for pair in pairs if len(pair[0]) and len(pair[1])])


def across_tasks(X, y, offsets) -> Trial:
    """Hold out every fifth task in turn; every fifth row if there are fewer than five tasks."""
    sizes = np.diff(offsets)
    task_of_row = np.repeat(np.arange(len(sizes)), sizes)
    unit = task_of_row if (sizes > 0).sum() >= FOLDS else np.arange(len(y))
    rows = _spread(np.arange(len(y)), MOST_ROWS)
    pairs = [_hold_out(rows, unit[rows] % FOLDS == f) for f in range(FOLDS)]
    return _stack(X, y, [pair for pair in pairs if len(pair[0]) and len(pair[1])])


def best_lam(trial: Trial, theta, make_inner, loss, n_jobs: int) -> float:
    """Return the lam of the grid with the least mean query loss over the problems.

    Among those within 1e-9 of the least the largest is taken; 1.0 if nothing can be held out.
    """
    X, y, offsets = trial.query
    problems = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    if len(y) == 0:
        return 1.0
    start = np.tile(theta, (len(offsets) - 1, 1))
    errors = np.full(len(GRID), np.inf)
    for i, lam in enumerate(GRID):
        try:
            solved = solve_tasks(
                make_inner(lam), start, *trial.support, n_jobs=n_jobs, keep_state=False
            )
        except ArithmeticError:  # an online pass that diverges is no candidate
            continue
        lost = loss.value(np.einsum("ij,ij->i", X, solved.coef[problems]), y)
        errors[i] = np.mean(np.bincount(problems, lost) / np.bincount(problems))
    return float(GRID[np.flatnonzero(errors <= errors.min() * (1 + 1e-9))[-1]])


def _hold_out(rows, held) -> tuple[np.ndarray, np.ndarray]:
    return rows[~held], rows[held]


def _spread(items, most: int):
    """Return at most `most` items, evenly spread."""
    if len(items) <= most:
        return items
    return items[np.linspace(0, len(items) - 1, most).astype(int)]


def _stack(X, y, pairs) -> Trial:
    def flat(part):
        rows = [pair[part] for pair in pairs]
        chosen = np.concatenate([*rows, np.empty(0, int)]).astype(int)
        return X[chosen], y[chosen], np.cumsum([0, *map(len, rows)])

    return Trial(flat(0), flat(1))
