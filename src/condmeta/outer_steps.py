r"""Outer steps of Algorithm 1: how the gradient of a task changes the map.

`ConditionalSGDRegressor(meta_step=...)` and the classifier take a number (the paper's step), a
function of t = 1, 2, ... that returns the step of task t, or an object such as those below:

    W_{t+1}, state_{t+1} = step(W_t, G_t, t, state_t),   G_t = (Phi(s_t), 1) g_t^T   (k+1, d),

in which W is the map, M transposed over b, and `state` is all that the step remembers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np

from condmeta.errors import DataError
from condmeta.persistence.fields import number
from condmeta.persistence.registry import construct, register
from condmeta.typing import MetaStep

__all__ = ["Adam", "Decay", "Momentum", "OuterStep", "get_outer_step"]

VALID_STEP = (
    "a float in (0, inf), a function of t = 1, 2, ..., or an object with methods 'start' and 'step'"
)


class OuterStep(Protocol):
    """What an outer step provides. Classes need not inherit from it.

    A step must not change its arguments. If `state` is None, a number, an array, or a tuple, list
    or dict of these, model files can hold it, and `partial_fit` continues exactly after `load`. The
    object itself is a parameter of the learner: for model files its class must be registered with
    `condmeta.persistence.register`, and its repr is shown by the learner.
    """

    def start(self, W: np.ndarray) -> Any:
        """Return the state before the first task; W (k+1, d) is the first map, all zeros."""

    def step(self, W: np.ndarray, G: np.ndarray, t: int, state: Any) -> tuple[np.ndarray, Any]:
        """Return the map after task t and the new state, from the map and its gradient G."""


@register(restore=construct, fields={"rate": number(), "power": number()})
@dataclass(frozen=True)
class Decay:
    """Take steps that shrink with the number of tasks: W - rate / t^power G.

    Parameters
    ----------
    rate : float in (0, inf)
        The first step.
    power : float in [0, inf)
        0.5 is the usual schedule of a stream of unknown length; 0 is a constant step.

    Examples
    --------
    >>> import condmeta as cm
    >>> learner = cm.ConditionalSGDRegressor(None, meta_step=cm.outer_steps.Decay(0.5))
    >>> learner.fit([[1.0], [1.0], [1.0]], [2.0, 2.0, 2.0], task=[1, 2, 3]).b_.round(3)
    array([0.451])
    """

    rate: float
    power: float = 0.5

    def __post_init__(self) -> None:
        _check_numbers(self, {"rate": ("(", np.inf), "power": ("[", np.inf)})

    def start(self, W: np.ndarray) -> None:
        """Return None: there is nothing to remember."""

    def step(self, W: np.ndarray, G: np.ndarray, t: int, state: None) -> tuple[np.ndarray, None]:
        """Return W - rate / t^power G."""
        return W - self.rate / t**self.power * G, None


@register(restore=construct, fields={"rate": number(), "momentum": number()})
@dataclass(frozen=True)
class Momentum:
    """Add a share of the last move to each step: V <- momentum V + G, W <- W - rate V.

    Parameters
    ----------
    rate : float in (0, inf)
    momentum : float in [0, 1)
        0 is the plain step.

    Examples
    --------
    >>> import condmeta as cm
    >>> learner = cm.ConditionalSGDRegressor(None, meta_step=cm.outer_steps.Momentum(0.1, 0.5))
    >>> learner.fit([[1.0], [1.0], [1.0]], [2.0, 2.0, 2.0], task=[1, 2, 3]).b_.round(3)
    array([0.117])
    """

    rate: float
    momentum: float = 0.9

    def __post_init__(self) -> None:
        _check_numbers(self, {"rate": ("(", np.inf), "momentum": ("[", 1.0)})

    def start(self, W: np.ndarray) -> np.ndarray:
        """Return V = 0."""
        return np.zeros_like(W)

    def step(
        self, W: np.ndarray, G: np.ndarray, t: int, state: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return W - rate V and V."""
        V = self.momentum * state + G
        return W - self.rate * V, V


