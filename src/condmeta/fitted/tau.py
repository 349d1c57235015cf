"""The learned map tau: from the features Phi of a task to theta, where its model starts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from condmeta.inner.scatter import LARGEST
from condmeta.kernels.side_readers import has_side
from condmeta.meta.blocks import with_one
from condmeta.meta.kernel_sgd import KernelMap, kernel_theta, squared_norm
from condmeta.meta.side_noise import LARGEST_LOG, noise_factors
from condmeta.persistence.fields import either, floats, instance, maybe, optional
from condmeta.persistence.registry import construct, register, register_tuple


@register_tuple(
    fields={
        "weights": floats("k+1 w"), "phi_mean": floats("k"),
        "cold": optional(maybe(floats("k+1 w", low=-LARGEST, high=LARGEST))),
        "noise": optional(maybe(floats("k+1", low=-LARGEST, high=LARGEST))),
        "noise_range": optional(maybe(floats("2", low=-LARGEST_LOG, high=LARGEST_LOG))),
    }
)  # fmt: skip
class LinearTau(NamedTuple):
    """tau(s) = M Phi(s) + b, in the learner's units.

    weights : (k+1, width) array, with b in its last row; phi_mean : (k,), the mean training Phi.
    cold : (k+1, width) array or None, the map for tasks without points if it is another one.
    noise : (k+1,) array or None: the map to the logarithm of the factor of a task's noise;
    noise_range : (2,), between which this logarithm stays, as far as training tasks go.
    """

    weights: np.ndarray
    phi_mean: np.ndarray
    cold: np.ndarray | None = None
    noise: np.ndarray | None = None
    noise_range: np.ndarray | None = None

    def noise_factors(self, Phi) -> np.ndarray | None:
        """Return the factor of the noise of tasks (T,); None if all tasks have the same."""
        if self.noise is None or self.noise_range is None:
            return None
        return noise_factors(with_one(Phi), self.noise, self.noise_range)

    def theta(self, Phi, n_jobs: int = 1) -> np.ndarray:
        """Return theta = M Phi + b of tasks (T, width)."""
        return Phi @ self.weights[:-1] + self.weights[-1]

    def cold_start(self, Phi) -> np.ndarray:
        """Return the models of tasks without points (T, width)."""
        return Phi @ self.cold_weights[:-1] + self.cold_weights[-1]

    @property
    def cold_weights(self) -> np.ndarray:
        """The map for tasks without points (k+1, width)."""
        return self.weights if self.cold is None else self.cold

    @property
    def M(self) -> np.ndarray:  # noqa: N802 - the paper's name
        """M (width, k)."""
        return self.weights[:-1].T

    @property
    def b(self) -> np.ndarray:
        """b (width,)."""
        return self.weights[-1]

    @property
    def theta_mean(self) -> np.ndarray:
        """theta (width,) at the mean training Phi."""
        return self.theta(self.phi_mean)


@dataclass(frozen=True, eq=False)
class KernelTau:
    """tau(s) = sum_j w_j (k(s_j, s) + 1), by kernel evaluations.

    Parameters
    ----------
    kernel : kernel
    sides : what the kernel reads of the tasks s_j
    weights : (J, width) array
        w_j = c_j g_j.
    gradients : (J, width) array or None
        The meta-gradients g_j, which learning needs to go on.
    given_mean : (width,) array or None
        `theta_mean` where it is known already; it costs J^2 kernel evaluations.
    """

    kernel: Any
    sides: Any
    weights: np.ndarray
    gradients: np.ndarray | None = None
    given_mean: np.ndarray | None = None

    def theta(self, sides, n_jobs: int = 1) -> np.ndarray:
        """Return theta (T, width); tasks that lack what the kernel reads get `theta_mean`."""
        here = has_side(sides)
        if here.all():
            return self._evaluate(sides, n_jobs)
        theta = np.empty((len(sides), self.weights.shape[1]))
        theta[here] = self._evaluate(sides[here], n_jobs)
        theta[~here] = self.theta_mean
        return theta

    def _evaluate(self, sides, n_jobs: int = 1) -> np.ndarray:
        return kernel_theta(sides, self.sides, self.weights, self.kernel, n_jobs)

    @property
    def b(self) -> np.ndarray:
        """b (width,), the part of the map that is the same for all tasks."""
        return self.weights.sum(axis=0)

    @cached_property
    def theta_mean(self) -> np.ndarray:
        """The mean of tau over the training tasks (width,)."""
        if self.given_mean is not None:
            return self.given_mean
        theta = self._evaluate(self.sides)
        return theta.sum(axis=0) / max(len(theta), 1)

    def norm(self, n_jobs: int = 1) -> float:
        """Return ||(M, b)||_F."""
        square = squared_norm(*KernelMap(self.sides, self.weights), self.kernel, n_jobs)
        return float(np.sqrt(max(square, 0.0)))

    def without_gradients(self) -> KernelTau:
        """Return the map without what learning needs to go on, and without tasks of weight 0."""
        if self.gradients is None:
            return self
        used = (self.weights != 0).any(axis=1) | (self.gradients == 0).all(axis=1)
        parts = self.sides[used], self.weights[used]
        return KernelTau(self.kernel, *parts, None, self.theta_mean)

    def check(self, k: int, width: int) -> None:
        """Raise ValueError if the arrays do not fit k features and weight vectors of `width`."""
        first = self._evaluate(self.sides[:1])  # fails where sides and kernel do not fit
        fits = len(self.sides) == len(self.weights) and first.shape[1:] == (width,)
        fits &= self.gradients is None or self.gradients.shape == self.weights.shape
        fits &= not isinstance(self.sides, np.ndarray) or self.sides.shape[1] == k
        if not fits:
            raise ValueError("a kernel map of other sizes than the rest")
        if self.theta_mean.shape != (width,):
            raise ValueError(f"theta_mean of shape {self.theta_mean.shape}")


def _export(tau: KernelTau) -> dict:
    names = "kernel", "sides", "weights", "gradients"
    return {name: getattr(tau, name) for name in names} | {"given_mean": tau.theta_mean}


register(
    KernelTau, export=_export, restore=construct,
    fields={
        "kernel": instance(),
        "sides": either(floats("J k", nan=True), instance("PointSets", "GramRows", T="J")),
        "weights": floats("J w"), "gradients": maybe(floats("J w")), "given_mean": floats("w"),
    },
)  # fmt: skip
