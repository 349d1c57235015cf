"""The losses by which predictions are judged and combined."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

LEAST_MEAN, LEAST_DENSITY, LEAST_PROBABILITY = 1e-6, 1e-300, 1e-15
SMALLEST_ERROR = 0.02  # of the mean error: a smaller one counts as this


class Criterion(NamedTuple):
    """A loss of predictions, and its quadratic approximation.

    `losses(answers, y)` are the losses (N, C) of C predictions (N, C) of the labels y (N,).
    `scaled_errors(answers, y, w, m)` are E (N, C). Near convex weights w (C,), the loss of the
    combination answers @ v is sum_i m_i (E v)_i^2, but for a constant, a factor and terms of third
    order. m (N,) says how often rows count, None that each counts once. `medians`: the least loss
    is that of medians, not of means. `density`: predictions are densities of the labels, and y is
    not read. `least` is the smallest possible prediction.
    """

    title: str
    losses: Callable
    scaled_errors: Callable
    medians: bool = False
    density: bool = False
    least: float = -np.inf

    def mean(self, answers, y, m=None) -> np.ndarray:
        """Return the mean loss of each candidate (C,)."""
        return np.average(self.losses(answers, y), axis=0, weights=m)


def absolute_sizes(error, m=None) -> np.ndarray:
    """Return |error| (N,), at least a share of its mean: |e| is e^2 / size, for weights of rows."""
    size = np.abs(error)
    return np.maximum(size, SMALLEST_ERROR * np.average(size, weights=m) or 1.0)


def _absolute_errors(answers, y, w, m):
    """|e| <= e^2 / (2 size) + size / 2, with equality at e = size."""
    return (answers - y[:, None]) / np.sqrt(absolute_sizes(answers @ w - y, m))[:, None]


def label_probabilities(answers, y) -> np.ndarray:
    """Return P(label) from the probabilities of +1; y (N,) is -1 or +1."""
    return np.clip(np.where(y[:, None] > 0, answers, 1 - answers), LEAST_PROBABILITY, 1.0)


def log_losses(answers, y) -> np.ndarray:
    """Return -log P(label); answers are probabilities of the label +1, and y is -1 or +1."""
    return -np.log(label_probabilities(answers, y))


def _mixture_errors(likely, w):
    """-log r = (r - 2)^2 / 2 + const to second order at r = 1, for r = likely @ v / likely @ w."""
    return likely / (likely @ w)[:, None] - 2.0


def deviances(answers, y) -> np.ndarray:
    """Return Poisson deviances of predicted means; a mean below `LEAST_MEAN` counts as this."""
    mean = np.maximum(answers, LEAST_MEAN)
    return 2 * (xlogy(y, y)[:, None] - xlogy(y[:, None], mean) - y[:, None] + mean)


def _pearson_errors(answers, y, w, m):
    """Fisher scoring: the expected curvature of the deviance at the mean is 1 / mean."""
    mean = np.maximum(answers, LEAST_MEAN)
    return (mean - y[:, None]) / np.sqrt(mean @ w)[:, None]


def _densities(answers) -> np.ndarray:
    return np.maximum(answers, LEAST_DENSITY)


CRITERIA = {
    "absolute": Criterion(
        "absolute error", lambda p, y: np.abs(p - y[:, None]), _absolute_errors, medians=True
    ),
    "squared": Criterion(
        "squared error",
        lambda p, y: (p - y[:, None]) ** 2,
        lambda p, y, w, m: p - y[:, None],
    ),
    "deviance": Criterion("Poisson deviance", deviances, _pearson_errors, least=0.0),
    "log density": Criterion(
        "minus log density",
        lambda p, y: -np.log(_densities(p)),
        lambda p, y, w, m: _mixture_errors(_densities(p), w),
        density=True,
    ),
}
OF_COUNTS = "deviance", "log density"  # criteria by which counts are judged
LOG_LOSS = Criterion(
    "log loss",
    log_losses,
    lambda p, y, w, m: _mixture_errors(label_probabilities(p, y), w),
)
