"""Means and covariances of weights and side features: exact where an environment allows it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condmeta.environments import Circle, Clusters
from condmeta.feature_maps import CircleMap, MeanInput


class Moments(NamedTuple):
    """Hold the first two moments of (w, Phi), with divisor 1/N over samples.

    Attributes
    ----------
    w_rho, nu : (d,) and (k,) arrays
        E w and E Phi.
    Cww, Cws, Css : (d, d), (d, k) and (k, k) arrays
        Covariances of the weights, of weights and features, and of the features.

    Examples
    --------
    >>> from condmeta.theory.moments import sample_moments
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
    """Return the moments of atoms (w_t, Phi_t) with probabilities p."""
    w_rho, nu = p @ W, p @ Phi
    dW, dPhi = W - w_rho, Phi - nu
    weighted = p[:, None] * dPhi
    return Moments(w_rho, nu, (p[:, None] * dW).T @ dW, dW.T @ weighted, weighted.T @ dPhi)


def exact_moments(environment: Any, feature_map: Any) -> Moments | None:
    """Return the moments in closed form, or None where there is none.

    Known: clusters with the mean input, the circle with its own map, and both with no features.
    """
    d = getattr(environment, "d", 0)
    if type(environment) is Circle:
        turn = environment.radius * np.eye(d, 2)  # h(s) = c + turn (cos, sin)
        own = environment.sigma_w**2 * np.eye(d)
        Cww = own + turn @ turn.T / 2
        if feature_map is None:
            return Moments(environment.w_rho, np.zeros(0), Cww, np.zeros((d, 0)), np.zeros((0, 0)))
        if type(feature_map) is CircleMap:
            return Moments(environment.w_rho, np.zeros(2), Cww, turn / 2, np.eye(2) / 2)
    if type(environment) is Clusters:
        pi, w, x = environment.weights, environment.w_centers, environment.x_centers
        centers = sample_moments(w, x, pi)
        Cww = centers.Cww + environment.sigma_w**2 * np.eye(d)
        if feature_map is None:
            return Moments(centers.w_rho, np.zeros(0), Cww, np.zeros((d, 0)), np.zeros((0, 0)))
        if type(feature_map) is MeanInput:
            # a point uniform on the unit sphere has covariance I / d, a Gaussian one I
            of_point = environment.sigma_x**2 / (d if environment.inputs == "unit" else 1)
            Css = centers.Css + of_point / environment.n * np.eye(d)
            return Moments(centers.w_rho, centers.nu, Cww, centers.Cws, Css)
    return None
