"""The scale on which a target is modelled: its logarithm, or a power of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.persistence.fields import InvalidFieldError, number, one_of, optional
from condmeta.persistence.registry import register_tuple
from condmeta.tasks.weights import weighted_median

TRANSFORMS = "log", "yeo-johnson"
ROOM = 0.25  # of the range of training labels, and of their g: predictions stay within both
POWERS = np.linspace(0.0, 2.0, 41)  # beyond these g is bounded, and its inverse explodes
COARSE = 5  # every fifth is tried first
MOST_LABELS = 5000  # that choose the power: quantiles of more
NODES, SHARES = np.polynomial.hermite_e.hermegauss(15)
SHARES = SHARES / SHARES.sum()


def _ends_rise(state: dict, sizes: dict[str, int]) -> None:
    if state["low"] > state["high"]:
        raise InvalidFieldError("low", "must not be above `high`")


@register_tuple(
    name="Target",
    fields={
        "name": one_of(*TRANSFORMS), "power": number(low=0, high=2), "unit": number(above=0),
        "low": number(), "high": number(), "spread": optional(number(low=0)),
    },
    rule=_ends_rise,
)  # fmt: skip
class TargetScale(NamedTuple):
    """A rising function g of labels. Models are fitted to g(y), and predict y of a score.

    This is the median of labels, g^-1(score); with a spread it is their mean, that of
    g^-1(score + spread z) over normal z.

    log: g(y) = log y. yeo-johnson: with z = y / unit and a power p, g(y) = ((1 + z)^p - 1) / p if
    z >= 0, and -((1 - z)^(2-p) - 1) / (2 - p) below; at p = 0 and p = 2 the logarithms.

    Attributes
    ----------
    name : "log" or "yeo-johnson"
    power, unit : float
    low, high : float
        Least and largest g of a prediction.
    spread : float
        Standard deviation of the noise of g(y); 0 if medians are predicted.
    """

    name: str
    power: float
    unit: float
    low: float
    high: float
    spread: float = 0.0

    @classmethod
    def learn(cls, name: str, y: np.ndarray, weight=None, ends=None) -> TargetScale:
        """Learn it from labels y (N,), which count weight (N,) times; for medians.

        `ends` are the least and the largest training label; without it, those of y.
        """
        power, unit = 0.0, 1.0
        if name == "yeo-johnson":
            size = np.abs(y)
            unit = weighted_median(size, weight) or float(np.average(size, weights=weight)) or 1.0
            power = _likeliest_power(y / unit, weight)
        scale = cls(name, power, unit, -np.inf, np.inf)
        ends = np.array([y.min(), y.max()]) if ends is None else np.asarray(ends)
        values, beyond = scale.apply(ends), ends + ROOM * np.ptp(ends) * np.array([-1.0, 1.0])
        low, high = values + ROOM * np.ptp(values) * np.array([-1.0, 1.0])
        if name != "log" or beyond[0] > 0:
            low = max(low, scale.apply(beyond[:1])[0])
        return scale._replace(low=float(low), high=float(min(high, scale.apply(beyond[1:])[0])))

    def apply(self, y: np.ndarray) -> np.ndarray:
        """Return g(y)."""
        if self.name == "log":
            if not (y > 0).all():
                raise DataError(
                    f"y holds {y[~(y > 0)][0]:g}, which has no logarithm: y_transform='log' needs "
                    "labels above zero. Use y_transform='yeo-johnson', or None."
                )
            return np.log(y)
        return _power(y / self.unit, self.power)

    def undo(self, scores: np.ndarray) -> np.ndarray:
        """Return the predictions of labels from scores (N,): medians, or means."""
        if not self.spread:
            return self._inverse(scores)
        pairs = zip(NODES, SHARES, strict=True)
        return sum(share * self._inverse(scores + self.spread * z) for z, share in pairs)

    def _inverse(self, values: np.ndarray) -> np.ndarray:
        """Return y of g(y)."""
        values = np.clip(values, self.low, self.high)
        if self.name == "log":
            return np.exp(values)
        return self.unit * _inverse(values, self.power)

    def slope(self, y: np.ndarray) -> np.ndarray:
        """Return dy / dg at labels y."""
        if self.name == "log":
            return y
        z = y / self.unit
        return self.unit * (1 + np.abs(z)) ** np.where(z >= 0, 1 - self.power, self.power - 1)


def _power(z, p: float) -> np.ndarray:
    exponent = np.where(z >= 0, p, 2 - p)
    return np.sign(z) * _box_cox(1 + np.abs(z), exponent)


def _inverse(values, p: float) -> np.ndarray:
    exponent, size = np.where(values >= 0, p, 2 - p), np.abs(values)
    powers = (1 + exponent * size) ** (1 / np.where(exponent == 0, 1, exponent))
    return np.sign(values) * (np.where(exponent == 0, np.exp(size), powers) - 1)


def _box_cox(x, exponent) -> np.ndarray:
    safe = np.where(exponent == 0, 1.0, exponent)
    return np.where(exponent == 0, np.log(x), (x**safe - 1) / safe)


def _likeliest_power(z: np.ndarray, weight=None) -> float:
    """Return the power with which g(y) is closest to normal."""
    if weight is None and len(z) > MOST_LABELS:  # `np.quantile` of so many takes 20 times as long
        at = (np.arange(MOST_LABELS) + 0.5) / MOST_LABELS * (len(z) - 1)
        z = np.interp(at, np.arange(len(z)), np.sort(z))

    def log_likelihood(p: float) -> float:
        values, slopes = _power(z, p), np.log1p(np.abs(z)) * np.where(z >= 0, p - 1, 1 - p)
        mean = np.average(values, weights=weight)
        variance = np.average((values - mean) ** 2, weights=weight)
        return float(np.average(slopes, weights=weight) - np.log(variance + 1e-300) / 2)

    def best_of(powers: np.ndarray) -> float:
        return max(powers, key=lambda p: np.nan_to_num(log_likelihood(p), nan=-np.inf))

    with np.errstate(over="ignore", invalid="ignore"):  # of labels that differ by 150 digits
        near = best_of(POWERS[::COARSE])  # the log likelihood is concave in p
        return float(best_of(POWERS[np.abs(POWERS - near) < COARSE * (POWERS[1] - POWERS[0])]))
