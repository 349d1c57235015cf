r"""Likelihoods of one row averaged over a normal f, by quadrature around the mode.

    log E[exp(a (f - e) - b softplus(f - e))],   f ~ N(m, v).

The logarithm of the integrand is concave. Gauss-Hermite nodes are laid around its mode, with its
curvature there: a plain rule over N(m, v) would miss the narrow likelihood of a large count.
"""

import numpy as np
from scipy.special import expit

NODES, WEIGHTS = np.polynomial.hermite.hermgauss(30)
NEWTON_STEPS = 50
LONGEST = 3.0  # change of f in one step
BLOCK = 1 << 20  # numbers in the largest temporary


def log_average(a, b, e, mean, variance) -> np.ndarray:
    """Return the logarithms of the averages (N,), from arrays (N,); a variance may be 0."""
    a, b, e, mean, variance = np.broadcast_arrays(a, b, e, mean, variance)
    out, block = np.empty(len(mean)), BLOCK // len(NODES)
    for lo in range(0, len(mean), block):
        at = slice(lo, lo + block)
        out[at] = _log_average(a[at], b[at], mean[at] - e[at], variance[at])
    return out


def _log_average(a, b, mean, variance) -> np.ndarray:
    sd = np.sqrt(np.maximum(variance, 1e-16))
    t = _mode(a, b, mean, sd)
    curvature = 1 + sd**2 * b * _slope(mean + sd * t)
    width = np.sqrt(2 / curvature)
    t = t[:, None] + width[:, None] * NODES
    f = mean[:, None] + sd[:, None] * t
    value = a[:, None] * f - b[:, None] * np.logaddexp(0.0, f) - t**2 / 2 + NODES**2
    top = value.max(axis=1, keepdims=True)
    total = np.exp(value - top) @ WEIGHTS
    return top[:, 0] + np.log(total * width / np.sqrt(2 * np.pi))


def _mode(a, b, mean, sd) -> np.ndarray:
    """Return t at the maximum of a f - b softplus(f) - t^2 / 2, f = mean + sd t, by Newton."""
    t = np.zeros(len(mean))
    for _ in range(NEWTON_STEPS):
        f = mean + sd * t
        step = (sd * (a - b * expit(f)) - t) / (1 + sd**2 * b * _slope(f))
        # Far out softplus is flat or linear, and a full step would leap over the mode.
        longest = LONGEST / np.maximum(sd, 1e-8)
        step = np.clip(step, -longest, longest)
        t = t + step
        if np.abs(step).max(initial=0.0) < 1e-8:
            break
    return t


def _slope(f) -> np.ndarray:
    return expit(f) * expit(-f)
