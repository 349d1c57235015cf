"""The cluster example: the tasks of a cluster have similar weights and similar inputs."""

from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.paper.environments import drawing
from condmeta.paper.environments.posterior import (
    flat_points,
    gaussian_posterior,
    gaussian_residual,
    sphere_posterior,
    sums_of_points,
)
from condmeta.paper.environments.sampled import read_only
from condmeta.paper.environments.variances import Variances
from condmeta.tasks import TaskSet
from condmeta.typing import Inputs, Numbers


class Clusters(drawing.DrawnEnvironment):
    """Draw tasks from a mixture of clusters; the points of a task reveal its cluster.

    A task draws a cluster j, weights w ~ N(w(j), sigma_w^2 I), n inputs around x(j) and labels
    y = <x, w> + noise. There is no side table; the inputs are the side information.

    Parameters
    ----------
    w_centers, x_centers : arrays (m, d)
        Centres w(j) of the weights and x(j) of the inputs, one row for each cluster.
    sigma_w, sigma_x : float
        Standard deviations of the weights, in [0, inf), and of the inputs, in (0, inf).
    weights : array (m,), optional
        Probabilities of the clusters, up to a factor; equal by default.
    n : int
        Number of points of a task.
    snr : float in (0, inf) or None
        Signal-to-noise ratio. The noise standard deviation of a task is the standard deviation
        of its n noise-free labels divided by sqrt(snr). None means no noise. (A task with one
        point has standard deviation 0, hence no noise.)
    inputs : {"gaussian", "unit"}
        x ~ N(x(j), sigma_x^2 I), or x = x(j) + sigma_x u with u uniform on the unit sphere (d > 1).
    noise : float in [0, inf), optional
        One noise standard deviation for all tasks; it replaces `snr`.

    Attributes
    ----------
    d : int
        Number of features.
    w_rho : (d,) array
        Mean of the weights, the best single bias.

    Examples
    --------
    >>> env = Clusters([[8.0, 8.0], [0.0, 0.0]], [[1.0, 1.0], [-1.0, -1.0]], n=5)
    >>> tasks = env.sample(100, random_state=0)
    >>> tasks.X.shape, tasks.weights.shape, env.w_rho.tolist()
    ((500, 2), (100, 2), [4.0, 4.0])
    >>> round(env.variances().gap, 3)
    31.923
    """

    def __init__(
        self, w_centers: Numbers, x_centers: Numbers, *, sigma_w: float = 1.0, sigma_x: float = 1.0,
        weights: Numbers | None = None, n: int = 20, snr: float | None = 1.0,
        inputs: Inputs = "gaussian", noise: float | None = None,
    ):  # fmt: skip
        w, x = (np.array(c, dtype=np.float64) for c in (w_centers, x_centers))
        if w.ndim != 2 or w.shape != x.shape or 0 in w.shape:
            raise DataError(
                "w_centers and x_centers must have one shape (m, d), one row for each cluster. "
                f"Got {w.shape} and {x.shape}."
            )
        if not (np.isfinite(w).all() and np.isfinite(x).all()):
            raise DataError("w_centers and x_centers must be finite.")
        self.w_centers, self.x_centers = read_only(w), read_only(x)
        self.d = w.shape[1]
        self.weights = read_only(_probabilities(weights, len(w)))
        self._set_options(n, sigma_w, sigma_x, snr, inputs, noise)
        if inputs == "unit" and self.d == 1:
            raise DataError("inputs='unit' needs centres with at least two features. Got one.")

    @property
    def w_rho(self) -> np.ndarray:
        """Mean of the weights, (d,)."""
        return self.weights @ self.w_centers

    def _draw_places(self, rng: np.random.Generator, T: int) -> drawing.Places:
        ends = np.cumsum(self.weights)
        j = np.searchsorted(ends / ends[-1], rng.random(T), side="right")
        return drawing.Places(self.w_centers[j], self.x_centers[j], self.sigma_w, {"clusters": j})

    def posterior(self, points: TaskSet | Numbers, offsets: Numbers | None = None) -> np.ndarray:
        """Return the probability of each cluster given the inputs of each task, (T, m).

        Parameters
        ----------
        points : TaskSet or array (N, d)
            The inputs to condition on; a task without points gets the prior probabilities.
        offsets : array (T+1,), optional
            Rows ``offsets[t]:offsets[t + 1]`` of an array belong to task t; by default all rows
            belong to one task.
        """
        X, offsets = flat_points(points, offsets, self.d)
        if self.inputs == "unit":
            return sphere_posterior(X, offsets, self.x_centers, self.weights, self.sigma_x)
        sums, counts = sums_of_points(X, offsets)
        with np.errstate(divide="ignore"):
            log_prior = np.log(self.weights)
        return gaussian_posterior(sums, counts, self.x_centers, log_prior, self.sigma_x)

    def tau(self, points: TaskSet | Numbers, offsets: Numbers | None = None) -> np.ndarray:
        """Return tau_rho = E[w | inputs] of each task, (T, d): the best conditioning function.

        The arguments are those of `posterior`.
        """
        return self.posterior(points, offsets) @ self.w_centers

    def variances(self, n: int | None = None) -> Variances:
        """Return V(0)^2, V(w_rho)^2 and V(tau_rho)^2 when tau_rho conditions on n inputs.

        `n` defaults to ``self.n``. For Gaussian inputs V(tau_rho)^2 is computed by quadrature if
        the centres x(j) span at most three dimensions, otherwise by Monte Carlo with a fixed seed;
        `error` is the numerical error. For unit inputs it is a closed form, because one point
        identifies the cluster, up to clusters with the same centre x(j).
        """
        n = self.n if n is None else drawing.check_count(n, "n", "variances")
        pi, w, own = self.weights, self.w_centers, self.d * self.sigma_w**2
        zero = own + float(pi @ (w**2).sum(axis=1))
        mean = own + float(pi @ ((w - self.w_rho) ** 2).sum(axis=1))
        if self.inputs == "unit":
            residual, error = self._unit_residual(), 0.0
        else:
            residual, error = gaussian_residual(w, self.x_centers, pi, self.sigma_x, n)
        return Variances(zero, mean, own + residual, error)

    def _unit_residual(self) -> float:
        """Return the variance of the centres w(j) within the groups with the same centre x(j)."""
        group = np.unique(self.x_centers, axis=0, return_inverse=True)[1].ravel()
        same = (group[:, None] == group) * self.weights
        mass = same.sum(axis=1, keepdims=True)
        zeros = np.zeros_like(self.w_centers)
        means = np.divide(same @ self.w_centers, mass, out=zeros, where=mass > 0)
        return float(self.weights @ ((self.w_centers - means) ** 2).sum(axis=1))

    def __repr__(self) -> str:
        return f"Clusters({len(self.weights)} clusters, {self._options_text()})"


def _probabilities(weights: Any, m: int) -> np.ndarray:
    if weights is None:
        return np.full(m, 1 / m)
    p = np.array(weights, dtype=np.float64)
    if p.shape != (m,) or not np.isfinite(p).all() or (p < 0).any() or p.sum() <= 0:
        raise drawing.invalid("weights", "Clusters", f"{m} numbers >= 0 with a sum > 0", weights)
    return p / p.sum()
