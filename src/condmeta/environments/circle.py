"""The circle example: one number s says where on a circle the weights of a task lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from condmeta.environments import drawing
from condmeta.environments.sampled import SampledTaskSet
from condmeta.environments.variances import Variances
from condmeta.errors import DataError
from condmeta.tasks import TaskSet, TaskTable


class Circle:
    """Draw tasks whose weights lie around a circle; side information says where.

    A task draws s ~ U[0, 1], weights w ~ N(h(s), sigma_w^2 I) with
    h(s) = c + r (cos 2 pi s, sin 2 pi s, 0, ..., 0), n inputs around one centre, and labels
    y = <x, w> + noise. The side table has the column ``"s"``.

    Parameters
    ----------
    radius : float in [0, inf)
        r, the radius of the circle.
    center : float or array (d,)
        c, its centre.
    d : int
        Features, at least 2.
    n : int
        Points of a task.
    sigma_w : float in [0, inf)
        Spread of the weights.
    snr : float in (0, inf) or None
        Signal-to-noise ratio, against the deviation of each task's own clean labels as in
        `Clusters`; None is no noise.
    inputs : {"unit", "gaussian"}
        x = x_center + sigma_x u with u uniform on the unit sphere, or x ~ N(x_center, sigma_x^2 I).
    x_center : float or array (d,)
        Centre of the inputs.
    sigma_x : float in (0, inf)
        Spread of the inputs.
    noise : float in [0, inf), optional
        A standard deviation for all tasks, in place of `snr`.

    Notes
    -----
    The paper draws the inputs "as for the experiments above", that is around the centre 1, but its
    published errors are too small for Gaussian inputs. The defaults are the reading that fits them:
    independent learning, online, lam from 16 values on 1e-7..1e7, mean of ten seeds, has the error
    4.3 with unit inputs around 1 (published: 4.28 +- 0.27), 2.3 with unit inputs around 0, and 11.4
    and 10.1 with Gaussian inputs around 1 and 0.

    Examples
    --------
    >>> env = Circle(radius=2.0, d=3, n=5)
    >>> env.tau([0.0, 0.25]).round(9).tolist()
    [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
    >>> env.sample(4, random_state=0).side.columns
    ('s',)
    """

    def __init__(
        self,
        radius: float = 8.0,
        center: Any = 0.0,
        d: int = 20,
        n: int = 20,
        sigma_w: float = 1.0,
        snr: float | None = 1.0,
        inputs: str = "unit",
        x_center: Any = 1.0,
        *,
        sigma_x: float = 1.0,
        noise: float | None = None,
    ):
        self.d = drawing.check_count(d, "d", "Circle")
        if self.d < 2:
            raise drawing.wrong("d", "Circle", "an int of at least 2", d)
        self.radius = drawing.check_spread(radius, "radius", "Circle", zero=True)
        self.center = drawing.check_center(center, self.d, "center", "Circle")
        self.n = drawing.check_count(n, "n", "Circle")
        self.sigma_w = drawing.check_spread(sigma_w, "sigma_w", "Circle", zero=True)
        self.snr, self.noise = drawing.check_labels(snr, noise, "Circle")
        self.inputs = drawing.check_inputs(inputs, "Circle")
        self.x_center = drawing.check_center(x_center, self.d, "x_center", "Circle")
        self.sigma_x = drawing.check_spread(sigma_x, "sigma_x", "Circle")

    @property
    def w_rho(self) -> np.ndarray:
        """Mean of the weights, (d,): the centre of the circle."""
        return self.center

    def sample(self, n_tasks: int, random_state: Any = None) -> SampledTaskSet:
        """Draw tasks with ids 0, 1, 2, ..., the side column ``"s"`` and their true weights.

        `random_state` is a seed, a NumPy Generator (which moves on) or None (fresh). With one
        seed the first tasks of a larger sample are those of a smaller one.
        """
        T = drawing.check_count(n_tasks, "n_tasks", "sample")
        streams = drawing.open_streams(random_state)
        s = streams.place.random(T)
        w = self.tau(s) + self.sigma_w * streams.weights.standard_normal((T, self.d))
        centers = np.broadcast_to(self.x_center, (T, self.d))
        X = drawing.draw_inputs(streams.inputs, centers, self.n, self.sigma_x, self.inputs)
        y = drawing.draw_labels(streams.noise, X, w, self.snr, self.noise)
        side = TaskTable({"s": s}, ids=range(T))
        offsets = np.arange(T + 1) * self.n
        return SampledTaskSet(X.reshape(-1, self.d), y.ravel(), offsets, range(T), side, weights=w)

    def tau(self, side: Any) -> np.ndarray:
        """Return h(s) = tau_rho(s), (T, d), for numbers s (T,), a side table or a TaskSet."""
        s = np.atleast_1d(_read_s(side))
        h = np.tile(self.center, (s.size, 1))
        h[:, 0] += self.radius * np.cos(2 * np.pi * s)
        h[:, 1] += self.radius * np.sin(2 * np.pi * s)
        return h

    def variances(self) -> Variances:
        """Return V(0)^2, V(w_rho)^2 and V(tau_rho)^2 in closed form.

        They are d sigma_w^2 + r^2 + ||c||^2, d sigma_w^2 + r^2 and d sigma_w^2.
        """
        tau = self.d * self.sigma_w**2
        mean = tau + self.radius**2
        return Variances(mean + float(self.center @ self.center), mean, tau)

    def __repr__(self) -> str:
        level = f"snr={self.snr}" if self.noise is None else f"noise={self.noise}"
        return (
            f"Circle(radius={self.radius}, d={self.d}, n={self.n}, sigma_w={self.sigma_w}, "
            f"sigma_x={self.sigma_x}, {level}, inputs={self.inputs!r})"
        )


def _read_s(side: Any) -> np.ndarray:
    """Return the numbers s of a TaskSet, a TaskTable or an array of one dimension."""
    if isinstance(side, TaskSet):
        if side.side is None:
            raise DataError("These tasks have no side table: give the numbers s.")
        side = side.side.take(side.ids)
    if isinstance(side, TaskTable):
        if "s" not in side.data:
            raise DataError(f"The side table has no column 's': it has {side.columns}.")
        side = side.data["s"]
    s = np.asarray(side, dtype=np.float64)
    if s.ndim > 1:
        raise DataError(f"s must be one number a task. Got the shape {s.shape}.")
    return s
