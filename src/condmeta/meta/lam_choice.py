"""The choice of lam for the baselines, by cross-validation of their own prediction problem."""

from collections.abc import Callable

import numpy as np

from condmeta.inner.algorithms import Batch, solve_tasks
from condmeta.inner.ridge_path import ridge_path
from condmeta.meta.selection import close_to_best, select
from condmeta.tasks.points import Points
from condmeta.tasks.splits import SupportQuery

GRID = np.logspace(-5, 5, 21)
TIE = 1e-9  # relative difference of two errors that counts as none


def choose_lam(
    points: Points, hold_out: Callable[[Points], SupportQuery], theta: np.ndarray,
    make_inner: Callable, loss, n_jobs: int,
) -> float:  # fmt: skip
    """Return the lam of `GRID` with the least mean query loss over the held-out problems.

    Of equally good ones the largest is taken; 1.0 if no point can be held out.

    Parameters
    ----------
    hold_out : function
        `condmeta.tasks.splits.within_tasks` or `across_tasks`.
    theta : (d,) array
        Where every problem starts.
    make_inner : function
        lam -> inner algorithm.
    """
    shown, (X, y, offsets, weight) = hold_out(points)
    if len(y) == 0:
        return 1.0
    problem = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    start = np.tile(theta, (len(offsets) - 1, 1))
    whole_path = isinstance(make_inner(1.0), Batch) and make_inner(1.0).resumable  # squared loss

    def predictions(lams):
        if whole_path:
            yield from zip(lams, ridge_path(theta, shown, X, offsets, lams).T, strict=True)
            return
        *rows, times = shown
        for lam in lams:
            try:
                solved = solve_tasks(make_inner(lam), start, *rows, n_jobs, False, times)
            except ArithmeticError:  # a lam at which the online pass diverges is not a candidate
                yield lam, np.full(len(y), np.inf)
                continue
            yield lam, np.einsum("ij,ij->i", X, solved.coef[problem])

    def judge(lams):
        for lam, predicted in predictions(lams):
            if not np.isfinite(predicted).all():
                yield lam, np.inf
                continue
            lost = loss.value(predicted, y)
            lost = lost if weight is None else weight * lost
            yield lam, np.mean(np.bincount(problem, lost) / np.bincount(problem, weight))

    def largest_of_best(losses, scores):
        return max(close_to_best(scores, TIE))

    return float(select(GRID, [judge], largest_of_best).chosen)
