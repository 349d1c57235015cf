r"""Likelihoods of labels given f = <x, w>, as rows of one form.

Each turns labels into rows (a, b, e) of `condmeta.inner.variational`,

    log p(y) = constant + sum over its rows of a (f - e) - b softplus(f - e),

| likelihood | a | b | e | parameter |
|---|---|---|---|---|
| `Binomial`: y of 2 classes, or shares of m trials | m (y + 1) / 2 | m | 0 | none |
| `NegativeBinomial`: counts with exposure E, r = 1 / alpha | y | y + r | log r - log E | alpha |
| `Ordered`: class k, two rows | 1; 0 | 1; 1 | c_{k-1}; c_k | gaps between the cuts c |

A likelihood is a value: its class with a parameter, which `meta.logistic` learns by steps in its
logarithm. In `Points` the weights (N, 2) hold trials or exposure as their second column; a third is
a fixed part of f, which all likelihoods subtract from e.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import digamma, gammaln

from condmeta.inner.averaged import averaged_logistic
from condmeta.inner.quadrature import log_average
from condmeta.inner.scores import row_scores
from condmeta.inner.variational import RowForm, Variational
from condmeta.tasks.points import Points
from condmeta.tasks.weights import repeats, row_shifts, row_sizes

POISSON = 1e-4  # alpha of a Poisson likelihood, where the mean count is 1 or more
LARGEST_ALPHA = 1e3
AT_LIMIT = 10.0  # times the smallest alpha: up to there counts are about Poisson's
USUAL_ROWS = 5.0  # rows with the variance of the law that a dispersion is averaged with
SMALLEST_GAP, LARGEST_GAP = 1e-6, 300.0  # between two cuts


class Likelihood(Protocol):
    """What a likelihood provides; `parameter` is a number or an array (p,)."""

    @property
    def parameter(self) -> Any:
        """The learned parameter, a number or an array (p,)."""

    @classmethod
    def first(cls, points: Points) -> Any:
        """Return the parameter that a fit starts from."""

    @classmethod
    def limits(cls, points: Points) -> tuple[float, float]:
        """Return the least and the largest parameter."""

    def rows(self, points: Points) -> RowForm:
        """Return the rows of points."""

    def start(self, points: Points, rows: RowForm, theta) -> tuple[np.ndarray, np.ndarray]:
        """Return weight and push (N,) of rows from which a posterior is found soon."""

    def constant(self, points: Points) -> float:
        """Return the sum of the constants of all points."""

    def by_log_parameter(self, points: Points, rows: RowForm, found: Variational) -> Any:
        """Return the derivative of the bound of all tasks."""

    def dispersion(self, points: Points, found: Variational) -> float:
        """Return the share of the variance of the law that labels have around their posteriors."""

    def log_density(self, points: Points, mean, variance) -> np.ndarray:
        """Return log p of each point (N,), averaged over f ~ N(mean, variance)."""


class Binomial(NamedTuple):
    """Labels -1 and +1, or 2 k / m - 1 for k successes in m trials; no parameter."""

    parameter: float = 1.0

    @classmethod
    def first(cls, points: Points) -> float:
        return 1.0

    @classmethod
    def limits(cls, points: Points) -> tuple[float, float]:
        return 1.0, 1.0

    def rows(self, points: Points) -> RowForm:
        X, y, offsets, weight = points
        trials = row_sizes(weight, len(y))
        a = trials * (y + 1) / 2
        return RowForm(X, offsets, a, trials, -row_shifts(weight, len(y)), _times(weight))

    def start(self, points: Points, rows: RowForm, theta) -> tuple[np.ndarray, np.ndarray]:
        return 0.1 * rows.b * (1.0 if rows.times is None else rows.times), np.zeros(len(rows.a))

    def constant(self, points: Points) -> float:
        rows = self.rows(points)
        return _total(_log_choose(rows.b, rows.a), points) if _sized(points) else 0.0

    def by_log_parameter(self, points: Points, rows: RowForm, found: Variational) -> float:
        return 0.0

    def dispersion(self, points: Points, found: Variational) -> float:
        return 1.0

    def log_density(self, points: Points, mean, variance) -> np.ndarray:
        if not _sized(points):
            return np.log(averaged_logistic(points.y * mean, variance))
        _, _, a, b, e, _ = self.rows(points)
        return _log_choose(b, a) + log_average(a, b, e, mean, variance)


class NegativeBinomial(NamedTuple):
    """Counts with mean mu = E exp(f) and variance mu + alpha mu^2; a Poisson law if alpha -> 0."""

    parameter: float

    @classmethod
    def first(cls, points: Points) -> float:
        return 0.5

    @classmethod
    def limits(cls, points: Points) -> tuple[float, float]:
        return cls.poisson(points), LARGEST_ALPHA

    @classmethod
    def poisson(cls, points: Points) -> float:
        """Return the alpha at which the variance of a count of 1 exceeds its mean by 1e-4.

        Of rarer counts it does so at their mean. With a smaller alpha averages would lose digits,
        so that the law of counts above about 1,000 is wider than Poisson's.
        """
        mean = float(np.average(points.y, weights=_times(points.weight)))
        return min(POISSON / min(max(mean, 1e-9), 1.0), LARGEST_ALPHA)

    def rows(self, points: Points) -> RowForm:
        X, y, offsets, weight = points
        r = 1 / self.parameter
        e = np.log(r) - _log_exposure(points)
        return RowForm(X, offsets, y, y + r, e, _times(weight))

    def start(self, points: Points, rows: RowForm, theta) -> tuple[np.ndarray, np.ndarray]:
        y = points.y + 0.5
        weight = y / (1 + max(self.parameter, 0.5) * y)
        codes = np.repeat(np.arange(len(theta)), points.sizes)
        gap = np.log(y) - _log_exposure(points)
        push = weight * (gap - row_scores(points.X, theta, codes, 1))
        return (weight, push) if rows.times is None else (rows.times * weight, rows.times * push)

    def constant(self, points: Points) -> float:
        return _total(self._constants(points.y), points)

    def _constants(self, y) -> np.ndarray:
        r = 1 / self.parameter
        return gammaln(y + r) - gammaln(r) - gammaln(y + 1)

    def by_log_parameter(self, points: Points, rows: RowForm, found: Variational) -> float:
        y, r = points.y, 1 / self.parameter
        explicit = r * (digamma(y + r) - digamma(r)) - y - r * found.loss
        times = 1.0 if rows.times is None else rows.times
        # (y + r) E[s] = a - r_i, where r_i of the pass counts several times
        return -float(np.sum(times * (explicit + y) - found.r))

    def dispersion(self, points: Points, found: Variational) -> float:
        """Return Pearson's statistic of Poisson counts as a share of its mean, at most 1.

        The statistic of a row with mean mu has variance 2 + 1 / mu: rare counts say little.
        """
        if self.parameter > AT_LIMIT * self.poisson(points):
            return 1.0
        times = 1.0 if points.weight is None else repeats(points.weight)
        mean = np.maximum(found.weight / times, 1e-300)  # the curvature of a Poisson row
        share = 2 / (2 + 1 / mean)
        n = np.sum(times * share)
        pearson = np.sum(share * found.r**2 / (times * mean))
        return float(min((pearson + USUAL_ROWS) / (n + USUAL_ROWS), 1.0))

    def log_density(self, points: Points, mean, variance) -> np.ndarray:
        _, _, a, b, e, _ = self.rows(points)
        return self._constants(points.y) + log_average(a, b, e, mean, variance)


class Ordered(NamedTuple):
    """Classes 0..K-1 with P(y > k) = s(f - c_k); two classes are coded -1 and +1.

    The first cut is 0, as f has an intercept; the parameter (K-2,) holds the gaps to the next cuts.
    """

    parameter: np.ndarray

    @property
    def cuts(self) -> np.ndarray:
        """The cuts (K-1,)."""
        return np.append(0.0, np.cumsum(self.parameter))

    @classmethod
    def first(cls, points: Points) -> np.ndarray:
        share = np.bincount(cls.codes(points.y), weights=_times(points.weight))
        below = np.clip(np.cumsum(share / share.sum())[:-1], 1e-6, 1 - 1e-6)
        return np.maximum(np.diff(np.log(below / (1 - below))), 1e-2)

    @classmethod
    def limits(cls, points: Points) -> tuple[float, float]:
        return SMALLEST_GAP, LARGEST_GAP

    @staticmethod
    def codes(y) -> np.ndarray:
        """Return labels as 0..K-1."""
        return np.maximum(y, 0).astype(np.int64)

    def places(self, y) -> np.ndarray:
        """Return labels as 0..K-1; classes above, which no training task had, count as K-1."""
        return np.minimum(self.codes(y), len(self.parameter) + 1)

    def rows(self, points: Points) -> RowForm:
        X, y, offsets, weight = points
        at, above, cut = self._layout(y)
        counted = np.bincount(at, minlength=len(y))
        times, e = _times(weight), self.cuts[cut] - row_shifts(weight, len(y))[at]
        return RowForm(
            np.ascontiguousarray(X[at]), np.append(0, np.cumsum(counted))[offsets], above,
            np.ones(len(at)), e, None if times is None else times[at],
        )  # fmt: skip

    def _layout(self, y) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return for each row its point, a, and the position of its cut.

        Class k lies above the cut k - 1 and below the cut k; the first and the last class have one
        row.
        """
        k = np.repeat(self.places(y), 2)
        above = np.tile([1.0, 0.0], len(y))
        cut = k - above.astype(np.int64)
        kept = (cut >= 0) & (cut < len(self.cuts))
        return np.repeat(np.arange(len(y)), 2)[kept], above[kept], cut[kept]

    def start(self, points: Points, rows: RowForm, theta) -> tuple[np.ndarray, np.ndarray]:
        return Binomial().start(points, rows, theta)

    def constant(self, points: Points) -> float:
        return _total(self._constants(points.y), points)

    def _constants(self, y) -> np.ndarray:
        inside = np.log(-np.expm1(-self.parameter))
        return np.concatenate([[0.0], inside, [0.0]])[self.places(y)]

    def by_log_parameter(self, points: Points, rows: RowForm, found: Variational) -> np.ndarray:
        return self.parameter * self.by_gaps(points, found).sum(axis=0)

    def by_gaps(self, points: Points, found: Variational) -> np.ndarray:
        """Return the derivatives of the bounds of tasks by the gaps (T, K-2)."""
        at, _, cut = self._layout(points.y)
        T, K = len(points.sizes), len(self.cuts) + 1
        task, times = np.repeat(np.arange(T), points.sizes), _times(points.weight)
        by_cut = _count_pairs(task[at], cut, found.r, (T, K - 1))
        share = _count_pairs(task, self.places(points.y), times, (T, K))
        above = np.cumsum(by_cut[:, ::-1], axis=1)[:, ::-1]
        return share[:, 1:-1] / np.expm1(self.parameter) - above[:, 1:]

    def probabilities(self, mean, variance) -> np.ndarray:
        """Return the probabilities of the classes (N, K), averaged over f ~ N(mean, variance)."""
        above = [averaged_logistic(mean - cut, variance) for cut in self.cuts]
        below = [averaged_logistic(cut - mean, variance) for cut in self.cuts]
        # Of two differences the one of smaller numbers is exact.
        inner = [
            np.where(up < 0.5, up - nxt, under_next - under)
            for up, nxt, under, under_next in zip(above, above[1:], below, below[1:], strict=False)
        ]
        P = np.maximum(np.column_stack([below[0], *inner, above[-1]]), 1e-300)
        return P / P.sum(axis=1, keepdims=True)

    def dispersion(self, points: Points, found: Variational) -> float:
        return 1.0

    def log_density(self, points: Points, mean, variance) -> np.ndarray:
        P = self.probabilities(mean + row_shifts(points.weight, len(points.y)), variance)
        return np.log(P[np.arange(len(P)), self.places(points.y)])


def _count_pairs(row, column, weights, shape: tuple[int, int]) -> np.ndarray:
    """Return the sums of weights (N,), or the counts, of pairs of positions, as a table."""
    at = row * shape[1] + column
    return np.bincount(at, weights=weights, minlength=shape[0] * shape[1]).reshape(shape)


def _times(weight) -> np.ndarray | None:
    return None if weight is None else np.ascontiguousarray(repeats(weight))


def _log_exposure(points: Points) -> np.ndarray:
    n = len(points.y)
    return np.log(row_sizes(points.weight, n)) + row_shifts(points.weight, n)


def _sized(points: Points) -> bool:
    return points.weight is not None and points.weight.ndim == 2


def _total(values, points: Points) -> float:
    times = _times(points.weight)
    return float(np.sum(values if times is None else times * values))


def _log_choose(n, k) -> np.ndarray:
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
