r"""What the uncertainty of an estimated prior adds to the covariance of a new task's weights.

The map W has been estimated from T tasks, each with the information Lambda_t about its theta_t (see
`meta.map_covariance`). With Lambda the mean of these and standardised features z_t (r,), the
information about W is about sum_t phi_t phi_t^T (x) Lambda, so that the covariance of theta at a
task like the others is

    E_t phi_t^T (sum_s phi_s phi_s^T + kappa)^-1 phi_t Lambda^-1 = (df / T) Lambda^-1,
    df = 1 + r T / (T + kappa),

the share of T tasks that the map uses up. Maximum likelihood makes H too small by the same share:
its expectation is about H (T - df) / T. Both together,

    U = (df / T) Lambda^-1 + df / (T - df) H,

change the covariance P = (H^-1 + B)^-1 of the weights given points with B = X^T X / s2 by K U K^T,
K = P H^-1 = I - P B, to first order (exactly, for the part of the map).
"""

import numpy as np

from condmeta.inner.squared import SquaredState
from condmeta.meta.map_covariance import information_of_theta
from condmeta.meta.prior import Prior


def open_covariance(stats: SquaredState, r: int, prior: Prior, kappa: float, T: int) -> np.ndarray:
    """Return U (d, d), with Lambda from tasks of a sample; zero for a single task.

    r is the number of features, T the number of tasks that the prior was learned from.
    """
    if T <= 1:
        return np.zeros_like(prior.H)
    df = 1.0 if np.isinf(kappa) else 1 + r * T / (T + kappa)
    known = information_of_theta(stats.gram, prior.L, np.full(len(stats.count), prior.s2))
    unknown = np.linalg.pinv(known.mean(axis=0), hermitian=True)
    return df / T * unknown + df / max(T - df, 1.0) * prior.H
