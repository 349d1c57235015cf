r"""What labels of ordered classes say about their cuts, for the standard errors of the map.

The map W and the gaps c between the cuts are estimated together. With the scores
s_t = phi_t (x) g_t of W and u_t of c, and the information about both,

    I_Wc = - sum_t phi_t (x) dg_t/dc,   I_cc = - sum_t du_t/dc,

the information about W alone is I_WW - I_Wc I_cc^-1 I_cW, and its scores are
s_t - I_Wc I_cc^-1 u_t. The derivatives are central differences of posteriors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.inner.likelihoods import Ordered
from condmeta.inner.row_posterior import find_posteriors
from condmeta.tasks.points import Points

STEP = 1e-3  # of a gap


class OpenCuts(NamedTuple):
    """Of T tasks and q gaps: minus dg/dc (T, d, q), minus du/dc summed (q, q), scores u (T, q)."""

    slope: np.ndarray
    information: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, points: Points, theta: np.ndarray, factor: np.ndarray, law: Ordered) -> OpenCuts:
        """Compute it at theta (T, d), for weights N(theta, L L^T) with the factor L (d, d)."""

        def derivatives(gaps):
            moved = Ordered(gaps)
            found = find_posteriors(moved, points, theta, factor)
            return found.g, moved.by_gaps(points, found)

        gaps, slopes, information = law.parameter, [], []
        for j, gap in enumerate(gaps):
            step = STEP * gap * (np.arange(len(gaps)) == j)
            (g, u), (less_g, less_u) = derivatives(gaps + step), derivatives(gaps - step)
            slopes.append((less_g - g) / (2 * STEP * gap))
            information.append((less_u - u).sum(axis=0) / (2 * STEP * gap))
        information = np.array(information)
        scores = derivatives(gaps)[1]
        return cls(np.stack(slopes, axis=2), (information + information.T) / 2, scores)

    def take(self, tasks) -> OpenCuts:
        """Return that of some tasks, among which are all with points."""
        return self._replace(slope=self.slope[tasks], scores=self.scores[tasks])

    def taken_out(self, phi, information, scores):
        """Return the information (K d, K d) and the scores (T, K d) or None of W alone."""
        cross = np.einsum("ta,tdq->adq", phi, self.slope).reshape(len(information), -1)
        known = np.linalg.solve(self.information, cross.T)
        return information - cross @ known, None if scores is None else scores - self.scores @ known
