"""Acceleration of a fixed-point iteration that climbs an objective (SQUAREM)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def climb(step: Callable, start: Any, to_vector, from_vector, tol: float, most: int):
    """Iterate `step` to a fixed point; return it, its objective and the number of steps.

    `step(p)` gives the objective at p and the next p; it never lowers the objective. Two steps
    p0, p1, p2 with r = p1 - p0 and v = (p2 - p1) - r are extrapolated to p0 + 2 a r + a^2 v,
    a = ||r|| / ||v||, in the coordinates of `to_vector`. What is no better than p1 is dropped for
    the plain step, so that the objective still never falls. The end is a change of the objective
    below `tol` times its size.

    References
    ----------
    Varadhan and Roland: Simple and globally convergent methods for accelerating the convergence of
    any EM algorithm, Scandinavian Journal of Statistics 35, 2008, scheme S3.
    """
    value, after = step(start)
    here, steps = start, 1
    while steps < most:
        next_value, beyond = step(after)
        steps += 1
        if abs(next_value - value) <= tol * abs(next_value):
            return after, next_value, steps
        x0, x1, x2 = map(to_vector, (here, after, beyond))
        here, value, after = after, next_value, beyond
        r = x1 - x0
        v = x2 - x1 - r
        a = np.linalg.norm(r) / max(np.linalg.norm(v), 1e-300)
        if not a > 1.01 or steps >= most:
            continue
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            far = from_vector(x0 + 2 * a * r + a * a * v)
            try:
                far_value, far_after = step(far)
            except np.linalg.LinAlgError:
                continue
        steps += 1
        if np.isfinite(far_value) and far_value >= value:
            settled = abs(far_value - value) <= tol * abs(far_value)
            here, value, after = far, far_value, far_after
            if settled:
                break
    return here, value, steps
