r"""The map learned by coin betting: no step size, no regularisation, no validation tasks.

Every entry of the map W (k+1, d), the last row being b, is a gambler of its own (COCOB). Over the
tasks t = 1, 2, ... with phi1 = (Phi(s_t), 1),

    theta_t = W_t^T phi1,   g_t = meta-gradient of the betting pass on task t from theta_t,
    q = phi1 g_t^T,         L = max(L, |q|),   G = G + |q|,   C = C - q,   Q = max(Q - q W_t, 0),
    W_{t+1} = tanh(C / (G + L)) (eps + Q / L),

all entry by entry, from L = floor and G, C, Q, W_1 = 0. The map is sum t W_t / sum t. The scales of
the first tasks give the remaining constants:

    R = max ||x||_2,  S = mean |y|,  X1 = max ||x||_1,  P1 = max ||phi1||_1,
    eps = S / (X1 P1)       the unit of an entry: the first bets predict about S / 2 at most
    floor = 1e-12 R P1      below it, q is rounding
    stake = r / ((t-1) R)   of the inner pass: the mean residual of theta on the tasks before
                            (r its sum), S / R for the first task.

Hence x -> a x, y -> b y takes W to (b / a) W. All-zero x or y gives W = 0. The regret bound of
COCOB assumes that L is known beforehand; it does not hold with the running maximum.
"""

from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from condmeta.engine import twin
from condmeta.inner.coin import row_norms, run_bets
from condmeta.persistence.fields import floats
from condmeta.persistence.registry import register_tuple

MAP = floats("k+1 d")


@register_tuple(
    fields={
        "most": floats("k+1 d", above=0), "size": floats("k+1 d", low=0), "drift": MAP,
        "reward": MAP, "W": MAP, "weighted_sum": MAP, "phi_sum": floats("k+1"),
        "residual": floats("1", low=0), "scales": floats("4", low=0),
    }
)  # fmt: skip
class CoinState(NamedTuple):
    """The state of the meta-learner after T tasks: all that further tasks need.

    Attributes
    ----------
    most, size, drift, reward : (k+1, d)    L, G, C, Q
    W, weighted_sum : (k+1, d)              W_{T+1}, and sum of t W_t
    phi_sum : (k+1,)                        sum of phi1; its last entry is T
    residual : (1,)                         r, sum over tasks of mean |<x, theta> - y|
    scales : (4,)                           R, S, X1, P1
    """

    most: np.ndarray
    size: np.ndarray
    drift: np.ndarray
    reward: np.ndarray
    W: np.ndarray
    weighted_sum: np.ndarray
    phi_sum: np.ndarray
    residual: np.ndarray
    scales: np.ndarray

    @classmethod
    def start(cls, X, y, Phi) -> Self:
        """Return the state before the first task, with the scales of X (N, d) and Phi (T, k)."""
        R = row_norms(X).max(initial=0.0)
        X1, P1 = np.abs(X).sum(axis=1).max(initial=0.0), 1 + np.abs(Phi).sum(axis=1).max(initial=0)
        scales = np.array([R, np.abs(y).mean() if len(y) else 0.0, X1, P1])
        shape = (Phi.shape[1] + 1, X.shape[1])
        maps = [np.zeros(shape) for _ in range(5)]
        most = np.full(shape, 1e-12 * R * P1 or 1.0)
        return cls(most, *maps, np.zeros(shape[0]), np.zeros(1), scales)

    def copy(self) -> Self:
        """Return a state that can be advanced without touching this one."""
        return type(self)(*(array.copy() for array in self))

    @property
    def n_tasks(self) -> int:
        """T, the tasks seen."""
        return int(self.phi_sum[-1])

    @property
    def phi_mean(self) -> np.ndarray:
        """The mean training Phi (k,), 0 before the first task."""
        return self.phi_sum[:-1] / max(self.n_tasks, 1)

    @property
    def radius(self) -> float:
        """R: longer rows are clipped inside the bets."""
        return float(self.scales[0])

    @property
    def stake(self) -> float:
        """The wealth of the next task before its first point."""
        return _stake(self.n_tasks, self.residual[0], self.scales)

    def count_longer(self, X) -> int:
        """Return how many rows are longer than R, up to rounding."""
        return int((row_norms(X) > (1 + 1e-12) * self.radius).sum())

    def map(self) -> np.ndarray:
        """Return the learned map (k+1, d): M transposed over b."""
        T = max(self.n_tasks, 1)
        return self.weighted_sum / (T * (T + 1) / 2)


@twin
def coin_pass(
    most, size, drift, reward, W, weighted_sum, phi_sum, residual, scales, X, y, offsets, Phi
) -> None:
    """Learn the map from T tasks by betting, in place on the state.

    most, ..., weighted_sum (k+1, d); phi_sum (k+1,); residual (1,); scales (4,): see `CoinState`.
    X (N, d); y (N,); offsets (T+1,); Phi (T, k). Tasks without points are skipped.
    """
    R, S, X1, P1 = scales
    eps = S / (X1 * P1) if X1 > 0 else 0.0
    phi1 = np.ones(len(W))
    for t, (lo, hi) in enumerate(pairwise(offsets)):
        if lo == hi:
            continue
        phi1[:-1] = Phi[t]
        theta = phi1 @ W
        g = np.zeros_like(theta)
        stake = _stake(phi_sum[-1], residual[0], scales)
        run_bets(theta, X[lo:hi], y[lo:hi], R, g, np.zeros_like(theta), stake, 0)
        residual += np.abs(X[lo:hi] @ theta - y[lo:hi]).mean()
        phi_sum += phi1
        weighted_sum += phi_sum[-1] * W
        q = np.outer(phi1, g / (hi - lo))
        np.maximum(most, np.abs(q), out=most)
        size += np.abs(q)
        drift -= q
        np.maximum(reward - q * W, 0.0, out=reward)
        W[:] = np.tanh(drift / (size + most)) * (eps + reward / most)


def _stake(n_tasks, residual, scales) -> float:
    R, S = scales[:2]
    if not R > 0:
        return 0.0
    return float(residual / (n_tasks * R) if n_tasks else S / R)