@register(
    restore=construct,
    fields={"rate": number(), "beta1": number(), "beta2": number(), "eps": number()},
)
@dataclass(frozen=True)
class Adam:
    r"""Divide the mean gradient by the root mean square gradient, entry by entry.

        m <- beta1 m + (1 - beta1) G,          v <- beta2 v + (1 - beta2) G^2,
        W <- W - rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps).

    Parameters
    ----------
    rate : float in (0, inf)
        About the size of a step, in each entry of the map.
    beta1, beta2 : float in [0, 1)
        How slowly the means forget.
    eps : float in (0, inf)

    References
    ----------
    Kingma, Ba: Adam: A Method for Stochastic Optimization, 2015.

    Examples
    --------
    >>> import condmeta as cm
    >>> learner = cm.ConditionalSGDRegressor(None, meta_step=cm.outer_steps.Adam(0.2))
    >>> learner.fit([[1.0], [1.0], [1.0]], [2.0, 2.0, 2.0], task=[1, 2, 3]).b_.round(3)
    array([0.2])
    """

    rate: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8

    def __post_init__(self) -> None:
        positive, share = ("(", np.inf), ("[", 1.0)
        ranges = {"rate": positive, "beta1": share, "beta2": share, "eps": positive}
        _check_numbers(self, ranges)

    def start(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return m = 0 and v = 0."""
        return np.zeros_like(W), np.zeros_like(W)

    def step(
        self, W: np.ndarray, G: np.ndarray, t: int, state: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """Return the map and (m, v)."""
        m = self.beta1 * state[0] + (1 - self.beta1) * G
        v = self.beta2 * state[1] + (1 - self.beta2) * G**2
        size = np.sqrt(v / (1 - self.beta2**t)) + self.eps
        return W - self.rate * (m / (1 - self.beta1**t)) / size, (m, v)


class _Scheduled:
    """The plain step with a size that a function of t gives."""

    def __init__(self, size: Callable[[int], float]):
        self.size = size

    def start(self, W: np.ndarray) -> None:
        """Return None: there is nothing to remember."""

    def step(self, W: np.ndarray, G: np.ndarray, t: int, state: None) -> tuple[np.ndarray, None]:
        """Return W - size(t) G."""
        size = self.size(t)
        if not (isinstance(size, Real) and 0 <= size < np.inf):
            raise DataError(f"meta_step({t}) must be a float in [0, inf). Got {size!r} instead.")
        return W - size * G, None


def is_plain(meta_step: Any) -> bool:
    """Return whether a meta_step is a number, the paper's constant step."""
    return isinstance(meta_step, Real) and not isinstance(meta_step, bool)


def is_outer_step(meta_step: Any) -> bool:
    """Return whether a meta_step is a positive number, a function, or an object with a step."""
    if is_plain(meta_step):
        return 0 < meta_step < np.inf
    is_object = hasattr(meta_step, "start") and hasattr(meta_step, "step")
    return not isinstance(meta_step, type) and (is_object or callable(meta_step))


def get_outer_step(meta_step: MetaStep) -> OuterStep:
    """Return the outer step of a number, of a function of t, or the object itself.

    Examples
    --------
    >>> from condmeta.outer_steps import get_outer_step
    >>> get_outer_step(lambda t: 1 / t).step(np.zeros(1), np.ones(1), 4, None)
    (array([-0.25]), None)
    """
    if not is_outer_step(meta_step):
        raise DataError(f"An outer step must be {VALID_STEP}. Got {meta_step!r} instead.")
    if is_plain(meta_step):
        return Decay(float(meta_step), 0.0)
    return meta_step if hasattr(meta_step, "step") else _Scheduled(meta_step)


def _check_numbers(step: Any, ranges: dict[str, tuple[str, float]]) -> None:
    """Raise if a parameter lies outside its range: ("(", high) from above 0, ("[", high) from 0."""
    for name, (left, high) in ranges.items():
        value = getattr(step, name)
        is_inside = is_plain(value) and 0 <= value < high and (value > 0 or left == "[")
        if not is_inside:
            raise DataError(
                f"The '{name}' parameter of {type(step).__name__} must be a float in "
                f"{left}0, {high:g}). Got {value!r} instead."
            )
