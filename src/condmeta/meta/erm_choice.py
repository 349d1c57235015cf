r"""The choice of lam and kappa for `meta.erm`, on held-out tasks.

Every fold of tasks is left out in turn. The map of the others is adapted to four fifths of a
left-out task's points and judged by the loss on the last fifth, for each fifth in turn. m points
weigh less against lam than all n of the task will, so that they are solved with lam n / m.

Among the pairs whose loss is the least up to its standard error, those with the largest lam are
taken, and of these the best: few tasks cannot tell more, and a lam too small does more harm.

With fewer than `FOLDS` tasks none is left out: all learn from four fifths of their points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.inner.batch import batch_tasks
from condmeta.inner.scores import row_scores
from condmeta.meta.erm import BASE, learn_map
from condmeta.meta.points import WeightedPoints
from condmeta.meta.ridge_choice import FOLDS
from condmeta.tasks.weights import weighted_median

KAPPAS = (np.inf, 100.0, 10.0, 1.0, 0.1)
DECADES = (0.5, 0.0, -0.5, -1.0, -1.5, -2.0, -2.5)  # of lam, in its unit
LOOSE = {"tol": 1e-2, "most": 50}  # of maps that are only compared
MARGIN = 1.15  # what is further behind the best is dropped
NOISE = 1.0  # standard errors that a candidate may be behind the best
ENOUGH = 6  # tasks judged before candidates are dropped


class Candidate(NamedTuple):
    """One setting of the learner."""

    lam: float
    kappa: float


class View(NamedTuple):
    """T tasks cut in two: points that they show, points that judge, and what Phi (T, k) shows."""

    support: WeightedPoints
    query: WeightedPoints
    Phi: np.ndarray


def lam_grid(points: WeightedPoints, loss) -> list[float]:
    """Return values of lam for these data, falling.

    In units of (mean ||x||^2) slope(s) / s, with s the median of |y|: by this lam one point can
    move a prediction by about s.
    """
    sizes = np.abs(points.y)
    weight = points.weight
    spread = weighted_median(sizes, weight) or float(np.average(sizes, weights=weight)) or 1.0
    slopes = np.abs(loss.slope(np.array([spread, -spread]), np.zeros(2)))
    steepness = float(slopes.max()) or 1.0
    squares = np.einsum("ij,ij->i", points.X, points.X)
    square = float(np.average(squares, weights=weight)) or 1.0
    return [square * steepness / spread * 10.0**decade for decade in DECADES]


def choose(points: WeightedPoints, Phi, views: list[View], fold, lams, kappas, loss, n_jobs=1):
    """Choose among all pairs of lams and kappas.

    Parameters
    ----------
    points, Phi : WeightedPoints of T tasks and their features (T, k)
    views : list of View
        The same tasks, each time with other points left out.
    fold : (T,) int array
        When a task is left out.
    lams, kappas : sequences of float
        With no column in Phi those above `BASE` are all alike.

    Returns
    -------
    The chosen Candidate, and the mean loss of each candidate that was compared to the end.
    """
    if not Phi.shape[1]:  # there is b alone, whose ridge is limited
        kappas = [kappa for kappa in kappas if kappa <= BASE] or list(kappas)[:1]
    kappas = sorted(kappas, reverse=True)
    candidates = [Candidate(lam, kappa) for kappa in kappas for lam in sorted(lams, reverse=True)]
    if len(candidates) == 1:
        return candidates[0], {}
    lost = {candidate: np.zeros(len(Phi)) for candidate in candidates}
    judged = np.zeros(len(Phi), bool)
    for rest, held, trials in _rounds(points, Phi, views, fold):
        judged[held] = True
        for candidate, W in _path(*rest, list(lost), loss, n_jobs):
            for trial in trials:
                lost[candidate][held] += trial.losses(W, candidate.lam, loss, n_jobs)
        if judged.sum() >= ENOUGH:
            limit = MARGIN * min(each.sum() for each in lost.values())
            lost = {candidate: each for candidate, each in lost.items() if each.sum() <= limit}
    scores = {candidate: float(each.sum() / points.count.sum()) for candidate, each in lost.items()}
    return _cautious(lost) if judged.any() else candidates[len(candidates) // 2], scores


def _cautious(lost: dict[Candidate, np.ndarray]) -> Candidate:
    """Return the best of those with the largest lam that is as good as the best up to noise.

    lost : losses of each task (T,). Noise is a standard error of the difference over tasks.
    """
    best = min(lost, key=lambda candidate: lost[candidate].sum())

    def is_close(candidate) -> bool:
        behind = lost[candidate] - lost[best]
        return behind.sum() <= NOISE * behind.std() * np.sqrt(len(behind))

    close = [candidate for candidate in lost if is_close(candidate)]
    return min(close, key=lambda candidate: (-candidate.lam, lost[candidate].sum()))


def _rounds(points: WeightedPoints, Phi, views: list[View], fold):
    """Yield the points and Phi to learn from, the tasks that are judged, and how."""
    everyone = np.arange(len(Phi))
    if len(Phi) >= FOLDS:
        for left_out in np.unique(fold):
            train, held = everyone[fold != left_out], everyone[fold == left_out]
            trials = [Trial.of(points, view, held) for view in views]
            yield (points.take(train), Phi[train]), held, trials
        return
    for view in views:
        seen = np.flatnonzero(view.support.sizes > 0)
        if len(seen):
            rest = view.support.take(seen), view.Phi[seen]
            yield rest, everyone, [Trial.of(points, view, everyone)]


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

    support: WeightedPoints
    query: WeightedPoints
    Phi: np.ndarray
    c: np.ndarray

    @classmethod
    def of(cls, points: WeightedPoints, view: View, held) -> Trial:
        """Lay out the tasks `held`."""
        support, query = view.support.take(held), view.query.take(held)
        m, n = support.count, points.count[held]
        c = np.sqrt(n / np.where(m > 0, m, 1))
        X = support.X / np.repeat(c, support.sizes)[:, None]
        return cls(support._replace(X=X), query, view.Phi[held], c)

    def losses(self, W, lam, loss, n_jobs) -> np.ndarray:
        """Return the sums of the losses of the query points, after adaptation from W phi."""
        c = self.c[:, None]
        theta = np.ascontiguousarray((self.Phi @ W[:-1] + W[-1]) * c)
        X, y, offsets, weight = self.support
        w = batch_tasks(theta, X, y, offsets, lam, loss, LOOSE["tol"], n_jobs, weight)[0] / c
        X, y, offsets, weight = self.query
        task = np.repeat(np.arange(len(c)), np.diff(offsets))
        lost = loss.value(row_scores(X, w, task, n_jobs), y)
        return np.bincount(task, lost if weight is None else weight * lost, len(c))


def fifths(points: WeightedPoints) -> list[tuple[WeightedPoints, WeightedPoints]]:
    """Return the points of tasks without every fifth one, and these, from five starts."""
    within = np.arange(len(points.y)) - np.repeat(points.offsets[:-1], points.sizes)
    lots = [within % FOLDS == start for start in range(FOLDS)]
    return [(points.where(~lot), points.where(lot)) for lot in lots if lot.any()]
