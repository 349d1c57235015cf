r"""The gap of the best linear conditioning function, from real tasks with a few points each.

    gap = V(w_rho)^2 - min V(tau_{M,b})^2 = E ||M (Phi - nu)||^2 = Tr(M Css M^T)

is a product of coefficients, which `evaluation.leave_out` estimates, without bias if E[w | s] is
linear in Phi. If it is not, M is the best fit to the points, in which tasks with more information
weigh more. The parts of the gap are products too:

    of coefficient l        (M Css M^T)_ll
    of predictions          Tr(Sxx M Css M^T) = E (<x, tau(s) - w_rho>)^2, x of any task
    of columns j alone      Tr(M C_j M^T),  C_j = Css[:, j] Css[j, j]^+ Css[j, :]
    lost without them       Tr(M (Css - C_i) M^T), i all other columns

The last two are the gaps of maps of fewer columns, as Cov(w, Phi) = M Css. The residual variance
E ||w - tau(s)||^2 is the trace of a diagonal maximum-likelihood H, times T / (T - k - 1) for the
k + 1 numbers fitted to T tasks; it is right as far as that model is.

Intervals are jackknife intervals: everything is computed again without each block of tasks. Where
side information explains little, the variance is about twice too large, which is the safe side.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import stats as distributions

from condmeta.errors import DataError
from condmeta.evaluation.leave_out import BlockEquations
from condmeta.inner.squared import SquaredState
from condmeta.meta.prior import Prior
from condmeta.meta.ridge import learn_prior

BLOCKS = 20
RIDGE = 0.01  # the penalty on M in the fit of H, as a number of tasks
LIMIT = 2000  # largest d (k + 1); each block keeps a matrix of that size


class Interval(NamedTuple):
    """An estimate with an interval around it.

    Examples
    --------
    >>> from condmeta.evaluation.linear_gap import Interval
    >>> Interval(2.0, -1.0, 5.0).holds_zero
    True
    """

    value: float
    low: float
    high: float

    @property
    def holds_zero(self) -> bool:
        """Whether the interval reaches 0 or below."""
        return self.low <= 0.0


class Explained(NamedTuple):
    """Estimates from one set of tasks, with J groups of columns.

    explained, left : (d,) arrays, of each coefficient
    predicted : float
    alone, unique : (J,) arrays
    """

    explained: np.ndarray
    left: np.ndarray
    predicted: float
    alone: np.ndarray
    unique: np.ndarray

    @property
    def gap(self) -> float:
        return float(self.explained.sum())

    @property
    def share(self) -> float:
        """gap / V(w_rho)^2; an estimate of the gap below 0 counts as 0 in the total."""
        total = max(self.gap, 0.0) + float(self.left.sum())
        return self.gap / max(total, abs(self.gap), 1e-300)


class LinearGap(NamedTuple):
    """The estimates from all tasks, and those without each block."""

    whole: Explained
    without: list[Explained]

    def interval(self, coverage: float, name: str, group: int | None = None) -> Interval:
        """Return an attribute of `Explained`, or one group of it, with its jackknife interval."""
        values = [getattr(part, name) for part in (self.whole, *self.without)]
        value, *again = values if group is None else [part[group] for part in values]
        again, B = np.array(again), len(again)
        error = np.sqrt((B - 1) / B * ((again - again.mean()) ** 2).sum())
        reach = float(distributions.t.ppf((1 + coverage) / 2, B - 1) * error)
        return Interval(float(value), float(value - reach), float(value + reach))


def linear_gap(
    stats: SquaredState, Phi: Any, groups: Any, block: Any, directions: int
) -> LinearGap:
    """Estimate the gap and its parts.

    Parameters
    ----------
    stats : SquaredState of T tasks
    Phi : (T, k) array
    groups : list of int arrays
        The columns of Phi that belong together.
    block : (T,) int array
        The block of each task, 0..B-1, drawn at random.
    directions : int
        Number of principal directions of the standardised Phi to keep: see `affordable`.
    """
    mean, scale = Phi.mean(axis=0), Phi.std(axis=0)
    Z = (Phi - mean) / np.where(scale > 1e-12 * np.abs(Phi).max(axis=0), scale, 1.0)
    sizes, basis = np.linalg.svd(Z, full_matrices=False)[1:]
    basis = basis[: min(directions, int((sizes > 1e-10 * max(sizes[0], 1e-300)).sum()))].T
    reduced = Z @ basis
    prior = learn_prior(stats, reduced, "diagonal", RIDGE).prior
    blocks = BlockEquations(stats, reduced, prior, block)

    def of(drop: int | None) -> Explained:
        if drop is None:
            return _explained(stats, Z, basis, groups, blocks.products(), prior)
        kept = np.flatnonzero(block != drop)
        part = stats.take(kept)
        again = learn_prior(part, reduced[kept], "diagonal", RIDGE, prior).prior
        return _explained(part, Z[kept], basis, groups, blocks.products(drop), again)

    return LinearGap(of(None), [of(b) for b in range(blocks.count)])


def _explained(
    stats: SquaredState, Z: Any, basis: Any, groups: Any, products: Any, prior: Prior
) -> Explained:
    parts, others = (one[:, :, :-1] @ basis.T for one in products)  # M in terms of all columns
    T, Css = len(Z), np.cov(Z.T).reshape(Z.shape[1], -1)
    Sxx = stats.gram.sum(axis=0) / max(stats.count.sum(), 1)

    def by_coefficient(C: Any) -> np.ndarray:
        return np.einsum("blj,blj->l", parts @ C, others)

    def by_columns(at: Any) -> float:
        cross = Css[:, at]
        C = cross @ np.linalg.pinv(Css[np.ix_(at, at)], hermitian=True) @ cross.T
        return float(by_coefficient(C).sum())

    explained = by_coefficient(Css)
    rest = [np.setdiff1d(np.arange(len(Css)), at) for at in groups]
    return Explained(
        explained,
        np.diag(prior.H) * T / max(T - basis.shape[1] - 1, 1),
        float(np.einsum("blj,lm,bmj->", parts @ Css, Sxx, others)),
        np.array([by_columns(at) for at in groups]),
        np.array([explained.sum() - by_columns(at) for at in rest]),
    )


def affordable(T: int, n_points: int, d: int, k: int) -> int:
    """Return how many directions of k features T tasks suffice for; raise if for none."""
    most = min(T // 4, n_points // (3 * d), LIMIT // d) - 1
    if most < 1:
        raise DataError(
            "advantage needs at least 8 tasks, 6 points for each coefficient, and at most "
            f"{LIMIT // 2} coefficients. There are {T} tasks with {n_points} points "
            f"and {d} coefficients."
        )
    return min(k, most)
