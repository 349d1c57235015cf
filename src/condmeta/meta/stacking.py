"""The best candidate, or the best convex combination of candidates, on held-out tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

HALVES = 2
LEAST = 0.05  # a smaller share is not worth a model
STEPS = 500  # of the weights of probabilities; they are few, and rough ones do


class Criterion(NamedTuple):
    """How answers (N, C) to targets y (N,) are judged, and the convex weights that suit it.

    Rows count m (N,) times, or once if m is None.
    """

    title: str
    losses: Callable
    weights: Callable

    def mean(self, answers, y, m=None) -> np.ndarray:
        """Return the mean loss of each candidate (C,)."""
        return np.average(self.losses(answers, y), axis=0, weights=m)


def best_weights(answers, y, task, criterion: Criterion, m=None) -> np.ndarray:
    """Return convex weights (C,) of candidates from what they said of held-out rows.

    answers (N, C); y (N,); task (N,) int. One candidate takes all unless the combination, fitted
    to one half of the tasks and judged by the other, is better than the best candidate.
    """
    errors = criterion.mean(answers, y, m)
    alone = np.eye(len(errors))[int(np.argmin(errors))]
    half = np.unique(task, return_inverse=True)[1] % HALVES
    if len(errors) == 1 or len(np.unique(half)) < HALVES:
        return alone
    judged = 0.0
    for h in range(HALVES):
        other = half == h
        here, there = (None, None) if m is None else (m[other], m[~other])
        mixed = answers[other] @ criterion.weights(answers[~other], y[~other], there)
        lost = criterion.losses(mixed[:, None], y[other])[:, 0]
        judged += float(np.sum(lost if here is None else here * lost))
    count = len(y) if m is None else m.sum()
    return criterion.weights(answers, y, m) if judged / count < errors.min() else alone


def convex_weights(answers, y, m=None) -> np.ndarray:
    """Return the weights of least squared error that are not negative and sum to one."""
    from scipy.optimize import nnls  # slow to import

    # The constraint as a heavy further row; the normal equations keep the problem small.
    errors = answers - y[:, None]
    errors = errors if m is None else np.sqrt(m / m.mean())[:, None] * errors
    scale = np.sqrt(np.mean(errors**2)) or 1.0
    heavy = 1e4 * np.sqrt(len(y))
    rows = np.vstack([errors / scale, np.full(answers.shape[1], heavy)])
    weights, _ = nnls(rows, np.append(np.zeros(len(y)), heavy))
    return _without_crumbs(weights)


def mixture_weights(answers, y, m=None) -> np.ndarray:
    """Return the convex weights of least log loss, by EM, which never raises it."""
    likely = _of_the_label(answers, y)
    weights = np.full(answers.shape[1], 1 / answers.shape[1])
    for _ in range(STEPS):
        share = likely / (likely @ weights)[:, None]
        weights = weights * np.average(share, axis=0, weights=m)
    return _without_crumbs(weights)


def log_losses(answers, y) -> np.ndarray:
    """Return -log P(label) where answers are probabilities of the label +1, and y is -1 or +1."""
    return -np.log(_of_the_label(answers, y))


def _of_the_label(answers, y) -> np.ndarray:
    return np.clip(np.where(y[:, None] > 0, answers, 1 - answers), 1e-15, 1.0)


def _without_crumbs(weights) -> np.ndarray:
    weights = np.where(weights < LEAST * weights.sum(), 0.0, weights)
    return weights / weights.sum()


CRITERIA = {
    "absolute": Criterion("absolute error", lambda p, y: np.abs(p - y[:, None]), convex_weights),
    "squared": Criterion("squared error", lambda p, y: (p - y[:, None]) ** 2, convex_weights),
}
LOG_LOSS = Criterion("log loss", log_losses, mixture_weights)
