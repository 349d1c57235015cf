r"""The excess risk of weight vectors: in closed form, or by Monte Carlo with its standard error.

Let off = w - w_mu and let c be the centre of a task's inputs. The error e = <x, w> - y of a new
point has the mean <c, off> and the variance v + noise^2, v = sigma_x^2 ||off||^2 (over d for inputs
on the sphere).

- The squared loss needs no more: the excess risk is (<c, off>^2 + v) / 2 for all inputs.
- Gaussian inputs give a Gaussian e, for which every loss that is piecewise linear or quadratic has
  a mean in closed form (`gaussian_risk`).
- In all other cases points are drawn, and the two losses of a point are subtracted.
"""

from typing import Any, Literal, overload

import numpy as np
from scipy.special import ndtr

from condmeta.errors import DataError
from condmeta.losses import Loss
from condmeta.paper.environments import SampledTaskSet, own
from condmeta.paper.theory.sources import loss_of_numbers
from condmeta.tasks.splits import make_generator
from condmeta.typing import Environment, LossLike, Numbers, RandomState

N_POINTS = 2000  # drawn for each task if there is no closed form
BLOCK = 1 << 21  # numbers of the points held at a time


@overload
def excess_risk(
    environment: Environment, tasks: SampledTaskSet, coef: Numbers, *, loss: LossLike = "absolute",
    n_points: int = N_POINTS, random_state: RandomState = 0, return_error: Literal[False] = False,
) -> np.ndarray: ...  # fmt: skip
@overload
def excess_risk(
    environment: Environment, tasks: SampledTaskSet, coef: Numbers, *, loss: LossLike = "absolute",
    n_points: int = N_POINTS, random_state: RandomState = 0, return_error: Literal[True],
) -> tuple[np.ndarray, np.ndarray]: ...  # fmt: skip
def excess_risk(
    environment: Environment, tasks: SampledTaskSet, coef: Numbers, *, loss: LossLike = "absolute",
    n_points: int = N_POINTS, random_state: RandomState = 0, return_error: bool = False,
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return the excess risk R_mu(w) - R_mu(w_mu) of each task, (T,).

    The risk of w is the mean loss of <x, w> over all points of the task, w_mu are its true weights.
    The mean over many tasks estimates E(tau) - E* of the paper, without test points.

    Parameters
    ----------
    environment : Clusters, Circle, Latent, or one with `sample_points(tasks, n_points, rng)`
        The squared loss has a closed form in the first three. With Gaussian inputs so have all
        losses of `condmeta.losses`. Elsewhere `sample_points` draws points X (T, n, d), y (T, n).
    tasks : SampledTaskSet
        Tasks drawn from the environment.
    coef : array (T, d)
        The weight vector of each task.
    loss : str or loss
        A loss of numbers: environments draw no classes. For asymmetric losses w_mu need not have
        the least risk, so that an excess risk may be negative.
    n_points, random_state
        Points to draw for each task, and the seed, if there is no closed form.
    return_error : bool
        Whether to return the standard errors (T,) as well; they are 0 in closed form.

    Examples
    --------
    >>> import condmeta as cm
    >>> env = cm.environments.Circle(d=3, n=5)
    >>> tasks = env.sample(4, random_state=0)
    >>> cm.theory.excess_risk(env, tasks, tasks.weights).tolist()
    [0.0, 0.0, 0.0, 0.0]
    >>> values, errors = cm.theory.excess_risk(env, tasks, tasks.weights + 1, return_error=True)
    >>> bool((values > 0).all()), bool((errors < 0.1 * values).all())
    (True, True)
    """
    loss = loss_of_numbers(loss)
    coef = np.asarray(coef, dtype=np.float64)
    if coef.shape != tasks.weights.shape:
        raise DataError(f"coef must have the shape {tasks.weights.shape}. Got {coef.shape}.")
    values = _closed_form(environment, tasks, coef - tasks.weights, loss)
    errors = np.zeros(len(coef))
    if values is None:
        values, errors = _drawn(environment, tasks, coef, loss, n_points, random_state)
    return (values, errors) if return_error else values


def _closed_form(
    environment: Any, tasks: SampledTaskSet, off: np.ndarray, loss: Any
) -> np.ndarray | None:
    inputs = getattr(environment, "inputs", None)
    if tasks.centers is None or tasks.noise is None or inputs not in ("gaussian", "unit"):
        return None
    mean = (tasks.centers * off).sum(axis=1)
    variance = environment.sigma_x**2 * (off**2).sum(axis=1)
    if inputs == "unit":
        variance /= off.shape[1]
    if getattr(loss, "name", None) == "squared":
        return (mean**2 + variance) / 2
    if inputs == "gaussian" and isinstance(loss, Loss):
        spread = np.sqrt(variance + tasks.noise**2)
        return gaussian_risk(loss, mean, spread) - gaussian_risk(loss, 0.0 * mean, tasks.noise)
    return None


def _drawn(
    environment: Any, tasks: Any, coef: np.ndarray, loss: Any, n_points: Any, random_state: Any
):
    """Return the mean difference of losses (T,) over drawn points, and its standard error."""
    if not hasattr(environment, "sample_points"):
        raise DataError(
            f"excess_risk has no closed form for {type(environment).__name__} and cannot draw "
            "points of its tasks: write a method sample_points(tasks, n_points, rng) that "
            "returns X (T, n, d) and y (T, n)."
        )
    rng, values, errors = make_generator(random_state), np.empty(len(coef)), np.empty(len(coef))
    step = max(1, BLOCK // (n_points * coef.shape[1]))
    for lo in range(0, len(coef), step):
        at = np.arange(lo, min(lo + step, len(coef)))
        part = tasks.subset(at)
        X, y = own.sample_points(environment, part, n_points, rng)
        ours, best = (loss.value((X @ w[:, :, None])[:, :, 0], y) for w in (coef[at], part.weights))
        values[at] = (ours - best).mean(axis=1)
        errors[at] = (ours - best).std(axis=1, ddof=1) / np.sqrt(n_points)
    return values, errors


def gaussian_risk(loss: Loss, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    r"""Return E l(e) of e ~ N(mean, spread^2) for a loss given by a row of numbers.

    On either side of its dead zone such a loss is linear, s (e - z)_+ with the largest slope s, or
    ((e - z)_+^2 - (e - z - c s)_+^2) / (2 c) with the curvature c.

    Examples
    --------
    >>> from condmeta.losses import Absolute
    >>> gaussian_risk(Absolute(), np.array([0.0, -3.0]), np.array([1.0, 0.0])).round(4)
    array([0.7979, 3.    ])
    """
    total = np.zeros_like(mean)
    for sign, slope in ((1.0, loss.high), (-1.0, -loss.low)):
        m = sign * mean - loss.dead_zone
        if not loss.curvature:
            total += slope * _plus(m, spread)
            continue
        square = _plus_squared(m, spread)
        if np.isfinite(slope):
            square -= _plus_squared(m - loss.curvature * slope, spread)
        total += square / (2 * loss.curvature)
    return total


def _ratio(m: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return P(e > 0) and the density of e / s at 0, of e ~ N(m, s^2)."""
    u = np.divide(m, s, out=np.where(m > 0, np.inf, -np.inf), where=s > 0)
    return ndtr(u), np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)


def _plus(m: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Return E max(e, 0) of e ~ N(m, s^2)."""
    above, density = _ratio(m, s)
    return m * above + s * density


def _plus_squared(m: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Return E max(e, 0)^2 of e ~ N(m, s^2)."""
    above, density = _ratio(m, s)
    return (m**2 + s**2) * above + m * s * density
