"""Logarithms of root mean square errors of tasks: few rows make them smaller and scatter them."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, polygamma


def log_root_mean_square(n) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of log sqrt(mean of n squares) of standard normal numbers."""
    return 0.5 * (digamma(n / 2) - np.log(n / 2)), 0.25 * polygamma(1, n / 2)


def of_many_rows(logs: np.ndarray, n: np.ndarray) -> tuple[float, float]:
    """Return mean and variance of the logs (T,) of tasks, had they very many rows and not n (T,).

    What few rows add to either is taken off, as far as errors are normal. The variance of one task
    is infinite.
    """
    shift, noise = log_root_mean_square(n)
    off = logs - shift
    variance = max(off.var(ddof=1) - noise.mean(), 0.0) if len(off) > 1 else np.inf
    return float(off.mean()), float(variance)
