r"""Context: levels of tasks that depend on the inputs of the tasks.

Tasks whose inputs are larger on average may have another level than their side information says
(Mundlak, "On the pooling of time series and cross section data", Econometrica 1978). With m_t the
mean of a task's inputs and the last coordinate of w the level,

    w_t ~ N(W phi_t + e gamma^T (m_t - c), H),   e = (0, .., 0, 1).

m_t is known only through the inputs seen: x_i = m_t + v_i, Cov(m_t) = B, Cov(v_i) = V. The best
linear estimate from n inputs with the sum S around c is B (n B + V)^-1 S. The row to predict is one
more input of the task, so that its own x moves the level as well: a task without points has the
coefficients of the pooled regression, and with more points they come close to those within tasks.

In coordinates a = Q (x - c) with Cov(a) = I the axes of B and V are the same: B = diag(r), where r
is the share of the variance that lies between tasks, V = diag(1 - r), and the estimate is
r / (n r + 1 - r) times the sum.
"""

from typing import NamedTuple

import numpy as np

from condmeta.inner.squared import SquaredState
from condmeta.persistence.fields import floats, number
from condmeta.persistence.registry import register_tuple

TINY = 1e-300


def _width(state: dict, sizes: dict[str, int]) -> None:
    sizes["d"] = sizes["p"] + 1  # of weight vectors


@register_tuple(
    fields={
        "center": floats("p"), "axes": floats("q p"), "shares": floats("q", low=0, high=1),
        "effect": floats("q"), "included": number(low=0),
    },
    rule=_width,
)  # fmt: skip
class Context(NamedTuple):
    """How the level of a task goes with its inputs.

    center (p,) c; axes (p, p) Q; shares (p,) r; effect (p,), gamma in the coordinates a; included,
    the variance of levels due to unknown m_t that H includes.
    """

    center: np.ndarray
    axes: np.ndarray
    shares: np.ndarray
    effect: np.ndarray
    included: float = 0.0

    def widen(self, kept: np.ndarray) -> "Context":
        """Return the context of all inputs, from that of a mask (p + 1,) of inputs and level."""
        kept = kept[:-1]
        center, axes = np.zeros(len(kept)), np.zeros((len(self.axes), len(kept)))
        center[kept], axes[:, kept] = self.center, self.axes
        return self._replace(center=center, axes=axes)

    def weight(self, n) -> np.ndarray:
        """Return r / (n r + 1 - r), for n (T,) inputs (T, p)."""
        r = self.shares
        return r / np.maximum(np.asarray(n, float)[..., None] * r + (1 - r), TINY)

    def means(self, state: SquaredState) -> np.ndarray:
        """Return the estimates of m_t (T, p) from the inputs of tasks, in the coordinates a."""
        mass = state.gram[:, -1, -1]  # the count, unless labels have a precision
        sums = state.gram[:, -1, :-1] - mass[:, None] * self.center
        share = state.count / np.where(mass > 0, mass, 1.0)
        return self.weight(state.count) * share[:, None] * (sums @ self.axes.T)

    def levels(self, state: SquaredState) -> np.ndarray:
        """Return the expected shifts of levels (T,), from the inputs of tasks."""
        return self.means(state) @ self.effect

    def variances(self, n) -> np.ndarray:
        """Return the variances of levels (T,) that n (T,) inputs leave, beyond what H includes."""
        left = (self.weight(n) * (1 - self.shares)) @ self.effect**2
        return np.maximum(left - self.included, 0.0)

    def of_row(self, state: SquaredState) -> np.ndarray:
        """Return what the x of a row to predict adds to its expected level, as weights (T, p + 1).

        The row is an input beside those of its task: the level moves by the weight of n + 1 inputs
        times the difference of a and the estimate of m_t.
        """
        step = self.weight(state.count + 1) * self.effect
        slopes = step @ self.axes
        level = -slopes @ self.center - np.einsum("ti,ti->t", step, self.means(state))
        return np.column_stack([slopes, level])

    def start(self) -> np.ndarray:
        """Return `of_row` for a task without inputs (p + 1,)."""
        return self.of_row(SquaredState.start(1, len(self.center) + 1))[0]
