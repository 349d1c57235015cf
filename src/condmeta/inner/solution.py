"""The result of one inner run, and the objective and dual value that certify it."""

from typing import NamedTuple

import numpy as np

from condmeta.errors import DataError


class Solution(NamedTuple):
    """The outcome of one inner run A(theta, Z).

    Attributes
    ----------
    coef : (d,) array
        The returned weight vector A(theta, Z).
    last : (d,) array
        The last iterate, theta - gradient / lam.
    gradient : (d,) array
        The meta-gradient (1/n) sum_i a_i x_i, an eps-subgradient of the meta-loss at theta.
    slopes : (n,) array
        The dual point a, one slope of the loss for each point.
    primal, dual, gap : float
        Objective at `coef`, dual value D(a), and their difference, which bounds eps.
    """

    coef: np.ndarray
    last: np.ndarray
    gradient: np.ndarray
    slopes: np.ndarray
    primal: float
    dual: float
    gap: float


def objective(w, theta, X, y, lam, loss, m=1.0) -> float:
    """Return (1/n) sum_i l(<x_i, w>, y_i) + lam/2 ||w - theta||^2; points count m (n,) times."""
    m = np.broadcast_to(m, y.shape)
    mean = np.sum(m * loss.value(X @ w, y)) / m.sum()
    return float(mean + lam / 2 * np.sum((w - theta) ** 2))


def dual_value(a, theta, X, y, lam, loss) -> float:
    """Return D(a) = <g, theta> - ||g||^2 / (2 lam) - (1/n) sum_i l*(a_i), g = X^T a / n."""
    g = X.T @ a / len(y)
    return float(g @ theta - g @ g / (2 * lam) - np.mean(loss.conjugate(a, y)))


def check_inputs(theta, X, y, lam) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of one inner run as float64, or raise if their shapes do not fit."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    y = np.ascontiguousarray(y, dtype=np.float64)
    if X.ndim != 2 or y.shape != (len(X),) or len(y) == 0:
        raise DataError(
            f"An inner algorithm takes X of shape (n, d) and y of shape (n,), n >= 1. "
            f"Got {X.shape} and {y.shape} instead."
        )
    theta = np.ascontiguousarray(np.broadcast_to(np.asarray(theta, float), X.shape[1:]))
    if not lam > 0:
        raise DataError(f"The 'lam' parameter must be a float in (0, inf). Got {lam!r} instead.")
    return theta, X, y
