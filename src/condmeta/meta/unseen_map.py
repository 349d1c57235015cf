r"""How far the map's theta of a task that it has not seen may be off, because W was estimated.

With the information I(W) of `meta.map_covariance`, V_t = cov(theta_t) = (phi_t (x) I)^T I(W)^-1
(phi_t (x) I), and Lambda_t what task t adds to I(W), the covariance of theta_t from a map learned
without task t is by Woodbury's formula

    C_t = (I - V_t Lambda_t)^-1 V_t.

A new task has w ~ N(W phi, H + C). We use the mean of C_t over the training tasks for all.
"""

import numpy as np

from condmeta.inner.squared import SquaredState
from condmeta.meta.blocks import with_one
from condmeta.meta.map_covariance import information_of_theta, map_covariance

MOST_DETERMINED = 0.9  # share of what is known of theta_t that may come from task t itself


def unseen_covariance(stats: SquaredState, Phi, theta, factor, s2, kappa: float) -> np.ndarray:
    """Return the mean over tasks of C_t (d, d), arguments as in `map_covariance`.

    Zero for a single task: there is no other to learn from.
    """
    if len(Phi) == 1:
        return np.zeros_like(factor)
    of_theta = map_covariance(stats, Phi, theta, factor, s2, kappa, robust=False)
    V = of_theta.of_theta(with_one(Phi))
    known = information_of_theta(stats.gram, factor, s2)
    # With R R^T = V: C = R (I - R^T Lambda R)^-1 R^T, symmetric as it stands.
    values, vectors = np.linalg.eigh(V)
    R = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    share, axes = np.linalg.eigh(np.swapaxes(R, 1, 2) @ known @ R)
    root = R @ axes / np.sqrt(1 - np.minimum(share, MOST_DETERMINED))[:, None, :]
    return (root @ np.swapaxes(root, 1, 2)).mean(axis=0)
