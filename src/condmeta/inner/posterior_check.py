r"""Test whether new points of a task agree with its posterior.

Given w ~ N(m, P) and noise s2, the residuals r = y - X m of new points have the covariance

    V = s2 I + X P X^T,

and q = r^T V^-1 r has the chi-squared distribution with n degrees of freedom. The residuals are not
independent, because the points of a task share its weights. With S = X^T X and e = X^T r,

    q = (r^T r - e^T P (s2 I + S P)^-1 e) / s2,   E r^T r = n s2 + tr(S P).

If a task has a noise of its own, estimated from nu residuals, q / n has the F distribution with n
and nu degrees of freedom. The same is used for noise with Student's t distribution: it is exact for
one point, and allows more than independent noise for several.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import stats as distributions

from condmeta.inner.posterior import PRIOR_POINTS
from condmeta.inner.squared import SquaredState


class PosteriorCheck(NamedTuple):
    """For T tasks: p (T,), the p-value of the residuals, and the expected r^T r / n (T,)."""

    p: np.ndarray
    expected: np.ndarray


def check_posterior(
    inner: Any, before: Any, theta: np.ndarray, new: SquaredState, room=1.0
) -> PosteriorCheck:
    """Compare new points of T tasks with the posteriors that `before` gives, from theta (T, d).

    inner : Gaussian or NestedGaussian
    before : its state, with the points that the posteriors are computed from
    new : statistics of the new rows and of their residuals from the posterior mean
    room : (T,) factor of V, which was learned and may be too small
    """
    n = new.count
    s2, nu = inner.posterior(before, theta).s2, getattr(inner, "nu", None)
    P = inner.covariances(before, theta)
    system = new.gram @ P
    spread = np.einsum("tii->t", system)
    system = system + s2[:, None, None] * np.eye(theta.shape[1])
    pulled = np.linalg.solve(system, new.moment[:, :, None])
    explained = np.einsum("ti,tij,tj->t", new.moment, P, pulled[:, :, 0])
    q = np.maximum(new.square - explained, 0.0) / (s2 * room)
    if nu is not None:
        return PosteriorCheck(distributions.f.sf(q / n, n, nu), s2 * nu / (nu - 2) + spread / n)
    if inner.own_noise:
        p = distributions.f.sf(q / n, n, before.count + PRIOR_POINTS)
    else:
        p = distributions.chi2.sf(q, n)
    return PosteriorCheck(p, s2 + spread / n)
