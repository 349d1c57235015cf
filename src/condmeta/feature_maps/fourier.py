"""Random Fourier features, which maps of tables and maps of points share."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.splits import make_generator


class Fourier:
    """Draw random Fourier features phi(x) = sqrt(2/k) cos(U x + v)."""

    def __init__(self, n_features: int = 100, std: float = 1.0, random_state: Any = None):
        self.n_features = n_features
        self.std = std
        self.random_state = random_state

    def _draw(self, n_columns: int) -> None:
        name = type(self).__name__
        if not isinstance(self.n_features, Integral) or self.n_features < 1:
            raise DataError(
                f"The 'n_features' parameter of {name} must be an int in [1, inf). "
                f"Got {self.n_features!r} instead."
            )
        if not isinstance(self.std, Real) or not 0 < self.std < np.inf:
            raise DataError(
                f"The 'std' parameter of {name} must be a float in (0, inf). "
                f"Got {self.std!r} instead."
            )
        rng = make_generator(self.random_state)
        self.U_ = rng.normal(0.0, self.std, size=(self.n_features, n_columns))
        self.v_ = rng.uniform(0.0, 2 * np.pi, size=self.n_features)

    def _phi(self, X: np.ndarray) -> np.ndarray:
        phi = X @ self.U_.T  # in place from here on: the cosines are most of the work
        phi += self.v_
        np.cos(phi, out=phi)
        phi *= np.sqrt(2.0 / self.v_.size)
        return phi
