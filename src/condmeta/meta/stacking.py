"""The best candidate, or the best convex combination of candidates, on held-out tasks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

HALVES = 2
LEAST = 0.05  # a smaller share is not worth a model


def best_weights(answers, y, task, loss: Callable) -> np.ndarray:
    """Return convex weights (C,) of candidates from what they said of held-out rows.

    answers (N, C); y (N,); task (N,) int; loss: of errors, elementwise. One candidate takes all
    unless the combination, fitted to one half of the tasks and judged by the other, is better
    than the best candidate.
    """
    errors = loss(answers - y[:, None]).mean(axis=0)
    alone = np.eye(len(errors))[int(np.argmin(errors))]
    half = np.unique(task, return_inverse=True)[1] % HALVES
    if len(errors) == 1 or len(np.unique(half)) < HALVES:
        return alone
    judged = 0.0
    for h in range(HALVES):
        other = half == h
        weights = convex_weights(answers[~other], y[~other])
        judged += float(loss(answers[other] @ weights - y[other]).sum())
    return convex_weights(answers, y) if judged / len(y) < errors.min() else alone


def convex_weights(answers, y) -> np.ndarray:
    """Return the weights of least squared error that are not negative and sum to one."""
    from scipy.optimize import nnls  # slow to import

    # The constraint as a heavy further row; the normal equations keep the problem small.
    scale = np.sqrt(np.mean((answers - y[:, None]) ** 2)) or 1.0
    heavy = 1e4 * np.sqrt(len(y))
    rows = np.vstack([(answers - y[:, None]) / scale, np.full(answers.shape[1], heavy)])
    weights, _ = nnls(rows, np.append(np.zeros(len(y)), heavy))
    weights[weights < LEAST * weights.sum()] = 0.0
    return weights / weights.sum()
