"""From scores to labels in SQL: classes, and the inverse of `y_transform` with its slope.

With g = ((1 + z)^p - 1) / p for z = y / unit >= 0, y = unit ((1 + p g)^(1/p) - 1) and
dy/dg = unit (1 + p g)^((1-p)/p); below zero the same with 2 - p and -g (see `TargetScale`).
"""

from collections.abc import Callable

import numpy as np

from condmeta.fitted.count_distribution import LARGEST
from condmeta.fitted.dialects import SqlDialect, number
from condmeta.fitted.target import TargetScale

SCORE = "score"  # the column of predictions on the scale of g


def label_of(target: TargetScale, score: str) -> str:
    """Return the prediction from the column of scores."""
    if target.name == "log":
        return _within(target, score, f"EXP({score})", target.undo)

    def side(sign: str, power: float) -> str:
        grown = _power(f"{sign}{score}", power, 1.0)
        return f"{sign}{number(target.unit)} * ({grown} - 1e0)"

    return _within(target, score, _by_sign(target, score, side), target.undo)


def slope_of(target: TargetScale, score: str) -> str:
    """Return dy / dg at the prediction, from the column of scores."""
    if target.name == "log":
        return label_of(target, score)

    def side(sign: str, power: float) -> str:
        return f"{number(target.unit)} * {_power(f'{sign}{score}', power, 1.0 - power)}"

    def at(g):
        return target.slope(target.undo(g))

    return _within(target, score, _by_sign(target, score, side), at)


def class_of(classes: np.ndarray, score: str, sql: SqlDialect) -> str:
    """Return the class by the sign of the score."""
    negative, positive = map(sql.value, classes.tolist())
    return f"CASE WHEN {score} > 0 THEN {positive} WHEN {score} <= 0 THEN {negative} END"


def probability_of(score: str) -> str:
    """Return 1 / (1 + exp(-score)), without exponentials that leave the range of numbers."""
    above, below = f"1e0 / (1e0 + EXP(-{score}))", f"EXP({score}) / (1e0 + EXP({score}))"
    ends = f"WHEN {score} < -700 THEN 0e0 WHEN {score} > 700 THEN 1e0"
    return f"CASE {ends} WHEN {score} >= 0 THEN {above} ELSE {below} END"


def mean_count(score: str, variance: str, exposure: str | None) -> str:
    """Return exposure exp(score + variance / 2), the mean of a `CountDistribution`, and its bound.

    Rounding may leave a variance below zero.
    """
    log_mean = f"{score} + CASE WHEN {variance} > 0 THEN {variance} / 2e0 ELSE 0e0 END"
    rate = f"CASE WHEN {log_mean} > 709 THEN EXP(7.09e2) ELSE EXP({log_mean}) END"
    mean = rate if exposure is None else f"{exposure} * {rate}"
    most = number(np.exp(LARGEST))
    return f"CASE WHEN {mean} > {most} THEN {most} ELSE {mean} END"


def _by_sign(target: TargetScale, score: str, side: Callable[[str, float], str]) -> str:
    """Return an expression by the sign of g; `side(sign, power)` is that of one side."""
    above, below = side("", target.power), side("-", 2.0 - target.power)
    return f"CASE WHEN {score} >= 0 THEN {above} ELSE {below} END"


def _power(g: str, power: float, share: float) -> str:
    """Return (1 + power g)^(share / power), or at power 0 its limit exp(share g)."""
    if power == 0.0:
        return f"EXP({number(share)} * ({g}))"
    return f"POWER(1e0 + {number(power)} * ({g}), {number(share / power)})"


def _within(target: TargetScale, score: str, expression: str, at: Callable) -> str:
    """Return an expression of the score, which is constant outside of the range of g.

    `at(g)` is its value at numbers (n,).
    """
    low, high = (
        f"{number(g)} THEN {number(at(np.array([g]))[0])}" for g in (target.low, target.high)
    )
    return f"CASE WHEN {score} < {low} WHEN {score} > {high} ELSE {expression} END"
