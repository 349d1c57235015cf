"""How often does the interval of `advantage` contain the true gap?

200 data sets of 300 tasks of 10 points. Coverage of the nominal 90 % interval of V(w_rho)^2 - min
V(tau)^2; `theory.best_linear` computes the truth in closed form. Side information that is pure
noise has a gap of 0. `ratio` is the coverage.
"""

from __future__ import annotations

import numpy as np

import condmeta as cm
from benchmarks.common import at_least, row
from condmeta.feature_maps import CircleMap, Identity, MeanInput

REPEATS, TASKS, POINTS = 200, 300, 10
CASES = {
    "two clusters, w_rho = 4, mean input": ("two-clusters-mean-4", MeanInput()),
    "one cluster, mean input": ("one-cluster", MeanInput()),
    "circle, its own map": ("circle", CircleMap()),
    "circle, five columns of noise": ("circle", Identity()),
}


def main() -> list[dict]:
    """Count the intervals that hold the truth."""
    rows = []
    for what, (name, feature_map) in CASES.items():
        true, found = study(name, feature_map, REPEATS)
        held = 100 * np.mean((found[:, 1] <= true) & (true <= found[:, 2]))
        zero = 100 * np.mean(found[:, 1] <= 0)
        spread = f"{found[:, 0].mean():.4g} +- {found[:, 0].std():.2g}"
        note = f"estimates {spread}, 0 held in {zero:.0f} %"
        width = f"+- {np.mean(found[:, 2] - found[:, 0]):.3g}"
        rows.append(row(what, width, f"true gap {true:.4g}", at_least(held, 85, " %"), note))
    return rows


def study(name: str, feature_map, repeats: int, seed: int = 0) -> tuple[float, np.ndarray]:
    """Return the true gap, and estimate and interval (repeats, 3) on fresh tasks."""
    environment = cm.environments.paper_environment(name, n=POINTS)
    is_noise = isinstance(feature_map, Identity)
    true = 0.0 if is_noise else cm.theory.best_linear(environment, feature_map).gap
    found = []
    for rng in np.random.default_rng(seed).spawn(repeats):
        tasks = environment.sample(TASKS, rng)
        if is_noise:
            tasks = tasks.with_side(cm.TaskTable(rng.normal(size=(TASKS, 5)), tasks.ids))
        units = {"scale": "none", "fit_intercept": False}  # those of the environment
        found.append(cm.advantage(tasks, feature_map=feature_map, shots=(), **units).gap)
    return true, np.array(found)
