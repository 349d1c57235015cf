"""From scores to labels in SQL: classes, and the inverse of `y_transform` with its slope.

With g = ((1 + z)^p - 1) / p for z = y / unit >= 0, y = unit ((1 + p g)^(1/p) - 1) and
dy/dg = unit (1 + z)^(1-p); below zero the same with 2 - p, -g and -z (see `TargetScale`).
"""

import numpy as np

from condmeta.fitted.count_distribution import LARGEST
from condmeta.fitted.dialects import SqlDialect, number
from condmeta.fitted.target import NODES, SHARES, TargetScale

SCORE = "score"  # the column of predictions on the scale of g


def label_of(target: TargetScale, score: str) -> str:
    """Return the prediction from the column of scores: a median, or a mean (`TargetScale.undo`)."""
    if not target.spread:
        return _inverse(target, score)
    median = target._replace(spread=0.0)
    means = [
        f"{number(share)} * ({_inverse(median, f'({score} + {number(target.spread * z)})')})"
        for z, share in zip(NODES, SHARES, strict=True)
    ]
    return "\n      + ".join(means)


def _inverse(target: TargetScale, g: str) -> str:
    """Return y of g(y), which ends where predictions do; the target has no spread."""
    if target.name == "log":
        found = f"EXP({g})"
    else:
        above = f"{number(target.unit)} * ({_power(g, target.power)} - 1e0)"
        below = f"-{number(target.unit)} * ({_power(f'-{g}', 2.0 - target.power)} - 1e0)"
        found = f"CASE WHEN {g} >= 0 THEN {above} ELSE {below} END"
    low, high = (
        f"{number(end)} THEN {number(target.undo(np.array([end]))[0])}"
        for end in (target.low, target.high)
    )
    return f"CASE WHEN {g} < {low} WHEN {g} > {high} ELSE {found} END"


def _power(g: str, power: float) -> str:
    """Return (1 + power g)^(1 / power), or at power 0 its limit exp(g)."""
    if power == 0.0:
        return f"EXP({g})"
    return f"POWER(1e0 + {number(power)} * ({g}), {number(1.0 / power)})"


def slope_of(target: TargetScale, label: str) -> str:
    """Return dy / dg at a label."""
    if target.name == "log":
        return label
    unit, by = number(target.unit), 1.0 - target.power
    above, below = (
        f"{unit} * POWER(1e0 {sign} {label} / {unit}, {number(share)})"
        for sign, share in (("+", by), ("-", -by))
    )
    return f"CASE WHEN {label} >= 0 THEN {above} ELSE {below} END"


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
