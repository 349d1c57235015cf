"""Own estimates of tasks, against the pseudo-inverse of their rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from condmeta.inner.least_squares import least_squares
from condmeta.inner.squared import SquaredState


def test_estimates_are_those_of_the_pseudo_inverse():
    rng = np.random.default_rng(0)
    X, y, offsets = rng.normal(size=(11, 3)), rng.normal(size=11), np.array([0, 6, 8, 11, 11])
    X[8:, 2] = 2 * X[8:, 1]  # the third task: rank two
    C = np.vstack([np.eye(3), [0.0, 1.0, 2.0]])
    w, determined = least_squares(SquaredState.of(X, y, offsets), C)
    for t, (lo, hi) in enumerate(pairwise(offsets)):
        inverse = np.linalg.pinv(X[lo:hi])
        np.testing.assert_allclose(w[t], inverse @ y[lo:hi], atol=1e-8)
        known = np.abs(C - C @ (inverse @ X[lo:hi])).max(axis=1) < 1e-8
        assert determined[t].tolist() == known.tolist()
    assert determined[2].tolist() == [True, False, False, True]
