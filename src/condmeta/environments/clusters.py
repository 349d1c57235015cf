"""The cluster example: tasks of a cluster have weights and inputs around its centres."""

from __future__ import annotations

from typing import Any

import numpy as np

from condmeta.environments import drawing
from condmeta.environments.posterior import (
    gaussian_posterior,
    gaussian_residual,
    sphere_posterior,
)
from condmeta.environments.sampled import SampledTaskSet
from condmeta.environments.variances import Variances
from condmeta.errors import DataError
from condmeta.tasks import TaskSet


class Clusters:
    """Draw tasks from a mixture of clusters; the points of a task reveal its cluster.

    A task draws a cluster j, weights w ~ N(w(j), sigma_w^2 I), n inputs around x(j) and labels
    y = <x, w> + noise. There is no side table: the inputs are the side information.

    Parameters
    ----------
    w_centers, x_centers : arrays (m, d)
        Centres w(j) of the weights and x(j) of the inputs.
    sigma_w, sigma_x : float
        Spreads of the weights, in [0, inf), and of the inputs, in (0, inf).
    weights : array (m,), optional
        Probabilities of the clusters, up to a factor; all the same by default.
    n : int
        Points of a task.
    snr : float in (0, inf) or None
        Signal-to-noise ratio. The noise of a task has the standard deviation of its own clean
        labels, over its n points, divided by sqrt(snr); None is no noise. (Clean labels of one
        point have deviation 0.)
    inputs : {"gaussian", "unit"}
        x ~ N(x(j), sigma_x^2 I), or x = x(j) + sigma_x u with u uniform on the unit sphere (d > 1).
    noise : float in [0, inf), optional
        A standard deviation for all tasks, in place of `snr`.

    Attributes
    ----------
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
        self,
        w_centers: Any,
        x_centers: Any,
        *,
        sigma_w: float = 1.0,
        sigma_x: float = 1.0,
        weights: Any = None,
        n: int = 20,
        snr: float | None = 1.0,
        inputs: str = "gaussian",
        noise: float | None = None,
    ):
        w, x = (np.array(c, dtype=np.float64) for c in (w_centers, x_centers))
        if w.ndim != 2 or w.shape != x.shape or 0 in w.shape:
            raise DataError(
                "w_centers and x_centers must have one shape (m, d), a row a cluster. "
                f"Got {w.shape} and {x.shape}."
            )
        if not (np.isfinite(w).all() and np.isfinite(x).all()):
            raise DataError("w_centers and x_centers must be finite.")
        self.w_centers, self.x_centers = drawing.frozen(w), drawing.frozen(x)
        self.sigma_w = drawing.check_spread(sigma_w, "sigma_w", "Clusters", zero=True)
        self.sigma_x = drawing.check_spread(sigma_x, "sigma_x", "Clusters")
        self.weights = drawing.frozen(_probabilities(weights, len(w)))
        self.n = drawing.check_count(n, "n", "Clusters")
        self.snr, self.noise = drawing.check_labels(snr, noise, "Clusters")
        self.inputs = drawing.check_inputs(inputs, "Clusters")
        if inputs == "unit" and self.d == 1:
            raise DataError("inputs='unit' needs at least two features: give the centres d > 1.")

    @property
    def d(self) -> int:
        """Number of features."""
        return self.w_centers.shape[1]

    @property
    def w_rho(self) -> np.ndarray:
        """Mean of the weights, (d,)."""
        return self.weights @ self.w_centers

    def sample(self, n_tasks: int, random_state: Any = None) -> SampledTaskSet:
        """Draw tasks with ids 0, 1, 2, ..., their true weights and clusters attached.

        `random_state` is a seed, a NumPy Generator (which moves on) or None (fresh). With one
        seed the first tasks of a larger sample are those of a smaller one.
        """
        T = drawing.check_count(n_tasks, "n_tasks", "sample")
        streams = drawing.open_streams(random_state)
        ends = np.cumsum(self.weights)
        j = np.searchsorted(ends / ends[-1], streams.place.random(T), side="right")
        w = self.w_centers[j] + self.sigma_w * streams.weights.standard_normal((T, self.d))
        X = drawing.draw_inputs(
            streams.inputs, self.x_centers[j], self.n, self.sigma_x, self.inputs
        )
        y = drawing.draw_labels(streams.noise, X, w, self.snr, self.noise)
        offsets = np.arange(T + 1) * self.n
        return SampledTaskSet(
            X.reshape(-1, self.d), y.ravel(), offsets, range(T), weights=w, clusters=j
        )

    def posterior(self, points: Any, offsets: Any = None) -> np.ndarray:
        """Return the probability of each cluster given the inputs of each task, (T, m).

        Parameters
        ----------
        points : TaskSet or array (N, d)
            The inputs that condition; a task without any has the prior probabilities.
        offsets : array (T+1,), optional
            Rows ``offsets[t]:offsets[t + 1]`` of an array are task t; one task by default.
        """
        X, offsets = _flat_points(points, offsets, self.d)
        if self.inputs == "unit":
            return sphere_posterior(X, offsets, self.x_centers, self.weights, self.sigma_x)
        counts = np.diff(offsets)
        sums = np.zeros((counts.size, self.d))
        if len(X):
            sums[counts > 0] = np.add.reduceat(X, offsets[:-1][counts > 0], axis=0)
        with np.errstate(divide="ignore"):
            log_prior = np.log(self.weights)
        return gaussian_posterior(sums, counts, self.x_centers, log_prior, self.sigma_x)

    def tau(self, points: Any, offsets: Any = None) -> np.ndarray:
        """Return tau_rho = E[w | inputs] of each task, (T, d): the best conditioning function.

        The arguments are those of `posterior`.
        """
        return self.posterior(points, offsets) @ self.w_centers

    def variances(self, n: int | None = None) -> Variances:
        """Return V(0)^2, V(w_rho)^2 and V(tau_rho)^2, tau_rho seeing n inputs (`self.n`).

        Gaussian inputs: by quadrature where the centres x(j) span at most three dimensions, by
        Monte Carlo with a fixed seed beyond; `error` tells how exact. Unit inputs: closed form,
        as one point tells apart all clusters whose centres differ.
        """
        n = self.n if n is None else drawing.check_count(n, "n", "variances")
        own = self.d * self.sigma_w**2
        zero = own + float(self.weights @ (self.w_centers**2).sum(axis=1))
        mean = own + float(self.weights @ ((self.w_centers - self.w_rho) ** 2).sum(axis=1))
        if self.inputs == "unit":
            residual, error = self._unit_residual(), 0.0
        else:
            residual, error = gaussian_residual(
                self.w_centers, self.x_centers, self.weights, self.sigma_x, n
            )
        return Variances(zero, mean, own + residual, error)

    def _unit_residual(self) -> float:
        """Return the variance of the centres w(j) within the groups that share a centre x(j)."""
        group = np.unique(self.x_centers, axis=0, return_inverse=True)[1].ravel()
        same = (group[:, None] == group) * self.weights
        mass = same.sum(axis=1, keepdims=True)
        means = np.divide(
            same @ self.w_centers, mass, out=np.zeros_like(self.w_centers), where=mass > 0
        )
        return float(self.weights @ ((self.w_centers - means) ** 2).sum(axis=1))

    def __repr__(self) -> str:
        level = f"snr={self.snr}" if self.noise is None else f"noise={self.noise}"
        return (
            f"Clusters({len(self.weights)} clusters, d={self.d}, n={self.n}, "
            f"sigma_w={self.sigma_w}, sigma_x={self.sigma_x}, {level}, inputs={self.inputs!r})"
        )


def _probabilities(weights: Any, m: int) -> np.ndarray:
    if weights is None:
        return np.full(m, 1 / m)
    p = np.array(weights, dtype=np.float64)
    if p.shape != (m,) or not np.isfinite(p).all() or (p < 0).any() or p.sum() <= 0:
        raise drawing.wrong("weights", "Clusters", f"{m} numbers of at least 0, not all 0", weights)
    return p / p.sum()


def _flat_points(points: Any, offsets: Any, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs (N, d) and offsets (T+1,) of a TaskSet, of an array, or of one task."""
    if isinstance(points, TaskSet):
        X, offsets = points.X, points.offsets
    else:
        X = np.asarray(points, dtype=np.float64)
        offsets = np.array([0, len(X)]) if offsets is None else np.asarray(offsets, np.int64)
    if X.ndim != 2 or X.shape[1] != d:
        raise DataError(f"points must have {d} features. Got the shape {X.shape}.")
    if offsets.ndim != 1 or not offsets.size or (np.diff(offsets) < 0).any():
        raise DataError("offsets must rise from 0 to the number of points.")
    if offsets[0] != 0 or offsets[-1] != len(X):
        raise DataError(f"offsets must rise from 0 to {len(X)}, the number of points.")
    return X, offsets
