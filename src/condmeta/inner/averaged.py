r"""The logistic loss averaged over a normal distribution of f: f ~ N(m, v).

    s(f) = 1 / (1 + exp(-f)) = sum_k a_k Phi(b_k f) + an error below 3e-9,
    E[s(f)] = sum_k a_k Phi(m / c_k),   c_k^2 = 1 / b_k^2 + v,

with the eight terms of Monahan and Stefanski (1992). E[log(1 + exp(f))] and E[s'(f)] are its
integral and derivative by m, with errors below 2e-8. This holds for every v; a quadrature in f
would need more nodes for larger v.
"""

import numpy as np
from scipy.special import ndtr

SHARES = (
    0.00324634, 0.05151748, 0.19507791, 0.31556982, 0.27414958, 0.13107688, 0.02791242, 0.00144957,
)  # fmt: skip
RATES = (
    1.36534081, 1.05952397, 0.83079131, 0.65073217, 0.50813543, 0.39631335, 0.30890425, 0.23821262,
)  # fmt: skip


def averaged_loss(mean, variance) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return E[log(1 + exp(f))], E[s(f)] and E[s'(f)] of f ~ N(mean, variance)."""
    loss, slope, curvature = np.zeros((3, *np.shape(mean)))
    for share, rate in zip(SHARES, RATES, strict=True):
        spread = np.sqrt(1 / rate**2 + variance)
        t = mean / spread
        below, density = share * ndtr(t), share * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
        loss += mean * below + spread * density
        slope += below
        curvature += density / spread
    return loss, slope, curvature


def averaged_logistic(mean, variance) -> np.ndarray:
    """Return E[s(f)] of f ~ N(mean, variance), arrays of one shape; 0 only where s(mean) is 0."""
    size = -np.abs(mean)  # compute the smaller of the two probabilities: it is not rounded away
    less = averaged_loss(size, variance)[1]
    # Averaging moves a probability towards 1/2. Far out the terms give less than s(mean).
    less = np.maximum(less, np.exp(-np.logaddexp(0.0, -size)))
    return np.where(mean > 0, 1 - less, less)
