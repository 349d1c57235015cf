r"""The gap of the cluster example: the exact value, two lower bounds and an upper bound.

With priors pi, D_ij^2 = n ||x(i) - x(j)||^2 / sigma_x^2 and eps_ij = int p_i p_j / rho,

    gap = (1/2) sum_ij pi_i pi_j (1 - eps_ij) ||w(i) - w(j)||^2,
    eps_ij <= exp(-D_ij^2 / 8) / (2 sqrt(pi_i pi_j)).

The paper prints exp(-D_ij^2) for the uniform prior; that bound does not hold, see docs/errata.md.
"""

from typing import NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.feature_maps import MeanInput
from condmeta.paper.environments import Clusters
from condmeta.paper.environments.posterior import gaussian_residual
from condmeta.paper.theory.oracle import best_linear
from condmeta.typing import Numbers


class ClusterGap(NamedTuple):
    """Hold V(w_rho)^2 - V(tau_rho)^2 of clusters with Gaussian inputs, and its bounds.

    Attributes
    ----------
    exact, error : float
        The gap and its numerical error. It is computed by quadrature in the span of the centres, or
        by Monte Carlo if the span has more than three dimensions.
    lower : float
        The corrected bound of Example 1, at least 0.
    linear : float
        The gap of the best linear function of the mean input. It is also a lower bound, and the
        larger one if the clusters are close.
    upper : float or None
        A closed-form upper bound; None unless there are two clusters.

    Examples
    --------
    >>> import condmeta as cm
    >>> env = cm.environments.Clusters([[2.0], [0.0]], [[2.0], [0.0]], n=1)
    >>> [round(value, 3) for value in cm.theory.cluster_gap(env)]
    [0.55, 0.0, 0.393, 0.5, 0.571]
    """

    exact: float
    error: float
    lower: float
    linear: float
    upper: float | None


def cluster_gap(environment: Clusters, n: int | None = None) -> ClusterGap:
    """Return the gap of conditioning on n inputs of a task, and bounds on it.

    Parameters
    ----------
    environment : Clusters
        With Gaussian inputs and any priors.
    n : int, optional
        Conditioning points of a task; by default `environment.n`.

    Examples
    --------
    >>> import condmeta as cm
    >>> env = cm.environments.paper_environment("two-clusters-mean-4")
    >>> round(cm.theory.cluster_gap(env, n=10).exact, 6)
    320.0
    """
    if not isinstance(environment, Clusters):
        name = type(environment).__name__
        raise DataError(f"cluster_gap needs a Clusters environment. Got {name}.")
    if environment.inputs != "gaussian":
        raise DataError(
            "cluster_gap needs inputs='gaussian'. For unit inputs, environment.variances().gap is "
            "the exact gap."
        )
    v = environment.variances(n)
    used = Clusters(
        environment.w_centers, environment.x_centers, sigma_w=environment.sigma_w,
        sigma_x=environment.sigma_x, weights=environment.weights, n=n or environment.n,
    )  # fmt: skip
    linear = best_linear(used, MeanInput()).gap
    return ClusterGap(v.gap, v.error, _lower(used), linear, _upper(used))


def overlap(D: Numbers, weight: float = 0.5) -> np.ndarray | float:
    """Return the overlap eps(D) = int p_1 p_2 / rho of two clusters at distance D.

    D^2 = n ||x(1) - x(2)||^2 / sigma_x^2. With equal weights eps(D) = exp(-D^2/8) E[sech(D Z/2)],
    Z ~ N(0, 1), and the gap is (||w(1) - w(2)||^2 / 4) (1 - eps(D)).

    Parameters
    ----------
    D : float or array
        Distances; the result has the same shape.
    weight : float in (0, 1)
        Probability of the first cluster.

    Examples
    --------
    >>> import condmeta as cm
    >>> cm.theory.overlap([0.0, 1.0, 4.0]).round(6).tolist()
    [1.0, 0.795946, 0.068597]
    """
    if not 0 < weight < 1:
        raise DataError(f"weight must be a float in (0, 1). Got {weight!r} instead.")
    D = np.asarray(D, dtype=np.float64)
    if not np.isfinite(D).all():
        raise DataError("D must be finite.")
    prior, ends = np.array([weight, 1 - weight]), np.array([[1.0], [0.0]])
    # With weights 1 and 0 the remaining variance is pi (1 - pi) eps.
    left = [gaussian_residual(ends, one * ends, prior, 1.0, 1)[0] for one in D.ravel()]
    eps = np.reshape(left, D.shape) / (weight * (1 - weight))
    return eps if eps.ndim else float(eps)


def _squares(centers: np.ndarray) -> np.ndarray:
    """Return ||c(i) - c(j)||^2, (m, m)."""
    return ((centers[:, None] - centers[None]) ** 2).sum(axis=2)


def _lower(env: Clusters) -> float:
    """Return the corrected lower bound.

    Only the sum is clipped at 0. The terms must not be clipped, because eps_ij may exceed 1.
    """
    pi = env.weights
    D2 = env.n * _squares(env.x_centers) / env.sigma_x**2
    pair = np.outer(pi, pi) - np.sqrt(np.outer(pi, pi)) / 2 * np.exp(-D2 / 8)
    return max(0.0, float((pair * _squares(env.w_centers)).sum() / 2))


def _upper(env: Clusters) -> float | None:
    """Return an upper bound for two clusters, from sech(u) >= exp(-u^2 / 2).

    eps = exp(-D^2/8) / (2 sqrt(pi_1 pi_2)) E[sech(D Z/2 + a)], a = ln(pi_1 / pi_2) / 2.
    """
    if len(env.weights) != 2:
        return None
    product = float(env.weights.prod())
    if product == 0:
        return 0.0
    D2 = float(env.n * _squares(env.x_centers)[0, 1] / env.sigma_x**2)
    width = 1 + D2 / 4
    a = np.log(env.weights[0] / env.weights[1]) / 2
    eps = np.exp(-D2 / 8 - a**2 / (2 * width)) / (2 * np.sqrt(product * width))
    return float(product * (1 - eps) * _squares(env.w_centers)[0, 1])
