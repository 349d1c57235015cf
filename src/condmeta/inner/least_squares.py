r"""A task's own least-squares estimate, where its points determine it.

With S = X^T X = V diag(l) V^T and P the projection on the eigenvectors of non-zero l, the estimate
of least norm is w = S^+ X^T y. A linear function <c, w> of the weights is determined by the points
if and only if P c = c.
"""

import numpy as np

from condmeta.inner.squared import SquaredState

SMALLEST = 1e-11  # of the largest eigenvalue: below this a direction has no data
APART = 1e-5  # of ||c||: P c differs from c


def least_squares(stats: SquaredState, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return estimates (T, d), and which rows of C (m, d) each task determines (T, m).

    Statistics beyond the range of floating-point numbers determine nothing.
    """
    fine = np.isfinite(stats.gram).all(axis=(1, 2), keepdims=True)
    values, vectors = np.linalg.eigh(np.where(fine, stats.gram, 0.0))
    there = values > SMALLEST * np.maximum(values[:, -1:], 1e-300)
    inverse = np.where(there, 1.0 / np.where(there, values, 1.0), 0.0)
    moments = np.einsum("tij,ti->tj", vectors, stats.moment)
    w = np.einsum("tij,tj->ti", vectors, inverse * moments)
    away = np.einsum("mi,tij->tmj", C, vectors) * ~there[:, None, :]
    norms = np.linalg.norm(C, axis=1)
    return w, np.linalg.norm(away, axis=2) <= APART * np.where(norms > 0, norms, 1.0)
