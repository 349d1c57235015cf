r"""The best linear conditioning function tau(s) = M Phi(s) + b in hindsight.

With the moments of weights and features (`moments.py`) and ^+ the pseudo-inverse,

    M = Cws Css^+,   b = w_rho - M nu,   Corr = Cww^{+/2} Cws Css^{+/2},
    V(w_rho)^2 - min V^2 = Tr(Cws Css^+ Cws^T) = Tr(Cww Corr Corr^T) = ||M Css^{1/2}||_F^2.

The paper prints the factors of the last two forms in another order; see docs/errata.md.
"""

from typing import Any, NamedTuple, overload

import numpy as np

from condmeta.errors import DataError
from condmeta.kernels.table_kernels import Kernel
from condmeta.paper.theory import sources
from condmeta.paper.theory.kernel_oracle import (
    BestKernel,
    best_of_environment,
    best_of_sample,
    is_kernel,
)
from condmeta.paper.theory.moments import Moments, exact_moments, sample_moments
from condmeta.paper.theory.sources import N_TASKS
from condmeta.tasks import TaskSet
from condmeta.typing import Environment, FeatureMapLike, Numbers, RandomState


class BestMap(NamedTuple):
    """Hold a map tau(s) = M Phi(s) + b; calling it with Phi (T, k) returns tau, (T, d).

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> cm.theory.BestMap(np.ones((2, 1)), np.zeros(2))([[3.0]])
    array([[3., 3.]])
    """

    M: np.ndarray
    b: np.ndarray

    def __call__(self, Phi: Any) -> np.ndarray:
        return np.asarray(Phi, dtype=np.float64) @ self.M.T + self.b

    @property
    def norm(self) -> float:
        """||(M, b)||_F, which enters the bound of Theorem 2."""
        return float(np.sqrt((self.M**2).sum() + (self.b**2).sum()))


class BestLinear(NamedTuple):
    """Hold the best linear conditioning function and its variance.

    Attributes
    ----------
    map : BestMap
        M = Cws Css^+ (the best M with the smallest norm) and b = w_rho - M nu.
    min_norm : BestMap
        The best pair with the smallest ||(M, b)||_F. It is the same function as `map`; the pairs
        differ only if a linear combination of the features is constant.
    corr : (d, k) array
        Cww^{+/2} Cws Css^{+/2}; its singular values lie in [0, 1].
    mean, variance : float
        V(w_rho)^2 and the minimum of V^2 over linear functions.
    gap : float
        Their difference, Tr(Cws Css^+ Cws^T).
    error : float
        Standard error of `variance` if tasks were drawn from an environment; otherwise 0.
    moments : Moments

    Examples
    --------
    >>> import condmeta as cm
    >>> env = cm.environments.Circle(radius=2.0, d=3)
    >>> best = cm.theory.best_linear(env, cm.feature_maps.CircleMap())
    >>> best.map.M.tolist(), best.mean, best.variance
    ([[2.0, 0.0], [0.0, 2.0], [0.0, 0.0]], 7.0, 3.0)
    """

    map: BestMap
    min_norm: BestMap
    corr: np.ndarray
    mean: float
    variance: float
    gap: float
    error: float
    moments: Moments

    def excess(self, M: Numbers, b: Numbers) -> float:
        """Return V(M, b)^2 - min V^2 = E ||(M - M_rho) Phi + b - b_rho||^2 of another pair M, b."""
        M, b = np.asarray(M, dtype=np.float64), np.asarray(b, dtype=np.float64)
        if M.shape != self.map.M.shape or b.shape != self.map.b.shape:
            raise DataError(
                f"M and b must have the shapes {self.map.M.shape} and {self.map.b.shape}. "
                f"Got {M.shape} and {b.shape}."
            )
        dM, at_mean = M - self.map.M, (M - self.map.M) @ self.moments.nu + b - self.map.b
        return float(np.trace(dM @ self.moments.Css @ dM.T) + at_mean @ at_mean)

    def gap_forms(self) -> tuple[float, float, float]:
        """Return Tr(Cws Css^+ Cws^T), Tr(Cww Corr Corr^T) and ||M Css^{1/2}||_F^2: all equal."""
        m = self.moments
        return (
            float(np.trace(m.Cws @ _power(m.Css, -1.0) @ m.Cws.T)),
            float(np.trace(m.Cww @ self.corr @ self.corr.T)),
            float(((self.map.M @ _power(m.Css, 0.5)) ** 2).sum()),
        )


