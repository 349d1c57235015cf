r"""The choice of lam and kappa for `meta.erm`, on held-out tasks.

Every fold of tasks is held out in turn, and the map is learned from the others. It is adapted to
four fifths of a held-out task's points and judged by the loss on the last fifth, for each fifth in
turn. m of the n points of a task have less weight against lam than all n will have; so they are
solved with lam n / m.

Ties: a pair (lam, kappa) with a loss within one standard error of the least is as good as the best.
Of such pairs those with the largest lam are taken, and the best of these: few tasks cannot decide
more, and a lam that is too small does more harm.

With fewer than `FOLDS` tasks none is held out: all learn from four fifths of their points.
"""

from functools import partial
from typing import NamedTuple, Self

import numpy as np

from condmeta.inner.batch import batch_tasks
from condmeta.inner.scores import row_scores
from condmeta.meta.erm import BASE, learn_map
from condmeta.meta.selection import Selection, drop_behind, select, task_rounds
from condmeta.tasks.points import Points
from condmeta.tasks.splits import FOLDS
from condmeta.tasks.weights import weighted_median

KAPPAS = (np.inf, 100.0, 10.0, 1.0, 0.1)
DECADES = (0.5, 0.0, -0.5, -1.0, -1.5, -2.0, -2.5)  # of lam, in its unit
ROUGH_TOL, ROUGH_EVALUATIONS = 1e-2, 50  # of maps that are only compared
MARGIN = 1.15  # a candidate with a loss above this many times the least drops out,
MIN_JUDGED = 6  # once this many tasks are judged
TIE_ERRORS = 1.0  # standard errors behind the best that count as a tie


class ERMSetting(NamedTuple):
    """One setting of the learner."""

    lam: float
    kappa: float


class PointSplit(NamedTuple):
    """T tasks with points held out: support, query, and the features (T, k) that support gives."""

    support: Points
    query: Points
    Phi: np.ndarray


def lam_grid(points: Points, loss) -> list[float]:
    """Return values of lam for these data, falling.

    The unit is (mean ||x||^2) slope(s) / s, with s the median of |y|: with lam = 1 unit one point
    can move a prediction by about s.
    """
    sizes, weight = np.abs(points.y), points.weight
    spread = weighted_median(sizes, weight) or float(np.average(sizes, weights=weight)) or 1.0
    steepness = float(np.abs(loss.slope(np.array([spread, -spread]), np.zeros(2))).max()) or 1.0
    squares = np.einsum("ij,ij->i", points.X, points.X)
    square = float(np.average(squares, weights=weight)) or 1.0
    return [square * steepness / spread * 10.0**decade for decade in DECADES]


def choose(
    points: Points, Phi, views: list[PointSplit], fold, lams, kappas, loss, n_jobs=1
) -> Selection:
    """Choose among all pairs of lams and kappas.

    Parameters
    ----------
    points, Phi : Points of T tasks and their features (T, k)
    views : list of PointSplit
        The same tasks, each time with other points held out.
    fold : (T,) int array
        The round in which a task is held out.
    lams, kappas : sequences of float
        With no column in Phi kappas above `BASE` are all alike.

    Returns
    -------
    Selection of an ERMSetting; scores are mean losses.
    """
    if not Phi.shape[1]:  # there is b alone, and its ridge is limited
        kappas = [kappa for kappa in kappas if kappa <= BASE] or list(kappas)[:1]
    kappas = sorted(kappas, reverse=True)
    candidates = [ERMSetting(lam, kappa) for kappa in kappas for lam in sorted(lams, reverse=True)]
    if len(candidates) == 1:
        return Selection.given(candidates[0])
    judged = np.zeros(len(Phi), bool)

    def judge(train, train_Phi, held, views, left):
        judged[held] = True
        tasks = [HeldOutTasks.of(points, view, held) for view in views]
        for candidate, W in _path(train, train_Phi, left, loss, n_jobs):
            losses = np.zeros(len(Phi))
            for each in tasks:
                losses[held] += each.losses(W, candidate.lam, loss, n_jobs)
            yield candidate, losses

    def drop(losses):
        return drop_behind(losses, MARGIN) if judged.sum() >= MIN_JUDGED else losses

    def decide(losses, scores):
        middle = candidates[len(candidates) // 2]
        return largest_lam_within_noise(losses) if judged.any() else middle

    rounds = (partial(judge, *parts) for parts in _rounds(points, Phi, views, fold))
    count = points.count.sum()
    return select(
        candidates, rounds, decide, score=lambda losses: float(losses.sum() / count), drop=drop,
        initial=np.zeros(len(Phi)),
    )  # fmt: skip


def largest_lam_within_noise(losses: dict[ERMSetting, np.ndarray]) -> ERMSetting:
    """Return the best candidate with the largest lam that is as good as the best up to noise.

    losses : of each task (T,). Noise is the standard error, over tasks, of the difference.
    """
    best = min(losses, key=lambda candidate: losses[candidate].sum())

    def is_close(candidate) -> bool:
        behind = losses[candidate] - losses[best]
        return behind.sum() <= TIE_ERRORS * behind.std() * np.sqrt(len(behind))

    close = [candidate for candidate in losses if is_close(candidate)]
    return min(close, key=lambda candidate: (-candidate.lam, losses[candidate].sum()))


def _rounds(points: Points, Phi, views: list[PointSplit], fold):
    """Yield the points and Phi to learn from, the positions of the judged tasks, their views."""
    everyone = np.arange(len(Phi))
    if len(Phi) >= FOLDS:
        for train, held in task_rounds(fold, np.ones(len(Phi), bool)):
            yield points.take(train), Phi[train], held, views
        return
    for view in views:
        seen = np.flatnonzero(view.support.sizes > 0)
        if len(seen):
            yield view.support.take(seen), view.Phi[seen], everyone, [view]


def _path(points: Points, Phi, candidates, loss, n_jobs):
    """Yield the map of every candidate, each from that of the next larger lam."""
    last, kappa = None, None
    for candidate in candidates:
        start = last if candidate.kappa == kappa else None
        last = learn_map(
            points, Phi, loss, *candidate, start, tol=ROUGH_TOL,
            max_evaluations=ROUGH_EVALUATIONS, n_jobs=n_jobs,
        ).W  # fmt: skip
        kappa = candidate.kappa
        yield candidate, last


class HeldOutTasks(NamedTuple):
    """Held-out tasks: rows of the support divided by c = sqrt(n / m), which makes lam lam n / m."""

    support: Points
    query: Points
    Phi: np.ndarray
    c: np.ndarray

    @classmethod
    def of(cls, points: Points, view: PointSplit, held) -> Self:
        """Return the tasks at positions `held`, with some of their points held out."""
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
        w = batch_tasks(theta, X, y, offsets, lam, loss, ROUGH_TOL, n_jobs, weight)[0] / c
        X, y, offsets, weight = self.query
        task = np.repeat(np.arange(len(c)), np.diff(offsets))
        lost = loss.value(row_scores(X, w, task, n_jobs), y)
        return np.bincount(task, lost if weight is None else weight * lost, len(c))
