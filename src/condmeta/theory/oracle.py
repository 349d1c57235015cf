r"""The best linear conditioning function tau(s) = M Phi(s) + b in hindsight.

With the moments of weights and features (`condmeta.theory.moments`) and ^+ the pseudo-inverse,

    M = Cws Css^+,   b = w_rho - M nu,   Corr = Cww^{+/2} Cws Css^{+/2},
    V(w_rho)^2 - min V^2 = Tr(Cws Css^+ Cws^T) = Tr(Cww Corr Corr^T) = ||M Css^{1/2}||_F^2.

The paper prints the factors of the last two in the other order; see docs/errata.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.theory.moments import Moments, exact_moments, sample_moments
from condmeta.theory.sources import (
    N_TASKS,
    draw,
    features_of,
    is_environment,
    map_features,
    probabilities,
    weights_of,
)


class LinearMap(NamedTuple):
    """Hold tau(s) = M Phi(s) + b; called with Phi (T, k) it gives (T, d).

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> cm.theory.LinearMap(np.ones((2, 1)), np.zeros(2))([[3.0]])
    array([[3., 3.]])
    """

    M: np.ndarray
    b: np.ndarray

    def __call__(self, Phi: Any) -> np.ndarray:
        return np.asarray(Phi, dtype=np.float64) @ self.M.T + self.b

    @property
    def norm(self) -> float:
        """||(M, b)||_F, which Theorem 2 charges for."""
        return float(np.sqrt((self.M**2).sum() + (self.b**2).sum()))


class BestLinear(NamedTuple):
    """Hold the best linear conditioning function and what it is worth.

    Attributes
    ----------
    map : LinearMap
        M = Cws Css^+ (of least norm among the best M) and b = w_rho - M nu.
    min_norm : LinearMap
        The best pair of least ||(M, b)||_F. It is the same function; the pair differs from `map`
        only where the features have a constant direction.
    corr : (d, k) array
        Cww^{+/2} Cws Css^{+/2}; its singular values lie in [0, 1].
    mean, variance : float
        V(w_rho)^2 and the least V^2 over linear functions.
    gap : float
        Their difference, Tr(Cws Css^+ Cws^T).
    error : float
        Standard error of `variance`; 0 for given atoms and in closed form.
    moments : Moments

    Examples
    --------
    >>> import condmeta as cm
    >>> env = cm.environments.Circle(radius=2.0, d=3)
    >>> best = cm.theory.best_linear(env, cm.feature_maps.CircleMap())
    >>> best.map.M.tolist(), best.mean, best.variance
    ([[2.0, 0.0], [0.0, 2.0], [0.0, 0.0]], 7.0, 3.0)
    """

    map: LinearMap
    min_norm: LinearMap
    corr: np.ndarray
    mean: float
    variance: float
    gap: float
    error: float
    moments: Moments

    def excess(self, M: Any, b: Any) -> float:
        """Return V(M, b)^2 - min V^2 = E ||(M - M_rho) Phi + b - b_rho||^2 of another pair."""
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
        root = _power(m.Css, 0.5)
        forms = (
            np.trace(m.Cws @ _power(m.Css, -1.0) @ m.Cws.T),
            np.trace(m.Cww @ self.corr @ self.corr.T),
            ((self.map.M @ root) ** 2).sum(),
        )
        return float(forms[0]), float(forms[1]), float(forms[2])


def best_linear(
    source: Any,
    Phi: Any = None,
    *,
    p: Any = None,
    n_tasks: int = N_TASKS,
    random_state: Any = 0,
) -> BestLinear:
    """Return the best linear conditioning function in hindsight.

    Parameters
    ----------
    source : environment, SampledTaskSet or array (T, d)
        Where the weights w come from. `Clusters` with `MeanInput` and `Circle` with `CircleMap`
        are answered in closed form; from other environments tasks are drawn.
    Phi : array (T, k), feature map, list of maps, "auto" or None
        The features of the tasks, or the map that computes them; None is unconditional (k = 0).
    p : array (T,), optional
        Probabilities of the tasks of a sample; all the same by default, so that covariances have
        the divisor T and all identities are exact.
    n_tasks, random_state
        How many tasks to draw where there is no closed form, and their seed.

    Returns
    -------
    BestLinear

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
    if is_environment(source):
        if p is not None:
            raise DataError("p goes with a sample: an environment has its own probabilities.")
        moments = exact_moments(source, Phi)
        if moments is not None:
            return from_moments(moments)
        tasks = draw(source, n_tasks, random_state)
        W, features = weights_of(tasks), map_features(tasks, Phi)
        best = from_moments(sample_moments(W, features, probabilities(None, len(W))))
        misses = ((W - best.map(features)) ** 2).sum(axis=1)
        return best._replace(error=float(misses.std() / np.sqrt(len(W))))
    W = weights_of(source)
    features = features_of(source, Phi, len(W))
    return from_moments(sample_moments(W, features, probabilities(p, len(W))))


def from_moments(moments: Moments) -> BestLinear:
    """Return the best linear conditioning function of given moments."""
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
    return BestLinear(
        LinearMap(M, w_rho - M @ nu),
        LinearMap(joint[:, :-1], joint[:, -1]),
        _power(Cww, -0.5) @ Cws @ _power(Css, -0.5),
        mean,
        max(mean - gap, 0.0),
        gap,
        0.0,
        moments,
    )


def _power(C: np.ndarray, exponent: float) -> np.ndarray:
    """Return a power of a covariance; negative powers are pseudo-inverses."""
    values, vectors = np.linalg.eigh(C)
    keep = values > 1e-12 * max(values.max(initial=0.0), 1e-300)
    powers = np.zeros_like(values)
    powers[keep] = values[keep] ** exponent
    return (vectors * powers) @ vectors.T
