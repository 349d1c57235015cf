"""Features in the coordinates that a ridge on the map is solved in."""

from typing import NamedTuple, Self

import numpy as np

from condmeta.tasks.numbers import power_of_two

MOST_COLUMNS = 2000  # among which copies are looked for


class Rotation(NamedTuple):
    """Put features on one scale, and with more features than tasks keep their row space alone.

    A ridge on M keeps its rows in the span of the training features, so that nothing is lost.

    Attributes
    ----------
    mean, scale : (k,) arrays
    basis : (k, r) array with orthonormal columns, or None for the identity
    """

    mean: np.ndarray
    scale: np.ndarray
    basis: np.ndarray | None

    @classmethod
    def learn(cls, Phi, centre: bool = True) -> Self:
        """Read it off the features of the training tasks (T, k).

        Without `centre` columns are divided by their root mean square, and the mean is zero. If a
        column is there m times, these are divided by sqrt(m): a ridge takes them for one column.
        """
        largest = np.abs(Phi).max(axis=0, initial=0.0)
        unit = power_of_two(largest)  # squares neither overflow nor underflow
        mean = Phi.mean(axis=0) if centre else np.zeros(Phi.shape[1])
        scale = unit * np.sqrt(np.mean(((Phi - mean) / unit) ** 2, axis=0))
        # The spread of a constant column is rounding noise of its size, not exactly zero.
        scale = np.where(scale > 1e-12 * largest, scale, 1.0)
        scale = scale * np.sqrt(_copies((Phi - mean) / scale))
        basis = None
        if Phi.shape[1] > len(Phi):
            basis = np.linalg.svd((Phi - mean) / scale, full_matrices=False)[2].T
        return cls(mean, scale, basis)

    def apply(self, Phi) -> np.ndarray:
        """Return the coordinates (T, r) of features."""
        Z = (Phi - self.mean) / self.scale
        return Z if self.basis is None else Z @ self.basis

    def undo(self, W) -> np.ndarray:
        """Return the map (k+1, d) of features from that of their coordinates (r+1, d)."""
        M = W[:-1] if self.basis is None else self.basis @ W[:-1]
        M = M / self.scale[:, None]
        return np.vstack([M, W[-1] - self.mean @ M])


def _copies(Z) -> np.ndarray:
    """Return how many columns of Z (T, k), in units of their size, equal each one up to sign."""
    if not 1 < Z.shape[1] <= MOST_COLUMNS:
        return np.ones(Z.shape[1])
    alike = np.abs(Z.T @ Z) > (1 - 1e-9) * len(Z)
    return np.maximum(alike.sum(axis=0), 1)