@overload
def best_linear(
    source: Environment | TaskSet | Numbers, Phi: Kernel, *, p: Numbers | None = None,
    n_tasks: int = N_TASKS, random_state: RandomState = 0,
) -> BestKernel: ...  # fmt: skip
@overload
def best_linear(
    source: Environment | TaskSet | Numbers, Phi: FeatureMapLike | Numbers = None, *,
    p: Numbers | None = None, n_tasks: int = N_TASKS, random_state: RandomState = 0,
) -> BestLinear: ...  # fmt: skip
def best_linear(
    source: Environment | TaskSet | Numbers, Phi: Kernel | FeatureMapLike | Numbers = None, *,
    p: Numbers | None = None, n_tasks: int = N_TASKS, random_state: RandomState = 0,
) -> BestLinear | BestKernel:  # fmt: skip
    """Return the best linear conditioning function in hindsight, a `BestLinear`.

    Parameters
    ----------
    source : environment, SampledTaskSet or array (T, d)
        The source of the weights w. `Clusters` with `MeanInput` and `Circle` with `CircleMap` have
        a closed form; from other environments tasks are drawn.
    Phi : array (T, k), feature map, list of maps, "auto", kernel or None
        The features of the tasks, or the map that computes them; None means no features (k = 0).
        For a kernel of `condmeta.kernels` the result is a `BestKernel`. The kernel reads the
        numbers of the side table as they are (`feature_map=Identity()` of the kernel learner), or
        points. Its functions are sums over at most 1000 drawn tasks.
    p : array (T,), optional
        Probabilities of the tasks of a sample; equal by default. Covariances then have the divisor
        T, with which all identities are exact.
    n_tasks, random_state
        Number and seed of the tasks to draw if there is no closed form.

    References
    ----------
    Denevi, Pontil, Ciliberto, appendix, "Best linear conditioning function in hindsight".

    Examples
    --------
    >>> import condmeta as cm
    >>> best = cm.theory.best_linear([[0.0], [2.0], [4.0]], [[1.0], [2.0], [3.0]])
    >>> best.map.M.item(), best.map.b.item(), round(best.gap, 12)
    (2.0, -2.0, 2.666666666667)
    """
    if is_kernel(Phi):
        return _best_in_kernel(source, Phi, p, n_tasks, random_state)
    if not hasattr(source, "sample"):
        W = sources.weights_of(source)
        features = sources.features_of(source, Phi, len(W))
        return from_moments(sample_moments(W, features, sources.probabilities(p, len(W))))
    _refuse_probabilities(p)
    moments = exact_moments(source, Phi)
    if moments is not None:
        return from_moments(moments)
    tasks = sources.draw(source, n_tasks, random_state)
    W, features = sources.weights_of(tasks), sources.map_features(tasks, Phi)
    best = from_moments(sample_moments(W, features, sources.probabilities(None, len(W))))
    misses = ((W - best.map(features)) ** 2).sum(axis=1)
    return best._replace(error=float(misses.std() / np.sqrt(len(W))))


def _best_in_kernel(source: Any, kernel: Any, p: Any, n_tasks: int, random_state: Any):
    if not hasattr(source, "sample"):
        return best_of_sample(source, kernel, p)
    _refuse_probabilities(p)
    return best_of_environment(source, kernel, n_tasks, random_state)


def _refuse_probabilities(p: Any) -> None:
    if p is not None:
        raise DataError("p is for a sample; an environment has its own probabilities. Omit p.")


def from_moments(moments: Moments) -> BestLinear:
    """Return the best linear conditioning function from the moments."""
    w_rho, nu, Cww, Cws, Css = moments
    M = Cws @ _power(Css, -1.0)
    # E[w Phi1^T] (E[Phi1 Phi1^T])^+ with Phi1 = (Phi, 1)
    nu1 = np.append(nu, 1.0)
    second = np.outer(nu1, nu1)
    second[:-1, :-1] += Css
    cross = np.outer(w_rho, nu1)
    cross[:, :-1] += Cws
    joint = cross @ _power(second, -1.0)
    mean, gap = float(np.trace(Cww)), float((M * Cws).sum())
    best, min_norm = BestMap(M, w_rho - M @ nu), BestMap(joint[:, :-1], joint[:, -1])
    corr = _power(Cww, -0.5) @ Cws @ _power(Css, -0.5)
    return BestLinear(best, min_norm, corr, mean, max(mean - gap, 0.0), gap, 0.0, moments)


def _power(C: np.ndarray, exponent: float) -> np.ndarray:
    """Return a power of a covariance matrix; a negative power is that of the pseudo-inverse."""
    values, vectors = np.linalg.eigh(C)
    keep = values > 1e-12 * max(values.max(initial=0.0), 1e-300)
    powers = np.zeros_like(values)
    powers[keep] = values[keep] ** exponent
    return (vectors * powers) @ vectors.T
