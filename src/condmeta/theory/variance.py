"""Var(tau)^2 = E ||w - tau(s)||^2 of any conditioning function, and the gap between two of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks import TaskSet
from condmeta.theory.sources import N_TASKS, draw, is_environment, probabilities, weights_of


class Estimate(NamedTuple):
    """Hold a number and how well it is known.

    Attributes
    ----------
    value : float
    error : float
        Standard error; 0 in closed form. Over the tasks of a sample it is that of their mean as an
        estimate for the environment they come from.

    Examples
    --------
    >>> import condmeta as cm
    >>> cm.theory.variance(cm.environments.Circle(radius=8.0, d=20), "best")
    Estimate(value=20.0, error=0.0)
    """

    value: float
    error: float = 0.0

    @property
    def root(self) -> float:
        """The square root, Var(tau) itself."""
        return float(np.sqrt(max(self.value, 0.0)))


class _Parts(NamedTuple):
    """V^2 as an exact part, with its numerical error, plus the mean of one number a task."""

    exact: float
    error: float
    draws: Any = 0.0


def variance(
    source: Any,
    tau: Any,
    *,
    side: Any = None,
    p: Any = None,
    n_tasks: int = N_TASKS,
    random_state: Any = 0,
) -> Estimate:
    """Return Var(tau)^2 = E ||w - tau(s)||^2 of a conditioning function.

    Parameters
    ----------
    source : environment, SampledTaskSet or array (T, d)
        Where the weights w come from. Environments answer in closed form where they can: for every
        constant, and for their own ``tau``. For other functions tasks are drawn, and

            Var(tau)^2 = Var(tau_rho)^2 + E ||tau(s) - tau_rho(s)||^2      (eq. gap_closed_form)

        is averaged over them if the environment knows tau_rho, which needs no drawn weights.
    tau : {"zero", "mean", "best"}, number, array (d,) or (T, d), or callable
        0 (every task on its own), w_rho, tau_rho (environments only), a constant, one bias a task,
        or a function of the side information that returns (T, d).
    side : optional
        What a callable is called with, for a sample; by default, and for environments, the
        (drawn) task set.
    p : array (T,), optional
        Probabilities of the tasks of a sample.
    n_tasks, random_state
        How many tasks to draw, and their seed.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> import condmeta as cm
    >>> env = cm.environments.Circle(radius=3.0, d=6, sigma_w=0.5)
    >>> [cm.theory.variance(env, tau).value for tau in ("zero", "mean", "best")]
    [10.5, 10.5, 1.5]
    >>> cm.theory.variance([[1.0, 0], [3, 0]], "mean").value
    1.0
    """
    return _mean(_parts(source, tau, side, p, n_tasks, random_state), p)


def gap(
    source: Any,
    tau: Any = "best",
    against: Any = "mean",
    *,
    side: Any = None,
    p: Any = None,
    n_tasks: int = N_TASKS,
    random_state: Any = 0,
) -> Estimate:
    """Return Var(against)^2 - Var(tau)^2: what tau can gain.

    By default conditional against unconditional, E ||w_rho - tau_rho(s)||^2 (eq.
    gap_conditional_unconditional); ``against="zero"`` is against independent learning. Both are
    averaged over the same tasks. The parameters are those of `variance`.

    Examples
    --------
    >>> import condmeta as cm
    >>> env = cm.environments.Circle(radius=3.0, center=1.0, d=4)
    >>> cm.theory.gap(env).value, cm.theory.gap(env, against="zero").value
    (9.0, 13.0)
    """
    options = side, p, n_tasks, random_state
    one, other = _parts(source, tau, *options), _parts(source, against, *options)
    error = float(np.hypot(one.error, other.error))
    return _mean(_Parts(other.exact - one.exact, error, other.draws - one.draws), p)


def _mean(parts: _Parts, p: Any) -> Estimate:
    draws = np.asarray(parts.draws)
    if draws.ndim == 0:
        return Estimate(parts.exact, parts.error)
    p = probabilities(p, draws.size)
    mean = float(p @ draws)
    spread = np.sqrt(p**2 @ (draws - mean) ** 2)
    return Estimate(parts.exact + mean, float(np.hypot(parts.error, spread)))


def _parts(source, tau, side, p, n_tasks, random_state) -> _Parts:
    if not is_environment(source):
        W = weights_of(source)
        given = source if side is None and isinstance(source, TaskSet) else side
        return _Parts(0.0, 0.0, _distances(W, _thetas(tau, W, given, p)))
    if p is not None or side is not None:
        raise DataError("p and side go with a sample: an environment draws its own tasks.")
    known = hasattr(source, "variances") and hasattr(source, "w_rho")
    if known and not callable(tau):
        return _closed_form(source, tau)
    if known and hasattr(source, "tau"):
        v = source.variances()
        if tau == source.tau:
            return _Parts(v.tau, v.error)
        tasks = draw(source, n_tasks, random_state)
        best = source.tau(tasks)
        return _Parts(v.tau, v.error, _distances(best, _thetas(tau, best, tasks, None)))
    tasks = draw(source, n_tasks, random_state)
    if isinstance(tau, str) and tau == "best":
        if not hasattr(source, "tau"):
            raise DataError(f"{type(source).__name__} has no 'tau', its best function: give one.")
        tau = source.tau
    W = weights_of(tasks)
    return _Parts(0.0, 0.0, _distances(W, _thetas(tau, W, tasks, None)))


def _closed_form(environment, tau) -> _Parts:
    """Return V^2 of a constant, or of tau_rho."""
    v = environment.variances()
    if isinstance(tau, str):
        named = {"zero": (v.zero, 0.0), "mean": (v.mean, 0.0), "best": (v.tau, v.error)}
        if tau in named:
            return _Parts(*named[tau])
    w_rho = np.asarray(environment.w_rho, dtype=np.float64)[None]
    theta = _thetas(tau, w_rho, None, None)
    return _Parts(v.mean + float(_distances(w_rho, theta)[0]), 0.0)


def _distances(W: np.ndarray, theta: np.ndarray) -> np.ndarray:
    return ((W - theta) ** 2).sum(axis=1)


def _thetas(tau: Any, W: np.ndarray, given: Any, p: Any) -> np.ndarray:
    """Return the bias of each task, as an array that broadcasts to (T, d)."""
    if isinstance(tau, str):
        if tau == "zero":
            return np.zeros(W.shape[1])
        if tau == "mean":
            return probabilities(p, len(W)) @ W
        raise DataError(
            "tau must be 'zero', 'mean', a number, an array or a callable; 'best' is known to "
            f"environments alone. Got {tau!r}."
        )
    if callable(tau):
        if given is None:
            raise DataError("tau is a function: give what it is called with as side=.")
        tau = tau(given)
    theta = np.asarray(tau, dtype=np.float64)
    if theta.shape not in ((), W.shape[1:], W.shape):
        raise DataError(
            f"tau must give a number, {W.shape[1]} of them, or the shape {W.shape}. "
            f"Got {theta.shape} instead."
        )
    if not np.isfinite(theta).all():
        raise DataError("tau must be finite: it gave NaN or infinity.")
    return theta
