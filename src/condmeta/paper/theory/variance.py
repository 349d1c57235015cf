"""Var(tau)^2 = E ||w - tau(s)||^2 of a conditioning function, and the gap between two of them."""

from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.paper.environments import own
from condmeta.paper.theory.sources import N_TASKS, draw, probabilities, weights_of
from condmeta.tasks import TaskSet
from condmeta.typing import Environment, Numbers, RandomState, Tau


class Estimate(NamedTuple):
    """Hold a number and its standard error.

    Attributes
    ----------
    value : float
    error : float
        Standard error; 0 in closed form. For a sample of tasks it is the standard error of the
        sample mean as an estimate of the environment's mean.

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
    """V^2 as an exact part with its numerical error, plus the mean of one number per task."""

    exact: float
    error: float
    draws: Any = 0.0


def variance(
    source: Environment | TaskSet | Numbers, tau: Tau, *, side: object = None,
    p: Numbers | None = None, n_tasks: int = N_TASKS, random_state: RandomState = 0,
) -> Estimate:  # fmt: skip
    """Return Var(tau)^2 = E ||w - tau(s)||^2 of a conditioning function.

    Parameters
    ----------
    source : environment, SampledTaskSet or array (T, d)
        The source of the weights w. `Clusters` and `Circle` have a closed form for every constant
        tau and for tau_rho. For another tau, tasks are drawn. If the environment has a method
        ``tau``, the mean in

            Var(tau)^2 = Var(tau_rho)^2 + E ||tau(s) - tau_rho(s)||^2      (eq. gap_closed_form)

        is taken over them; otherwise the mean of ||w - tau(s)||^2.
    tau : {"zero", "mean", "best"}, number, array (d,) or (T, d), or callable
        "zero" is the bias 0 (independent learning), "mean" is w_rho, "best" is tau_rho (only for
        environments). Otherwise a constant, one bias for each task, or a function of the side
        information that returns (T, d).
    side : optional
        The argument of a callable `tau`, for a sample; by default the task set. For environments
        it is always the drawn task set.
    p : array (T,), optional
        Probabilities of the tasks of a sample.
    n_tasks, random_state
        Number and seed of the tasks to draw.

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
    source: Environment | TaskSet | Numbers, tau: Tau = "best", against: Tau = "mean", *,
    side: object = None, p: Numbers | None = None, n_tasks: int = N_TASKS,
    random_state: RandomState = 0,
) -> Estimate:  # fmt: skip
    """Return Var(against)^2 - Var(tau)^2: the gain of tau over another function.

    The default compares conditional with unconditional learning: E ||w_rho - tau_rho(s)||^2 (eq.
    gap_conditional_unconditional). ``against="zero"`` compares with independent learning. Both
    variances are means over the same tasks. The parameters are those of `variance`.

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


def _parts(source: Any, tau: Any, side: Any, p: Any, n_tasks: int, random_state: Any) -> _Parts:
    if not hasattr(source, "sample"):
        W = weights_of(source)
        given = source if side is None and isinstance(source, TaskSet) else side
        return _Parts(0.0, 0.0, _distances(W, _thetas(tau, W, given, p)))
    if p is not None or side is not None:
        raise DataError("p and side are for a sample; an environment draws its own. Omit them.")
    known = hasattr(source, "variances") and hasattr(source, "w_rho")
    if known and not callable(tau):
        return _closed_form(source, tau)
    if known and hasattr(source, "tau"):
        v = own.variances(source)
        if tau == source.tau:
            return _Parts(v.tau, v.error)
        tasks = draw(source, n_tasks, random_state)
        best = own.tau(source, tasks)
        return _Parts(v.tau, v.error, _distances(best, _thetas(tau, best, tasks, None)))
    tasks = draw(source, n_tasks, random_state)
    if isinstance(tau, str) and tau == "best":
        if not hasattr(source, "tau"):
            raise DataError(f"{type(source).__name__} has no method 'tau': give a tau, not 'best'.")
        tau = own.tau(source, tasks)
    W = weights_of(tasks)
    return _Parts(0.0, 0.0, _distances(W, _thetas(tau, W, tasks, None)))


def _closed_form(environment: Any, tau: Any) -> _Parts:
    """Return V^2 of a constant, or of tau_rho."""
    v = own.variances(environment)
    named = {"zero": (v.zero, 0.0), "mean": (v.mean, 0.0), "best": (v.tau, v.error)}
    if isinstance(tau, str) and tau in named:
        return _Parts(*named[tau])
    w_rho = own.mean_weights(environment)[None]
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
            "tau must be 'zero', 'mean', a number, an array or a callable; 'best' is only for "
            f"environments. Got {tau!r}."
        )
    if callable(tau):
        if given is None:
            raise DataError("tau is a function: give its argument as side=.")
        tau = tau(given)
    theta = np.asarray(tau, dtype=np.float64)
    if theta.shape not in ((), W.shape[1:], W.shape):
        raise DataError(
            f"tau must be one number, {W.shape[1]} numbers, or have the shape {W.shape}. "
            f"Got {theta.shape} instead."
        )
    if not np.isfinite(theta).all():
        raise DataError("tau must be finite. It has NaN or infinity.")
    return theta
