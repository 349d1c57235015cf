"""Splines of columns in SQL (see `condmeta.fitted.splines`)."""

from collections.abc import Sequence

import numpy as np

from condmeta.fitted.dialects import number
from condmeta.fitted.splines import Splines


def bend_columns(splines: Splines, x: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return the columns that splines add to those with the expressions x, by the names of all."""
    found = [bend for j in np.flatnonzero(splines.bends) for bend in _bends(x[j], splines.knots[j])]
    return dict(zip(names[len(x) :], found, strict=True))


def _bends(x: str, knots: np.ndarray) -> list[str]:
    """Return the splines of a column, as `Splines.transform` computes them."""
    *first, last = knots.tolist()
    unit = last - first[0]
    z = f"(({x} - {number(first[0])}) / {number(unit)})".replace("- -", "+ ")
    *cubes, least = (_cube(z, (knot - first[0]) / unit) for knot in first)
    return [f"{cube} - {least}" for cube in cubes]


def _cube(z: str, a: float) -> str:
    """Return max(min(z, 1) - a, 0)^3 / (1 - a) + 3 max(z - 1, 0) (1 - a)."""
    inside = " * ".join([f"({z} - {number(a)})"] * 3)
    beyond = f"{number((1 - a) ** 2)} + {number(3 * (1 - a))} * ({z} - 1e0)"
    return (
        f"CASE WHEN {z} <= {number(a)} THEN 0e0 WHEN {z} <= 1 THEN {inside} / {number(1 - a)} "
        f"ELSE {beyond} END"
    )
