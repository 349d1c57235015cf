"""Rows of many columns, dense or sparse, with the features of their tasks."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse

from condmeta.tasks.splits import task_rows

SAMPLE_ROWS = 1200  # rows that settings are chosen on
SAMPLE_TASKS = 40  # among which they are divided, at least


class WideRows:
    """Rows of T tasks, all of which have some.

    X (N, d), dense or sparse, without a column for the intercept; offsets (T+1,); Phi (T, k), the
    standardised features z_t of the side information.
    """

    def __init__(self, X: Any, offsets: np.ndarray, Phi: np.ndarray):
        self.X, self.offsets, self.Phi = X, offsets, Phi
        self.task = np.repeat(np.arange(len(Phi)), np.diff(offsets))

    @cached_property
    def products(self) -> np.ndarray:
        """<x_i, x_j> (N, N)."""
        K = self.X @ self.X.T
        return K.toarray() if issparse(K) else K

    def kernel(self, c: float) -> np.ndarray:
        """Return K_ij = <x_i, x_j> (1 + c <z_i, z_j>) (N, N), a new array."""
        if not c:
            return self.products.copy()
        return self.products * (1 + c * (self.Phi @ self.Phi.T))[self.task][:, self.task]

    def features(self, c: float) -> np.ndarray:
        """Return (1, sqrt(c) z_t) of the tasks (T, k+1), or (T, 1) if c is zero."""
        ones = np.ones((len(self.Phi), 1))
        return np.hstack([ones, np.sqrt(c) * self.Phi]) if c else ones

    def take(self, at: np.ndarray) -> tuple[WideRows, Any]:
        """Return the tasks at positions `at`, and the positions of their rows."""
        rows, offsets = task_rows(self.offsets, at)
        return WideRows(self.X[rows], offsets, self.Phi[at]), rows

    def sample(self) -> tuple[WideRows, np.ndarray]:
        """Return the first rows of the first tasks, and the positions of these rows."""
        sizes = np.diff(self.offsets)
        kept = np.minimum(sizes, max(SAMPLE_ROWS // min(len(sizes), SAMPLE_TASKS), 2))
        kept = kept[: max(int(np.searchsorted(np.cumsum(kept), SAMPLE_ROWS, side="right")), 2)]
        offsets = np.append(0, np.cumsum(kept))
        rows = np.repeat(self.offsets[: len(kept)] - offsets[:-1], kept) + np.arange(offsets[-1])
        return WideRows(self.X[rows], offsets, self.Phi[: len(kept)]), rows


def times(X, weight):
    """Return the rows of X, dense or sparse, each times its weight (N,)."""
    return X.multiply(weight[:, None]).tocsr() if issparse(X) else X * weight[:, None]
