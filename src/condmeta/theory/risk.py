"""The excess risk that the bounds are about, exactly, for the absolute loss and Gaussian inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import erf

from condmeta.environments import Circle, Clusters, SampledTaskSet
from condmeta.errors import DataError


def excess_risk(environment: Any, tasks: SampledTaskSet, coef: Any) -> np.ndarray:
    """Return R_mu(w) - R_mu(w_mu) of a weight vector for each task, in the absolute loss.

    An error <x, w> - y is Gaussian with mean <c, w - w_mu>, c the centre of the task's inputs, and
    variance sigma_x^2 ||w - w_mu||^2 + noise^2; the risk is the mean of its absolute value. The
    mean over many tasks estimates E(tau) - E* of the paper without drawing a test point.

    Parameters
    ----------
    environment : Clusters or Circle
        With Gaussian inputs and a noise level of its own (``noise=`` or ``snr=None``).
    tasks : SampledTaskSet
        Drawn from it.
    coef : array (T, d)
        The weight vector of each task.

    Returns
    -------
    array (T,)

    Examples
    --------
    >>> import condmeta as cm
    >>> env = cm.environments.Circle(d=3, n=5, inputs="gaussian", noise=1.0)
    >>> tasks = env.sample(4, random_state=0)
    >>> cm.theory.excess_risk(env, tasks, tasks.weights).tolist()
    [0.0, 0.0, 0.0, 0.0]
    """
    if not isinstance(environment, Clusters | Circle) or environment.inputs != "gaussian":
        raise DataError("The exact risk is known for Clusters and Circle with inputs='gaussian'.")
    if environment.noise is None and environment.snr is not None:
        raise DataError(
            "The noise of each task follows its own labels (snr=): give the environment noise=."
        )
    coef = np.asarray(coef, dtype=np.float64)
    if coef.shape != tasks.weights.shape:
        raise DataError(f"coef must have the shape {tasks.weights.shape}. Got {coef.shape}.")
    if isinstance(environment, Circle):
        centers = environment.x_center
    else:
        centers = environment.x_centers[tasks.clusters]
    noise = environment.noise or 0.0
    off = coef - tasks.weights
    mean = (centers * off).sum(axis=1)
    spread = np.sqrt(environment.sigma_x**2 * (off**2).sum(axis=1) + noise**2)
    return mean_absolute(mean, spread) - noise * np.sqrt(2 / np.pi)


def mean_absolute(mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return E|e| of e ~ N(mean, spread^2)."""
    ratio = np.divide(mean, spread, out=np.zeros_like(mean), where=spread > 0)
    risk = spread * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + mean * erf(ratio / np.sqrt(2))
    return np.where(spread > 0, risk, np.abs(mean))
