r"""At which level intervals of few calibration tasks cover new tasks as often as they should.

With the weight 1/(T+1) of the new task at infinity, `meta.conformal` takes the quantile of level
c (1 + 1/T) of the scores. This is right if each task has one score, and too much if it has many:
ten tasks would get the quantile of 99 % for intervals of 90 %. So each task is left out in turn,
and a smaller c' <= c is used if intervals of the others then still cover it often enough. Score r_i
of task t lies inside the interval of the other tasks if

    c' > a_i = (1/T) sum_{s != t} F_s(r_i-),

with F_s the distribution of the scores of task s. With one score in each task, c' = c. In general
c' is the c-quantile of the a_i, in which each task has the same weight, rounded up to the next a_i.
"""

import numpy as np

COVERAGES = np.arange(1, 100) / 100


def nominal_levels(r: np.ndarray, share: np.ndarray, task: np.ndarray) -> np.ndarray:
    """Return c' for each of `COVERAGES`.

    Parameters
    ----------
    r, share, task : (N,) arrays
        Scores, their weights within their task (sum 1), and the codes of tasks, from 0.
    """
    T = int(task.max()) + 1
    below = _weight_below(r, share, r)
    for t in range(T):
        own = task == t
        below[own] -= _weight_below(r[own], share[own], r[own])
    a = np.round(below / T, 12)
    order = np.argsort(a, kind="stable")
    a, covered = a[order], np.cumsum(share[order]) / T
    last = a[np.searchsorted(covered, COVERAGES - 1e-9).clip(max=len(a) - 1)]
    following = np.append(a, 1.0)[np.searchsorted(a, last, side="right")]
    return np.minimum(following, COVERAGES)


def _weight_below(r: np.ndarray, weight: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the weight of the scores that are smaller than each of `at`."""
    order = np.argsort(r, kind="stable")
    total = np.append(0.0, np.cumsum(weight[order]))
    return total[np.searchsorted(r[order], at, side="left")]
