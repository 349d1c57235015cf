"""Do 95 % intervals of side effects and of coefficients contain the truth?

Drawn tasks: one input and the intercept, one side column, six points each, 300 draws. `summary()`
has the intervals of effects, `coef_frame(std=True)` the standard deviations of the coefficients of
tasks. Where "H follows s", the spread of coefficients grows with the side column by exp(.6 s),
which the model does not know: `peer` is the coverage of the model-based intervals, which need not
hold there. Goal: robust intervals of effects, and coefficients, 93 to 97 %.
"""

from __future__ import annotations

import numpy as np

import condmeta as cm
from benchmarks.common import row

TASKS, SPREADS = (50, 200), {"": 0.0, ", H follows s": 0.6}
DRAWS = 300
GOAL = 0.93, 0.97
SETTINGS = {
    "metric": "full", "noise": "shared", "kappa": 0.0, "context": False, "x_transform": None,
    "y_transform": None,
}  # fmt: skip
MAP = np.array([[0.8, -0.5], [1.0, 0.3]])  # of the side column, and of the constant
ROOT = np.array([[0.6, 0.2], [0.0, 0.5]])


def simulate(seed: int, n_tasks: int, spread: float) -> tuple[cm.ConditionalRidge, np.ndarray]:
    """Return a fitted learner and the true coefficients; log H grows with s by 2 `spread`."""
    rng = np.random.default_rng(seed)
    s = rng.normal(size=n_tasks)
    around = rng.normal(size=(n_tasks, 2)) @ ROOT * np.exp(spread * s)[:, None]
    w = np.column_stack([s, np.ones(n_tasks)]) @ MAP + around
    task, x = np.repeat(np.arange(n_tasks), 6), rng.normal(size=6 * n_tasks)
    y = w[task, 0] * x + w[task, 1] + rng.normal(size=6 * n_tasks)
    side = cm.TaskTable({"s": s}, range(n_tasks))
    return cm.ConditionalRidge(**SETTINGS).fit(x[:, None], y, task=task, side_info=side), w


def coverage(n_tasks: int, spread: float, draws: int) -> dict[str, np.ndarray]:
    """Return the share of intervals that contain the truth in each draw, by their kind."""
    truth = MAP[::-1].T.ravel()
    hits: dict[str, list] = {"robust": [], "model": [], "coefficients": []}
    for seed in range(draws):
        model, w = simulate(seed, n_tasks, spread)
        for kind in ("robust", "model"):
            found = model.summary(robust=kind == "robust").effects
            inside = (found["lower"] <= truth) & (truth <= found["upper"])
            hits[kind].append(inside.mean())
        frame = model.coef_frame(std=True)
        off = np.abs(frame["adapted"].to_numpy() - w.ravel()) / frame["std"].to_numpy()
        hits["coefficients"].append(np.mean(off < 1.96))
    return {kind: np.array(found) for kind, found in hits.items()}


def main() -> list[dict]:
    """Measure coverage."""
    rows = []
    for n_tasks in TASKS:
        for words, spread in SPREADS.items():
            hits = coverage(n_tasks, spread, DRAWS)
            for kind, what in (("robust", "effects"), ("coefficients", "coefficients")):
                share, error = hits[kind].mean(), hits[kind].std() / np.sqrt(DRAWS)
                met = GOAL[0] <= share <= GOAL[1]
                peer = f"{100 * hits['model'].mean():.1f} %" if kind == "robust" else ""
                verdict = {"goal": "93 to 97 %", "met": bool(met)}
                note = f"standard error {100 * error:.1f} %"
                name = f"{what}, {n_tasks} tasks{words}"
                rows.append(row(name, f"{100 * share:.1f} %", peer, verdict, note))
    return rows
