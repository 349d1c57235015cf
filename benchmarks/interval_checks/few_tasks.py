"""How far intervals of few calibration tasks cover more than they should.

The guarantee gives a new task the weight 1/(T+1) at infinity. Intervals of T tasks therefore aim at
c (1 + 1/T) of the held-out errors, which is more than c if each task has many rows. Errors here are
N(0, rho) of the task plus N(0, 1 - rho) of the row; learning plays no part.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from benchmarks.common import row
from condmeta.meta.conformal import Calibration
from condmeta.meta.error_scale import HeldOut

TASKS, ROWS, RHO = (10, 20, 50, 100), (1, 10), (0.2, 0.6)
DRAWS, COVERAGE = 400, 0.9


def main() -> list[dict]:
    """Return the coverage of new tasks for each number of tasks."""
    return [_row(T) for T in TASKS]


def _row(T: int) -> dict:
    shares = [100 * coverage(T, n, rho) for n in ROWS for rho in RHO]
    what = f"90 % intervals of {T} calibration tasks"
    note = f"rows a task and rho: {', '.join(f'{n} and {rho:g}' for n in ROWS for rho in RHO)}"
    most = {"ratio": f"most {max(shares):.1f} %"}
    return row(what, " / ".join(f"{share:.1f}" for share in shares), "", most, note)


def coverage(T: int, n: int, rho: float) -> float:
    """Return the mean coverage of labels of new tasks over draws of the calibration tasks."""
    rng = np.random.default_rng([T, n, int(10 * rho)])
    return float(np.mean([_one(T, n, rho, rng) for _ in range(DRAWS)]))


def _one(T: int, n: int, rho: float, rng: np.random.Generator) -> float:
    task = np.repeat(np.arange(T), n)
    level = rng.normal(size=T * n)
    error = np.sqrt(rho) * rng.normal(size=T)[task] + np.sqrt(1 - rho) * rng.normal(size=T * n)
    one = np.ones(T * n)
    calibration = Calibration({0: HeldOut(error, level, one, one / n, task)})
    at = norm.ppf((np.arange(200) + 0.5) / 200)  # levels of new predictions
    low, high = calibration.interval(at, np.ones(200), np.zeros(200, int), COVERAGE)
    return float((norm.cdf(high - at) - norm.cdf(low - at)).mean())
