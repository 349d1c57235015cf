r"""The choice of lam and kappa for `meta.erm`, on held-out tasks.

Every fold of tasks is left out in turn. The map of the others is adapted to one half of a left-out
task's points and judged by the loss on the other half. Half of the points weigh half as much
against lam as all of them will, so that m of a task's n points are solved with lam n / m.

With fewer than `FOLDS` tasks to judge by, none is left out: all learn from the first half of their
points and are judged by the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.inner.batch import batch_tasks
from condmeta.inner.scores import row_scores
from condmeta.meta.erm import learn_map
from condmeta.meta.grid import Points
from condmeta.meta.ridge_choice import FOLDS, MARGIN

KAPPAS = (np.inf, 100.0, 10.0, 1.0, 0.1)
DECADES = (0.5, 0.0, -0.5, -1.0, -1.5, -2.0, -2.5)  # of lam, in its unit
LOOSE = {"tol": 1e-2, "most": 50}  # of maps that are only compared
ENOUGH = 20  # tasks judged before candidates are dropped


class Candidate(NamedTuple):
    """One setting of the learner."""

    lam: float
    kappa: float


class Halves(NamedTuple):
    """Two halves of the points of T tasks, and what a task shows when it is left out (T, k)."""

    support: Points
    query: Points
    Phi: np.ndarray


def lam_grid(points: Points, loss) -> list[float]:
    """Return values of lam for these data, falling.

    In units of (mean ||x||^2) c with c the curvature of the loss over the spread s of the targets,
    slope(s) / s: one point could then move a prediction by about s.
    """
    spread = float(np.abs(points.y).mean()) or 1.0
    slopes = np.abs(loss.slope(np.array([spread, -spread]), np.zeros(2)))
    steepness = float(slopes.max()) or 1.0
    square = float(np.einsum("ij,ij->i", points.X, points.X).mean()) or 1.0
    return [square * steepness / spread * 10.0**decade for decade in DECADES]


def choose(points: Points, Phi, halves: Halves, fold, lams, kappas, loss, n_jobs=1):
    """Choose among all pairs of lams and kappas.

    Parameters
    ----------
    points, Phi : Points of T tasks and their features (T, k), standardised
    halves : Halves of the same tasks
    fold : (T,) int array
        When a task is left out.
    lams, kappas : sequences of float
        With no column in Phi only kappa = infinity is tried.

    Returns
    -------
    The chosen Candidate, and the mean loss of each candidate that was compared to the end.
    """
    kappas = sorted(kappas, reverse=True) if Phi.shape[1] else [np.inf]
    candidates = [Candidate(lam, kappa) for kappa in kappas for lam in sorted(lams, reverse=True)]
    judged = np.diff(halves.query.offsets) > 0
    if len(candidates) == 1 or not judged.any():
        return candidates[len(candidates) // 2], {}
    total, n_judged, n_points = dict.fromkeys(candidates, 0.0), 0, 0
    few = judged.sum() < FOLDS
    for left_out in [None] if few else np.unique(fold[judged]):
        held = np.flatnonzero(judged if few else judged & (fold == left_out))
        train = np.flatnonzero(np.diff(halves.support.offsets) > 0 if few else fold != left_out)
        data = take(halves.support if few else points, train), Phi[train]
        trial = Trial.of(points, halves, held)
        for candidate, W in _path(*data, list(total), loss, n_jobs):
            total[candidate] += trial.loss_of(W, candidate.lam, loss, n_jobs)
        n_judged, n_points = n_judged + len(held), n_points + len(trial.query.y)
        limit = MARGIN * min(total.values())
        if n_judged >= ENOUGH:
            total = {candidate: lost for candidate, lost in total.items() if lost <= limit}
    scores = {candidate: lost / n_points for candidate, lost in total.items()}
    least = min(scores.values()) * (1 + 1e-9)
    return next(candidate for candidate in scores if scores[candidate] <= least), scores


def _path(points, Phi, candidates, loss, n_jobs):
    """Yield the map of every candidate, each from that of the next larger lam."""
    last, kappa = None, None
    for candidate in candidates:
        start = last if candidate.kappa == kappa else None
        last = learn_map(points, Phi, loss, *candidate, start, n_jobs=n_jobs, **LOOSE).W
        kappa = candidate.kappa
        yield candidate, last


class Trial(NamedTuple):
    """Left-out tasks: rows of the support divided by c = sqrt(n / m), so that lam is lam n / m."""

    support: Points
    query: Points
    Phi: np.ndarray
    c: np.ndarray

    @classmethod
    def of(cls, points: Points, halves: Halves, held) -> Trial:
        """Lay out the tasks `held`."""
        support, query = take(halves.support, held), take(halves.query, held)
        m, n = np.diff(support.offsets), np.diff(points.offsets)[held]
        c = np.sqrt(n / np.maximum(m, 1))
        X = support.X / np.repeat(c, m)[:, None]
        return cls(support._replace(X=X), query, halves.Phi[held], c)

    def loss_of(self, W, lam, loss, n_jobs) -> float:
        """Return the sum of the losses of the query points, after adaptation from W phi."""
        c = self.c[:, None]
        theta = np.ascontiguousarray((self.Phi @ W[:-1] + W[-1]) * c)
        w = batch_tasks(theta, *self.support, lam, loss, LOOSE["tol"], n_jobs)[0] / c
        X, y, offsets = self.query
        task = np.repeat(np.arange(len(c)), np.diff(offsets))
        return float(loss.value(row_scores(X, w, task, n_jobs), y).sum())


def take(points: Points, tasks) -> Points:
    """Return the points of some tasks."""
    X, y, offsets = points
    sizes = np.diff(offsets)[tasks]
    ends = np.cumsum(sizes)
    rows = np.repeat(offsets[tasks] - ends + sizes, sizes) + np.arange(sizes.sum())
    return Points(X[rows], y[rows], np.append(0, ends))
