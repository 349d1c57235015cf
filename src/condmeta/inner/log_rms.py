"""Logarithms of tasks' root mean square errors: with few rows they are smaller, and scattered."""

import numpy as np
from scipy.special import digamma, polygamma


def log_rms_moments(n) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of log sqrt(mean of n squares) of standard normal numbers."""
    return 0.5 * (digamma(n / 2) - np.log(n / 2)), 0.25 * polygamma(1, n / 2)


def denoised_moments(logs: np.ndarray, n: np.ndarray) -> tuple[float, float]:
    """Return mean and variance over tasks of log root mean square errors, without sampling noise.

    logs (T,) come from n (T,) rows each. The result estimates both for tasks with very many rows,
    if errors are normal. The variance of one task alone is infinite.
    """
    shift, noise = log_rms_moments(n)
    off = logs - shift
    variance = max(off.var(ddof=1) - noise.mean(), 0.0) if len(off) > 1 else np.inf
    return float(off.mean()), float(variance)
