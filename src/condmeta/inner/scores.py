"""Predictions of many rows, each by the weights of its task."""

import numpy as np

from condmeta.engine import twin

BLOCK = 1 << 14  # rows whose weights are gathered at once


@twin
def row_scores(X, weights, codes, n_jobs):
    """Return <x_i, weights[codes_i]> for each row i, (N,).

    X (N, d); weights (T, d); codes (N,), positions of rows of `weights`.
    """
    if len(codes) and not 0 <= codes.min() <= codes.max() < len(weights):
        raise ValueError("'codes' must be positions of rows of 'weights'.")
    scores = np.empty(len(X))
    for lo in range(0, len(X), BLOCK):
        rows = slice(lo, lo + BLOCK)
        scores[rows] = np.einsum("ij,ij->i", X[rows], weights[codes[rows]])
    return scores


def task_scores(X, theta, offsets) -> np.ndarray:
    """Return <x, theta_t> of the rows of each task (N,): X (N, d) may be sparse, theta (T, d)."""
    scores = np.empty(X.shape[0])
    for t in np.flatnonzero(np.diff(offsets)):
        rows = slice(offsets[t], offsets[t + 1])
        scores[rows] = X[rows] @ theta[t]
    return scores
