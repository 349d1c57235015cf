"""How much a task bets at first, learned from the training tasks.

The mean residual of theta before a task, over R, is a stake in the right units, but R is the
longest row of all tasks: on inputs of very different lengths, as Gaussian ones are, bets by it are
far too small. So a task is also adapted to the first half of its points with multiples of this
stake, and judged on the second half.
"""

import numpy as np

from condmeta.inner.coin import Coin
from condmeta.tasks.splits import task_rows

STAKES = (1.0, 0.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # of equals the first is taken


def stake_errors(theta, X, y, offsets, radius: float, stake: float) -> np.ndarray:
    """Return the errors of T tasks on the second halves of their points, one sum for each stake.

    theta (T, d); X (N, d); y (N,); offsets (T+1,). The error of a task is its mean absolute error;
    tasks of a single point are left out.
    """
    tasks = np.flatnonzero(np.diff(offsets) > 1)
    rows, offsets = task_rows(offsets, tasks)
    X, y, theta, sizes = X[rows], y[rows], theta[tasks], np.diff(offsets)
    place = np.arange(len(y)) - np.repeat(offsets[:-1], sizes)
    is_shown = place < np.repeat(sizes // 2, sizes)
    shown = np.concatenate([[0], np.cumsum(sizes // 2)])
    few = np.ascontiguousarray(X[is_shown]), np.ascontiguousarray(y[is_shown]), shown
    judged = np.repeat(np.arange(len(tasks)), sizes - sizes // 2)
    errors = np.empty(len(STAKES))
    for place, multiple in enumerate(STAKES):
        w = Coin(radius, multiple * stake).solve_tasks(theta, *few, keep_state=False).coef
        missed = np.abs(np.einsum("ij,ij->i", X[~is_shown], w[judged]) - y[~is_shown])
        by_task = np.bincount(judged, missed, len(tasks))
        errors[place] = (by_task / np.maximum(sizes - sizes // 2, 1)).sum()
    return errors
