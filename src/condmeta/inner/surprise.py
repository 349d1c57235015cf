r"""How far new points of a task are from what its posterior expects.

Given w ~ N(m, P) and noise s2, the residuals r = y - X m of new points have the covariance

    V = s2 I + X P X^T,

so that q = r^T V^-1 r has the chi-squared distribution with n degrees of freedom; points of one
task share its weights, which is why their residuals are not independent. With P = C C^T, S = X^T X
and e = X^T r,

    q = (r^T r - e^T C (s2 I + C^T S C)^-1 C^T e) / s2,   E r^T r = n s2 + tr(S P).

Where a task has a noise of its own, found with nu residuals, q / n has the F distribution with n
and nu degrees of freedom.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats as distributions

from condmeta.inner.posterior import PRIOR_POINTS, Gaussian, precision
from condmeta.inner.squared import SquaredState


class Surprise(NamedTuple):
    """Of T tasks: p (T,), how likely such residuals or larger ones are; expected r^T r / n (T,)."""

    p: np.ndarray
    expected: np.ndarray


def surprise(
    inner: Gaussian, before: SquaredState, theta: np.ndarray, new: SquaredState, room=1.0
) -> Surprise:
    """Judge new points of T tasks with `before` behind their posterior, started at theta (T, d).

    `new` holds the statistics of the new rows and their residuals off the posterior mean; `room`
    (T,) is what V is multiplied by, as it was learned and may be too small.
    """
    n = new.count
    s2 = inner.posterior(before, theta).s2
    lower = np.linalg.cholesky(precision(before.gram, inner.factor, s2))
    C = np.swapaxes(np.linalg.solve(lower, np.broadcast_to(inner.factor.T, lower.shape)), 1, 2)
    inside = np.swapaxes(C, 1, 2) @ new.gram @ C  # C^T S C, with the trace of S P
    spread = np.einsum("tii->t", inside)
    inside[:, np.arange(len(inner.factor)), np.arange(len(inner.factor))] += s2[:, None]
    Ce = np.einsum("tij,ti->tj", C, new.moment)
    explained = np.einsum("ti,ti->t", Ce, np.linalg.solve(inside, Ce[:, :, None])[:, :, 0])
    q = np.maximum(new.square - explained, 0.0) / (s2 * room)
    if inner.own_noise:
        p = distributions.f.sf(q / n, n, before.count + PRIOR_POINTS)
    else:
        p = distributions.chi2.sf(q, n)
    return Surprise(p, s2 + spread / n)
