"""The exact excess risk, for the absolute loss and Gaussian inputs."""

from typing import Any

import numpy as np
from scipy.special import erf

from condmeta.errors import DataError
from condmeta.paper.environments import Circle, Clusters, SampledTaskSet


def excess_risk(environment: Any, tasks: SampledTaskSet, coef: Any) -> np.ndarray:
    """Return the excess risk R_mu(w) - R_mu(w_mu) of each task, (T,), in the absolute loss.

    With c the centre of the task's inputs, an error <x, w> - y is Gaussian with mean <c, w - w_mu>
    and variance sigma_x^2 ||w - w_mu||^2 + noise^2. The risk is the mean of its absolute value. The
    mean over many tasks estimates E(tau) - E* of the paper, without test points.

    Parameters
    ----------
    environment : Clusters or Circle
        With Gaussian inputs and the same noise level for all tasks (``noise=`` or ``snr=None``).
    tasks : SampledTaskSet
        Tasks drawn from the environment.
    coef : array (T, d)
        The weight vector of each task.

    Examples
    --------
    >>> import condmeta as cm
    >>> env = cm.environments.Circle(d=3, n=5, inputs="gaussian", noise=1.0)
    >>> tasks = env.sample(4, random_state=0)
    >>> cm.theory.excess_risk(env, tasks, tasks.weights).tolist()
    [0.0, 0.0, 0.0, 0.0]
    """
    if not isinstance(environment, Clusters | Circle) or environment.inputs != "gaussian":
        raise DataError("excess_risk needs Clusters or Circle with inputs='gaussian'.")
    if environment.noise is None and environment.snr is not None:
        raise DataError("excess_risk needs one noise for all tasks: set noise= of the environment.")
    coef = np.asarray(coef, dtype=np.float64)
    if coef.shape != tasks.weights.shape:
        raise DataError(f"coef must have the shape {tasks.weights.shape}. Got {coef.shape}.")
    is_circle = isinstance(environment, Circle)
    centers = environment.x_center if is_circle else environment.x_centers[tasks.clusters]
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
