"""The posterior of weights from estimates: as from labels, but predictions have no label noise.

An estimate b with covariance C has the statistics S = C^-1 and c = C^-1 b of rows whose noise has
the variance 1. <x, w> of such a task is an effect, not a label: its variance is x^T P x.
"""

from __future__ import annotations

import numpy as np

from condmeta.inner.posterior import Gaussian
from condmeta.inner.squared import SquaredState
from condmeta.persistence.fields import FLAG, floats, number
from condmeta.persistence.registry import construct, register


@register(
    restore=construct,
    fields={"factor": floats("d d"), "s2": number(above=0), "own_noise": FLAG},
)
class GaussianOfEstimates(Gaussian):
    """The inner algorithm of `Shrinkage`; parameters as for `Gaussian`."""

    def spread(self, state: SquaredState, theta, rows, codes, precisions=1.0) -> np.ndarray:
        """Return the standard deviation of <x, w> at rows (N, d)."""
        return super().spread(state, theta, rows, codes, np.inf)

    def label_covariances(self, state: SquaredState, theta) -> tuple[np.ndarray, np.ndarray]:
        """Return P (T, d, d), and a noise of zero (T,)."""
        return self.covariances(state, theta), np.zeros(len(theta))
