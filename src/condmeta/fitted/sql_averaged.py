"""Classes in SQL: their probabilities, averaged over a normal distribution of the score.

P(y > k) averages s(f - c_k) over f ~ N(score, variance), a sum of normal distribution functions
(`condmeta.inner.averaged`), which most databases lack; two classes have one cut, c_1 = 0. With
t = 2 / (2 + x),

    erfc(x) = t exp(-x^2 + p(2 t - 1)),   x >= 0,

and p is a polynomial, here of degree 24: the error of the logarithm is below 1e-14.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from scipy.special import erfcx

from condmeta.fitted.dialects import SqlDialect, number
from condmeta.fitted.sql_labels import class_of
from condmeta.inner.averaged import RATES, SHARES

DEGREE = 24
FARTHEST = 26.0  # where erfc underflows
TAIL, PROBABILITY = "(tail {})", "probability {}"


def two_class_columns(
    classes: np.ndarray, score: str, variance: str, sql: SqlDialect
) -> list[dict[str, str]]:
    """Return two sets of columns of a table q, the second computed from the first.

    They are the smaller of the two probabilities; then the class by the sign of the score, and the
    probability of the second class. `score` and `variance` are columns of q.
    """
    name = TAIL.format(1)
    chance = _share(f"{score} > 0", _tail(sql.name("q", name), score, 0.0))
    answers = {"prediction": class_of(classes, score, sql), "probability": chance}
    return [{name: _averaged(score, variance, 0.0)}, answers]


def ordered_columns(
    classes: Sequence, cuts: np.ndarray, score: str, variance: str, sql: SqlDialect
) -> list[dict[str, str]]:
    """Return three sets of columns of a table q, each computed from those before.

    They are the smaller of P(y > k) and P(y <= k) at each cut k, the probabilities of the classes,
    and the most probable class. `score` and `variance` are columns of q.
    """
    tails = {TAIL.format(k): _averaged(score, variance, cut) for k, cut in enumerate(cuts, 1)}
    small = [_tail(sql.name("q", name), score, c) for name, c in zip(tails, cuts, strict=True)]
    above = [_share(f"{score} > {number(c)}", t) for c, t in zip(cuts, small, strict=True)]
    below = [_share(f"{score} < {number(c)}", t) for c, t in zip(cuts, small, strict=True)]
    shares = [below[0]]
    for k in range(len(cuts) - 1):  # of two differences the one of smaller numbers is exact
        up, down = f"{above[k]} - {above[k + 1]}", f"{below[k + 1]} - {below[k]}"
        shares.append(f"CASE WHEN {score} < {number(cuts[k])} THEN {up} ELSE {down} END")
    shares.append(above[-1])
    names = [PROBABILITY.format(label) for label in classes]
    chances = [sql.name("q", name) for name in names]
    most = []
    for k, (label, own) in enumerate(zip(classes, chances, strict=True)):
        rest = [f"{own} >= {other}" for other in chances[k + 1 :]] or [f"{own} IS NOT NULL"]
        most.append(f"WHEN {' AND '.join(rest)} THEN {sql.value(label)}")
    prediction = {"prediction": f"CASE {' '.join(most)} END"}
    return [tails, dict(zip(names, shares, strict=True)), prediction]


def _averaged(score: str, variance: str, cut: float) -> str:
    """Return the smaller of E[s(f - cut)] and E[s(cut - f)] (see `averaged_loss`)."""
    spread = f"CASE WHEN {variance} > 0 THEN {variance} ELSE 0e0 END"
    scales = [f"SQRT({number(2 / rate**2)} + 2e0 * {spread})" for rate in RATES]
    tails = [_erfc(f"({_away(score, cut)} / {scale})") for scale in scales]
    terms = (f"{number(share / 2)} * {tail}" for share, tail in zip(SHARES, tails, strict=True))
    return "\n      + ".join(terms)


def _tail(averaged: str, score: str, cut: float) -> str:
    """Return the same, but at least the probability at the mean (see `averaged_logistic`)."""
    away = _away(score, cut)
    least = f"CASE WHEN {away} > 700 THEN 0e0 ELSE 1e0 / (1e0 + EXP({away})) END"
    return f"CASE WHEN {averaged} > {least} THEN {averaged} ELSE {least} END"


def _away(score: str, cut: float) -> str:
    return f"ABS({score} - {number(cut)})"


def _share(is_large: str, tail: str) -> str:
    return f"(CASE WHEN {is_large} THEN 1e0 - {tail} ELSE {tail} END)"


def _erfc(x: str) -> str:
    """Return erfc of an expression that is not negative."""
    first, *others = _polynomial()[::-1]
    found = number(first)
    for value in others:
        found = f"({found} * (4e0 / (2e0 + {x}) - 1e0) + {number(value)})".replace("+ -", "- ")
    small = f"2e0 / (2e0 + {x}) * EXP({found} - {x} * {x})"
    return f"CASE WHEN {x} > {number(FARTHEST)} THEN 0e0 ELSE {small} END"


@cache
def _polynomial() -> list[float]:
    """Return the coefficients of p, the lowest power first."""

    def logs(u: np.ndarray) -> np.ndarray:
        t = np.maximum((u + 1) / 2, 1e-12)
        return np.log(erfcx(2 / t - 2) / t)

    return Chebyshev.interpolate(logs, DEGREE).convert(kind=Polynomial).coef.tolist()
