"""Means and covariances of weights and side features, in closed form or from a sample."""

from typing import Any, NamedTuple

import numpy as np

from condmeta.feature_maps import CircleMap, MeanInput
from condmeta.paper.environments import Circle, Clusters


class Moments(NamedTuple):
    """Hold the means and covariances of (w, Phi); over a sample of N the divisor is N.

    Attributes
    ----------
    w_rho, nu : (d,) and (k,) arrays
        E w and E Phi.
    Cww, Cws, Css : (d, d), (d, k) and (k, k) arrays
        Covariances of the weights, of weights and features, and of the features.

    Examples
    --------
    >>> from condmeta.paper.theory.moments import sample_moments
    >>> import numpy as np
    >>> sample_moments(np.array([[0.0], [2.0]]), np.array([[1.0], [3.0]]), np.full(2, 0.5)).Cws
    array([[1.]])
    """

    w_rho: np.ndarray
    nu: np.ndarray
    Cww: np.ndarray
    Cws: np.ndarray
    Css: np.ndarray


def sample_moments(W: np.ndarray, Phi: np.ndarray, p: np.ndarray) -> Moments:
    """Return the moments of tasks (w_t, Phi_t) with probabilities p."""
    w_rho, nu = p @ W, p @ Phi
    dW, dPhi = W - w_rho, Phi - nu
    weighted = p[:, None] * dPhi
    return Moments(w_rho, nu, (p[:, None] * dW).T @ dW, dW.T @ weighted, weighted.T @ dPhi)


def exact_moments(environment: Any, feature_map: Any) -> Moments | None:
    """Return the moments in closed form, or None if there is none.

    There is one for `Clusters` with `MeanInput`, `Circle` with `CircleMap`, and both without
    features.
    """
    if type(environment) not in (Circle, Clusters):
        return None
    d = environment.d
    if type(environment) is Circle:
        w_rho = environment.w_rho
        turn = environment.radius * np.eye(d, 2)  # h(s) = c + turn (cos 2 pi s, sin 2 pi s)
        Cww = environment.sigma_w**2 * np.eye(d) + turn @ turn.T / 2
        if type(feature_map) is CircleMap:
            return Moments(w_rho, np.zeros(2), Cww, turn / 2, np.eye(2) / 2)
    else:
        centers = sample_moments(environment.w_centers, environment.x_centers, environment.weights)
        w_rho, Cww = centers.w_rho, centers.Cww + environment.sigma_w**2 * np.eye(d)
        if type(feature_map) is MeanInput:
            # the covariance of a uniform point on the unit sphere is I / d
            of_point = environment.sigma_x**2 / (d if environment.inputs == "unit" else 1)
            Css = centers.Css + of_point / environment.n * np.eye(d)
            return Moments(w_rho, centers.nu, Cww, centers.Cws, Css)
    if feature_map is None:
        return Moments(w_rho, np.zeros(0), Cww, np.zeros((d, 0)), np.zeros((0, 0)))
    return None
