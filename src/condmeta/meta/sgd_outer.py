r"""Algorithm 1 with any outer step: schedules, momentum, Adam, or the user's own.

    theta_t = M_t Phi(s_t) + b_t,   G_t = Phi1(s_t) g_t^T,
    W_{t+1}, memory = step(W_t, G_t, t, memory),

with W = (M, b) feature-major, (k+1, d). For the constant step `meta.sgd` has closed forms of the
averages; here their sum is kept, again without a copy of the map for each step:

    W_{T+1}                                       "last"
    total / T,            total = sum_{t<=T} W_t          "uniform"
    total / (T(T+1)/2),   total = sum_{t<=T} t W_t        "linear"
    total / T,            total = sum_{t<=T} W_{t+1}      gradient_at="average"
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from condmeta.errors import DataError, DivergenceError
from condmeta.outer_steps import OuterStep
from condmeta.persistence.fields import ANY, floats
from condmeta.persistence.registry import register_tuple


@register_tuple(
    fields={
        "W": floats("k+1 d"), "total": floats("k+1 d"), "phi_sum": floats("k+1"), "memory": ANY,
    }
)  # fmt: skip
class OuterState(NamedTuple):
    """The state of the meta-learner after T tasks; it is never changed in place.

    Attributes
    ----------
    W : (k+1, d)        the current map W_{T+1}
    total : (k+1, d)    sum of the iterates that the average holds
    phi_sum : (k+1,)    sum of Phi1; its last entry is T
    memory : Any        what the outer step remembers
    """

    W: np.ndarray
    total: np.ndarray
    phi_sum: np.ndarray
    memory: Any

    @classmethod
    def start(cls, k: int, d: int, outer: OuterStep) -> Self:
        """Return the state before the first task, M_1 = 0 and b_1 = 0."""
        W = np.zeros((k + 1, d))
        return cls(W, np.zeros((k + 1, d)), np.zeros(k + 1), outer.start(W.copy()))

    @property
    def n_tasks(self) -> int:
        """T, the tasks seen."""
        return int(self.phi_sum[-1])

    @property
    def phi_mean(self) -> np.ndarray:
        """The mean training Phi (k,), 0 before the first task."""
        return self.phi_sum[:-1] / max(self.n_tasks, 1)

    def map(self, averaging: str = "uniform", gradient_at: str = "current") -> np.ndarray:
        """Return the learned map (k+1, d): M transposed over b."""
        T = max(self.n_tasks, 1)
        if gradient_at == "average" or averaging == "uniform":
            return self.total / T
        return self.W if averaging == "last" else self.total / (T * (T + 1) / 2)


def outer_steps(
    state: OuterState, X, y, offsets, Phi, gradient: Callable, outer: OuterStep,
    averaging: str, gradient_at: str,
) -> tuple[OuterState, int]:  # fmt: skip
    """Run Algorithm 1 over T tasks; `gradient(theta, X, y)` returns g.

    X (N, d); y (N,); offsets (T+1,); Phi (T, k). Tasks without points are skipped. Returns the new
    state and -1, or the state before the first task whose step is not finite, and its position.
    """
    for t, (lo, hi) in enumerate(pairwise(offsets)):
        if lo == hi:
            continue
        step = state.n_tasks + 1
        phi1 = np.append(Phi[t], 1.0)
        at_average = gradient_at == "average"
        W = state.total / (step - 1) if at_average and step > 1 else state.W
        try:
            g = gradient(phi1 @ W, X[lo:hi], y[lo:hi])
        except DivergenceError as error:
            error.position = t
            raise
        after, memory = _stepped(outer, state, np.outer(phi1, g), step)
        if not np.isfinite(after).all():
            return state, t
        added = after if at_average else (step if averaging == "linear" else 1) * state.W
        state = OuterState(after, state.total + added, state.phi_sum + phi1, memory)
    return state, -1


def _stepped(outer: OuterStep, state: OuterState, G: np.ndarray, t: int) -> tuple[np.ndarray, Any]:
    """Return the map and the memory after a step, or say what is wrong with the result."""
    result = outer.step(state.W.copy(), G, t, state.memory)  # a step may write in its W
    if not (isinstance(result, tuple) and len(result) == 2):
        raise DataError(
            f"{type(outer).__name__}.step must return (W, state). Got {type(result).__name__} "
            "instead. condmeta.testing.check_outer_step checks an outer step."
        )
    W = np.asarray(result[0], dtype=float)
    if W.shape != G.shape:
        raise DataError(
            f"{type(outer).__name__}.step must return W of shape {G.shape}. Got {W.shape} instead."
        )
    return W, result[1]
