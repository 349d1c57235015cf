r"""Distributions of counts: a negative binomial law, averaged over the posterior of f.

y | f ~ NB(mean E exp(f), alpha),   f ~ N(m, v),
E y = mu = E exp(m + v / 2),   Var y = mu + mu^2 ((1 + alpha) e^v - 1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betainc

from condmeta.errors import DataError
from condmeta.inner.likelihoods import NegativeBinomial
from condmeta.tasks.arrays import as_vector
from condmeta.tasks.points import Points
from condmeta.typing import Numbers

LARGEST = 700.0  # logarithm of the largest mean and standard deviation
REACH = 6.0  # standard deviations of f over which counts are averaged
NODES = np.linspace(-REACH, REACH, 121)
SHARES = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()
BLOCK = 1 << 20  # numbers in the largest temporary
ROUNDS = 200  # of a bisection, at most
RELATIVE = 1e-9  # accuracy of quantiles that are too large to be told apart from the next count


class CountDistribution(NamedTuple):
    """The distributions of N counts.

    Parameters
    ----------
    location, variance : (N,) arrays
        Mean and variance of the logarithm of the rate, exposure included.
    alpha : float
        Overdispersion: given the rate mu, a count has variance mu + alpha mu^2.

    Examples
    --------
    >>> import numpy as np
    >>> counts = CountDistribution(np.log([1.0, 10.0]), np.array([0.0, 0.5]), 0.1)
    >>> counts.mean.round(2), counts.median, counts.interval(0.9).tolist()
    (array([ 1.  , 12.84]), array([ 1., 10.]), [[0.0, 3.0], [2.0, 35.0]])
    >>> counts.proba(2).round(3)[0]
    array([0.386, 0.35 , 0.175])
    """

    location: np.ndarray
    variance: np.ndarray
    alpha: float

    def with_exposure(self, exposure: Numbers | None) -> CountDistribution:
        """Return the distributions for exposures (N,), or for one of all rows."""
        with np.errstate(divide="ignore"):
            shift = np.log(np.broadcast_to(np.asarray(exposure, float), self.location.shape))
        return self._replace(location=self.location + shift)

    @property
    def mean(self) -> np.ndarray:
        """Expected counts (N,)."""
        return np.exp(np.minimum(self.location + self.variance / 2, LARGEST))

    @property
    def std(self) -> np.ndarray:
        """Standard deviations (N,) of counts."""
        log_mean = self.location + self.variance / 2
        with np.errstate(divide="ignore"):
            spread = np.log(np.expm1(np.minimum(np.log1p(self.alpha) + self.variance, LARGEST)))
        return np.exp(np.minimum(np.logaddexp(log_mean, 2 * log_mean + spread) / 2, LARGEST))

    @property
    def median(self) -> np.ndarray:
        """Medians (N,): the least counts with a cumulative probability of at least 1/2."""
        return self.quantile(0.5)

    def proba(self, largest: int) -> np.ndarray:
        """Return the probabilities (N, largest + 1) of the counts 0, 1, ..., largest."""
        if not isinstance(largest, int | np.integer) or largest < 0:
            raise DataError(f"The largest count must be an int of at least 0. Got {largest!r}.")
        n, counts = len(self.location), np.arange(largest + 1.0)
        rows = np.repeat(np.arange(n), len(counts))
        whole = CountDistribution(self.location[rows], self.variance[rows], self.alpha)
        return np.exp(whole.log_density(np.tile(counts, n))).reshape(n, -1)

    def log_density(self, y: Numbers) -> np.ndarray:
        """Return the logarithm of the probability of each count y (N,)."""
        y = as_vector(y)
        none = self.location == -np.inf  # an exposure of 0: the count is 0
        points = Points(np.empty((len(y), 0)), y, np.array([0, len(y)]))
        location = np.where(none, 0.0, self.location)
        found = NegativeBinomial(self.alpha).log_density(points, location, self.variance)
        with np.errstate(divide="ignore"):
            return np.where(none, np.log(y == 0), found)

    def cumulative(self, y: Numbers) -> np.ndarray:
        """Return the probability of at most y (N,), for each count."""
        y = np.floor(np.broadcast_to(np.asarray(y, float), self.location.shape))
        out, block = np.empty(len(y)), BLOCK // len(NODES)
        for lo in range(0, len(y), block):
            at = slice(lo, lo + block)
            sd = np.sqrt(self.variance[at])[:, None]
            # P(count <= y) = I_p(r, y + 1) with p = r / (r + mu) = 1 / (1 + alpha mu)
            with np.errstate(over="ignore"):
                odds = self.alpha * np.exp(self.location[at][:, None] + sd * NODES)
            upto = betainc(1 / self.alpha, np.maximum(y[at], 0)[:, None] + 1, 1 / (1 + odds))
            out[at] = np.where(y[at] < 0, 0.0, upto @ SHARES)
        return out

    def quantile(self, q: float) -> np.ndarray:
        """Return the least counts (N,) with a cumulative probability of at least q in (0, 1)."""
        if not (np.ndim(q) == 0 and 0 < q < 1):
            raise DataError(f"The 'q' parameter must be a float in (0, 1). Got {q!r}.")
        low, high = np.full(len(self.location), -1.0), np.ceil(self.mean + 1)
        open_ = np.arange(len(low))
        for _ in range(ROUNDS):  # raise `high` until it is a bound
            open_ = open_[self._at(open_).cumulative(high[open_]) < q]
            if not len(open_) or not (high[open_] < np.exp(LARGEST)).all():
                break
            low[open_], high[open_] = high[open_], 2 * high[open_]
        for _ in range(ROUNDS):  # cumulative(low) < q <= cumulative(high)
            open_ = np.flatnonzero(high - low > np.maximum(1.0, RELATIVE * high))
            if not len(open_):
                break
            middle = np.floor((low[open_] + high[open_]) / 2)
            enough = self._at(open_).cumulative(middle) >= q
            high[open_] = np.where(enough, middle, high[open_])
            low[open_] = np.where(enough, low[open_], middle)
        return high

    def _at(self, rows) -> CountDistribution:
        return CountDistribution(self.location[rows], self.variance[rows], self.alpha)

    def interval(self, coverage: float = 0.9) -> np.ndarray:
        """Return intervals (N, 2), ends included, that hold a count with this probability."""
        if not (np.ndim(coverage) == 0 and 0 < coverage < 1):
            raise DataError(
                f"The 'coverage' parameter must be a float in (0, 1). Got {coverage!r}."
            )
        tail = (1 - coverage) / 2
        return np.column_stack([self.quantile(tail), self.quantile(1 - tail)])
