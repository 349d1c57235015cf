"""Tables of more columns than a task has rows: time, memory, and errors on new tasks.

100 tasks of 30 rows. The peer is a pooled RidgeCV of scikit-learn on the same rows, with 13 values
of alpha. Errors are root mean square errors on 100 new tasks, after 0, 1, 3, 5 and 10 points.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
from scipy.sparse import random as random_rows
from sklearn.linear_model import RidgeCV

import condmeta as cm
from benchmarks.common import at_most, fastest, interleaved, no_goal, row, show_time, timed

TASKS, ROWS, SHOTS = 100, 30, (0, 1, 3, 5, 10)
BEFORE = {50: 2.5, 100: 12.0}  # seconds, before tables of many columns had a prior of their own
ALPHAS = np.logspace(-2, 4, 13)
KINDS = (
    "same", "levels", "levels by inputs", "dense", "few columns", "side", "multiples", "spectra"
)  # fmt: skip


def draw(kind: str, d: int, seed: int, n_tasks: int = TASKS, n_rows: int = ROWS):
    """Return X, y, the task of each row, and side information (T, 3), of tasks that differ.

    same: in nothing; levels: in their intercepts; levels by inputs: in intercepts that grow with
    the mean of the task's rows in one direction; dense: a little in every coefficient; few
    columns: in five of them; side: as side information says; multiples: in the size of all
    coefficients; spectra: in correlated columns.
    """
    environment, rng = np.random.default_rng([d, 0]), np.random.default_rng([d, seed])
    b, M = environment.normal(size=d) / np.sqrt(d), environment.normal(size=(d, 3)) / np.sqrt(d)
    mixing, few = environment.normal(size=(8, d)), environment.permutation(d)[:5]
    side, task = rng.normal(size=(n_tasks, 3)), np.repeat(np.arange(n_tasks), n_rows)
    X, W, level = rng.normal(size=(len(task), d)), np.tile(b, (n_tasks, 1)), np.zeros(n_tasks)
    if kind == "spectra":
        X = rng.normal(size=(len(task), 8)) @ mixing + 0.3 * X
    if kind in ("dense", "spectra"):
        W += 0.5 * rng.normal(size=W.shape) / np.sqrt(d)
    elif kind == "levels":
        level = 2 * rng.normal(size=n_tasks)
    elif kind == "levels by inputs":
        center = rng.normal(size=n_tasks)
        X += center[task, None] * mixing[0] / np.sqrt(8)
        level = 2 * center + 0.5 * rng.normal(size=n_tasks)
    elif kind == "few columns":
        W[:, few] += 0.7 * rng.normal(size=(n_tasks, 5))
    elif kind == "side":
        W += side @ M.T
    elif kind == "multiples":
        W *= np.exp(0.5 * rng.normal(size=(n_tasks, 1)))
    y = np.einsum("ij,ij->i", X, W[task]) + level[task] + 0.7 * rng.normal(size=len(task))
    return X, y, task, side


def main() -> list[dict]:
    """Measure times, memory and errors."""
    return [*_times(), *_other_learners(), _many(), _sparse(), *map(_errors, KINDS)]


def _fit(learner, X, y, task, side) -> Callable:
    table = cm.TaskTable(side, ids=range(len(side)))
    return lambda: learner.fit(X, y, task=task, side_info=table)


def _times() -> list[dict]:
    rows = []
    for d, kind in ((50, "levels"), (100, "levels"), (500, "levels"), (500, "side")):
        data = draw(kind, d, 1)
        calls = {
            "ours": _fit(cm.ConditionalRidge(), *data),
            "peer": lambda data=data: RidgeCV(ALPHAS).fit(*data[:2]),
        }
        ours, peer = fastest(interleaved(calls, 3))
        verdict = at_most(ours / peer, 10) if d == 500 else at_most(ours, BEFORE[d], " s")
        rows.append(row(f"fit, {d} columns ({kind})", show_time(ours), show_time(peer), verdict))
    return rows


def _other_learners() -> list[dict]:
    data = draw("levels", 500, 1)
    peer = timed(lambda: RidgeCV(ALPHAS).fit(*data[:2]))
    learners = {
        "PooledRegressor": cm.PooledRegressor(),
        "IndependentRegressor": cm.IndependentRegressor(),
        "AutoRegressor(base=None)": cm.AutoRegressor(base=None),
    }
    rows = []
    for name, learner in learners.items():
        ours = timed(_fit(learner, *data))
        verdict = at_most(ours / peer, 10) if learner is not learners["AutoRegressor(base=None)"] \
            else no_goal(ours / peer)  # fmt: skip
        rows.append(row(f"{name}, 500 columns", show_time(ours), show_time(peer), verdict))
    return rows


def _many() -> dict:
    data = draw("levels", 5000, 1)
    peer = timed(lambda: RidgeCV(ALPHAS).fit(*data[:2]))
    fit = _fit(cm.ConditionalRidge(), *data)
    ours = timed(fit)
    tracemalloc.start()
    fit()
    peak, size = tracemalloc.get_traced_memory()[1], data[0].nbytes
    tracemalloc.stop()
    note = f"peak memory {peak / size:.1f} times that of X"
    verdict = at_most(ours / peer, 10)
    return row("fit, 5,000 columns (levels)", show_time(ours), show_time(peer), verdict, note)


def _sparse() -> dict:
    rng = np.random.default_rng(0)
    X = random_rows(20_000, 5000, 0.005, format="csr", random_state=0)
    task = np.repeat(np.arange(500), 40)
    y = X @ rng.normal(size=5000) + rng.normal(size=500)[task] + 0.3 * rng.normal(size=20_000)
    fit = _fit(cm.ConditionalRidge(), X, y, task, rng.normal(size=(500, 3)))
    ours = timed(fit)
    tracemalloc.start()
    fit()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    note = f"peak memory {peak / 1e6:.0f} MB; as a dense table X has {X.shape[0] * 40e-3:.0f} MB"
    what = "fit, 20,000 sparse rows of 5,000 columns"
    return row(what, show_time(ours), "", no_goal(ours, " s"), note)


def _errors(kind: str) -> dict:
    """Compare errors on new tasks, of tables of 100 and 500 columns."""
    worst, best, told = 0.0, np.inf, []
    for d in (100, 500):
        X, y, task, side = draw(kind, d, 2)
        model = _fit(cm.ConditionalRidge(), X, y, task, side)()
        X, y, new, sides = draw(kind, d, 3, n_rows=40)
        rank, table = np.arange(len(y)) % 40, cm.TaskTable(sides, ids=range(TASKS))
        judged = rank >= max(SHOTS)
        pooled = RidgeCV(ALPHAS).fit(*draw(kind, d, 2)[:2]).predict(X[judged])
        peer = np.sqrt(np.mean((pooled - y[judged]) ** 2))
        ratios = []
        for shot in SHOTS:
            shown = rank < shot
            # Ids of new tasks must be new: negative ones.
            names, given = -1 - new, cm.TaskTable(table.data, ids=-1 - np.arange(TASKS))
            if shot:
                models = model.adapt(X[shown], y[shown], task=names[shown], side_info=given)
                found = models.predict(X[judged], task=names[judged])
            else:
                found = model.predict(X[judged], task=names[judged], side_info=given)
            ratios.append(float(np.sqrt(np.mean((found - y[judged]) ** 2)) / peer))
        worst, best = max(worst, *ratios), min(best, *ratios)
        told.append(f"{d} columns: " + ", ".join(f"{ratio:.3f}" for ratio in ratios))
    note = "ratios after " + ", ".join(map(str, SHOTS)) + " points; " + "; ".join(told)
    return row(f"worst error, {kind}", f"{worst:.3f}", "1", at_most(worst, 1.02), note)
