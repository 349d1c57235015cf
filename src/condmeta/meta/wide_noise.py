r"""The covariance of a task's labels around their mean, V_t = s2 I + Z_t Z_t^T.

Z_t (n_t, r) has few columns, so that with G_t = I + Z_t^T Z_t / s2

    V_t^-1 = (I - Z_t G_t^-1 Z_t^T / s2) / s2 :

matrices of r x r, whatever the number of rows and columns of the table.
"""

from functools import cached_property
from itertools import pairwise

import numpy as np

from condmeta.inner.squared import SquaredState


class TaskNoise:
    """V of T tasks, all of which have rows: Z (N, r), s2, offsets (T+1,)."""

    def __init__(self, Z: np.ndarray, s2: float, offsets: np.ndarray):
        self.Z, self.s2, self.offsets = Z, s2, offsets
        self.task = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))

    @cached_property
    def roots(self) -> np.ndarray:
        """C_t (T, r, r) with C_t^T C_t = G_t^-1 / s2."""
        r = self.Z.shape[1]
        gram = SquaredState.of(self.Z, np.zeros(len(self.Z)), self.offsets).gram
        G = gram / self.s2 + np.eye(r)
        return np.linalg.inv(np.linalg.cholesky(G)) / np.sqrt(self.s2)

    @cached_property
    def _inward(self) -> np.ndarray:
        """E_t (T, r, r) with V_t^-1/2 = (I - Z_t E_t Z_t^T) / sqrt(s2)."""
        gram = SquaredState.of(self.Z, np.zeros(len(self.Z)), self.offsets).gram
        h, U = np.linalg.eigh(gram / self.s2)
        root = np.sqrt(1 + np.maximum(h, 0.0))
        return (U / (self.s2 * root * (1 + root))[:, None]) @ U.transpose(0, 2, 1)

    def _sums(self, rows: np.ndarray) -> np.ndarray:
        """Return the sums of rows (N, ...) by task (T, ...)."""
        return np.add.reduceat(rows, self.offsets[:-1], axis=0)

    def solve(self, v: np.ndarray) -> np.ndarray:
        """Return V^-1 v (N,)."""
        inside = np.einsum("tij,tj->ti", self.roots, self._sums(self.Z * v[:, None]))
        back = np.einsum("tij,ti->tj", self.roots, inside)
        return (v - np.einsum("ij,ij->i", self.Z, back[self.task])) / self.s2

    def inside(self, X, t: int) -> np.ndarray:
        """Return C_t Z_t^T X_t (r, d): X^T V^-1 X = (X^T X - its square) / s2, for task t."""
        rows = slice(self.offsets[t], self.offsets[t + 1])
        return self.roots[t] @ (X[rows].T @ self.Z[rows]).T

    def whitened(self, X: np.ndarray, t: int) -> np.ndarray:
        """Return V_t^-1/2 X_t (n_t, d) of dense rows, for task t."""
        rows = slice(self.offsets[t], self.offsets[t + 1])
        Z = self.Z[rows]
        return (X[rows] - Z @ (self._inward[t] @ (Z.T @ X[rows]))) / np.sqrt(self.s2)

    def add_to(self, K: np.ndarray) -> np.ndarray:
        """Add V to K (N, N), in place, and return it."""
        for lo, hi in pairwise(self.offsets):
            K[lo:hi, lo:hi] += self.Z[lo:hi] @ self.Z[lo:hi].T
        K.flat[:: len(K) + 1] += self.s2
        return K

    def take(self, rows, offsets) -> "TaskNoise":
        """Return V of some rows, which belong to tasks with these offsets."""
        return TaskNoise(self.Z[rows], self.s2, offsets)
