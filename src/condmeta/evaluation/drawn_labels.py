"""Losses that a model of counts or of ordered classes expects of labels drawn from itself.

Weights are drawn from the posterior of each task, labels given these; the loss of a drawn label is
computed as that of a true one. For counts it is the deviance of a negative binomial law that has
the predicted mean and variance, for ordered classes the log loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from condmeta.fitted.known_statistics import covariances
from condmeta.inner.posterior import lower_root
from condmeta.learners.inputs import read_rows
from condmeta.tasks import TaskSet
from condmeta.tasks.weights import row_sizes

DRAWS = 400  # draws of the labels of a task
LARGEST = 1e15  # rate of which a count is drawn


class DrawnLosses(NamedTuple):
    """Losses of the rows (N,), and `draw(t, at, rng)`: mean losses (DRAWS,) of drawn labels."""

    found: np.ndarray
    draw: Callable[[int, slice, Any], np.ndarray]


def score_drawer(learner: Any, tasks: TaskSet, given: dict[str, Any]):
    """Return a function that draws scores (n, DRAWS) of the rows of task t, weights uncertain."""
    fitted = learner.fitted_
    codes = np.repeat(np.arange(len(tasks)), tasks.sizes)
    rows = fitted.predictor.rows(tasks.X, codes, fitted.shared_sides(tasks.ids, tasks.side))
    read = read_rows(learner, fitted, tasks, None, given.get("side_info"))
    covariance = covariances(fitted, read).covariance
    scores = fitted.scores(read._replace(restore=np.asarray))

    def draw(t: int, at: slice, rng: Any) -> np.ndarray:
        noise = rng.standard_normal((rows.shape[1], DRAWS))
        return scores[at, None] + rows[at] @ (lower_root(covariance[t]) @ noise)

    return draw


def count_losses(learner: Any, tasks: TaskSet, given: dict[str, Any]) -> DrawnLosses:
    """Return the deviances of `ConditionalCount`."""
    fitted, exposure = learner.fitted_, row_sizes(tasks.weight, len(tasks.X))
    read = read_rows(learner, fitted, tasks, None, given.get("side_info"))
    counts = fitted.count_distribution(read._replace(restore=np.asarray)).with_exposure(exposure)
    mean = np.maximum(counts.mean, 1e-300)
    spread = np.maximum((counts.std / mean) ** 2 - 1 / mean, counts.alpha)  # Var = mu + spread mu^2
    scores, alpha = score_drawer(learner, tasks, given), fitted.inner.alpha

    def draw(t: int, at: slice, rng: Any) -> np.ndarray:
        rate = exposure[at, None] * np.exp(np.minimum(scores(t, at, rng), 700.0))
        rate = rate * rng.gamma(1 / alpha, alpha, size=rate.shape)
        y = rng.poisson(np.minimum(rate, LARGEST)).astype(float)
        return deviance(y, mean[at, None], spread[at, None]).mean(axis=0)

    return DrawnLosses(deviance(tasks.y, mean, spread), draw)


def deviance(y: Any, mean: Any, alpha: Any) -> np.ndarray:
    """Return the deviance of counts from negative binomial laws."""
    r = 1 / alpha
    return 2 * (xlogy(y, y) - xlogy(y, mean) - (y + r) * (np.log(y + r) - np.log(mean + r)))


def class_losses(learner: Any, tasks: TaskSet, given: dict[str, Any]) -> DrawnLosses:
    """Return the log losses of classes without order; labels are drawn from their probabilities."""
    chances = learner.predict_proba(tasks, **given)
    log_chances = np.log(np.maximum(chances, 1e-12))
    upto = chances.cumsum(axis=1)[:, :-1]

    def draw(t: int, at: slice, rng: Any) -> np.ndarray:
        y = (rng.random((at.stop - at.start, DRAWS))[..., None] > upto[at, None]).sum(axis=2)
        return -np.take_along_axis(log_chances[at], y, axis=1).mean(axis=0)

    codes = tasks.y.astype(np.int64)
    return DrawnLosses(-log_chances[np.arange(len(codes)), codes], draw)


def ordinal_losses(learner: Any, tasks: TaskSet, given: dict[str, Any]) -> DrawnLosses:
    """Return the log losses of `ConditionalOrdinal`; labels are numbers of classes."""
    fitted = learner.fitted_
    law, scores = fitted.inner.likelihood, score_drawer(learner, tasks, given)
    read = read_rows(learner, fitted, tasks, None, given.get("side_info"))
    chances = fitted.predict_proba(read._replace(restore=np.asarray))
    log_chances = np.log(np.maximum(chances, 1e-12))

    def draw(t: int, at: slice, rng: Any) -> np.ndarray:
        f = scores(t, at, rng) + rng.logistic(size=(at.stop - at.start, DRAWS))
        y = np.searchsorted(law.cuts, f)
        return -np.take_along_axis(log_chances[at], y, axis=1).mean(axis=0)

    codes = law.codes(tasks.y)
    return DrawnLosses(-log_chances[np.arange(len(codes)), codes], draw)
