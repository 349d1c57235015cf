"""ConditionalRidge with nothing given but the feature map: error on new tasks, and time.

Errors: mean absolute error on 80 new tasks (10 points to learn from, 10 to be judged by) after
fitting 300 tasks of 10 points of the paper's environments; mean of 5 seeds. The peer is the best of
the fixed settings of the learner on the same seeds, which the choice must find; goal: 1 % above it,
and 2 standard errors. Pure-noise side information (20 columns) against none: 2 %, and 2 standard
errors. Times: against the normal equations, in blocks, of a pooled ridge on the products of x and
(Phi, 1), d = k = n = 20, all choices of ours included.
"""

from __future__ import annotations

from itertools import product

import numpy as np

import condmeta as cm
from benchmarks.common import at_most, draw_tasks, fastest, interleaved, no_goal, row, show_time
from condmeta.environments import PAPER_SETTINGS, paper_environment
from condmeta.feature_maps import CircleMap, Identity, MeanInput
from condmeta.meta.prior import METRICS
from condmeta.meta.ridge_choice import KAPPAS, NOISES

SEEDS, TRAIN, NEW, POINTS = 5, 300, 80, 10
PLAIN = {"scale": "none", "fit_intercept": False}


def draw(name: str, inputs: str, seed: int, train: int = TRAIN):
    """Return training tasks, and the two halves of new ones."""
    tasks = paper_environment(name, inputs=inputs).sample(train + NEW, random_state=seed)
    known, _ = tasks[:train].split_points(POINTS, "first")
    return known, *tasks[train:].split_points(POINTS, "first")


def error(learner, known, support, query) -> float:
    """Return the mean absolute error on new tasks."""
    models = learner.fit(known).adapt(support)
    return float(np.abs(models.predict(query) - query.restore_order(query.y)).mean())


def choice(name: str, inputs: str) -> dict:
    """Compare what the learner chose with the best of its fixed settings."""
    feature_map = CircleMap() if name == "circle" else MeanInput()
    ours, fixed = [], []
    for seed in range(SEEDS):
        data = draw(name, inputs, seed)
        ours.append(error(cm.ConditionalRidge(feature_map, **PLAIN), *data))
        fixed.append(
            [
                error(
                    cm.ConditionalRidge(
                        feature_map, metric=metric, noise=noise, kappa=kappa, **PLAIN
                    ),
                    *data,
                )
                for metric, noise, kappa in product(METRICS, NOISES, KAPPAS)
            ]
        )
    best = np.array(fixed)[:, np.mean(fixed, axis=0).argmin()]
    return verdict(f"{name}, {inputs} inputs", np.array(ours), best, 1.0, "peer: best setting")


def noise(train: int) -> dict:
    """Compare noise as side information with none."""
    ours, none = [], []
    for seed in range(SEEDS):
        known, support, query = draw("one-cluster", "gaussian", seed, train)
        rng = np.random.default_rng(seed)
        every = np.concatenate([known.ids, support.ids])
        table = cm.TaskTable(rng.normal(size=(len(every), 20)), ids=every)
        with_noise = [part.with_side(table) for part in (known, support, query)]
        ours.append(error(cm.ConditionalRidge(Identity(), **PLAIN), *with_noise))
        none.append(error(cm.ConditionalRidge(None, **PLAIN), known, support, query))
    what = f"noise as side information, T = {train}"
    return verdict(what, np.array(ours), np.array(none), 2.0, "peer: none")


def verdict(what: str, ours, peer, percent: float, note: str) -> dict:
    """Return a row that says how far the mean of `ours` is above that of `peer`, in percent."""
    slack = 2 * (ours - peer).std(ddof=1) / np.sqrt(len(ours)) / peer.mean() * 100
    above = 100 * (ours.mean() / peer.mean() - 1)
    verdict = {
        "ratio": f"{above:+.2f} %",
        "goal": f"<= {percent:g} % + {slack:.2f} %",
        "met": bool(above <= percent + slack),
    }
    return row(what, f"{ours.mean():.4g}", f"{peer.mean():.4g}", verdict, note)


def pooled(X, y, Phi, task) -> np.ndarray:
    """Return a ridge of y on the products of x and (Phi, 1), by normal equations in blocks."""
    Phi1 = np.column_stack([Phi, np.ones(len(Phi))])
    size = X.shape[1] * Phi1.shape[1]
    system, right = np.eye(size), np.zeros(size)
    for lo in range(0, len(X), 4000):
        at = slice(lo, lo + 4000)
        Z = (X[at, :, None] * Phi1[task[at], None, :]).reshape(-1, size)
        system += Z.T @ Z
        right += Z.T @ y[at]
    return np.linalg.solve(system, right)


def times() -> list[dict]:
    """Compare the time of a fit, all choices included, at three numbers of tasks."""
    rows, seconds = [], {}
    for count in (10_000, 30_000, 100_000):
        tasks = draw_tasks(count, 20, 20, 20, seed=1)
        ids, task = np.arange(count), np.repeat(np.arange(count), 20)
        side = cm.TaskTable(tasks.Phi, ids=ids)
        held = cm.TaskSet(tasks.X, tasks.y, tasks.offsets, ids.tolist(), side=side)
        learner = cm.ConditionalRidge(keep_tasks=False)
        calls = {
            "ours": lambda learner=learner, held=held: learner.fit(held),
            "pooled": lambda tasks=tasks, task=task: pooled(tasks.X, tasks.y, tasks.Phi, task),
        }
        ours, peer = seconds[count] = fastest(interleaved(calls, 1 if count > 30_000 else 2))
        last = count == 100_000
        verdict = at_most(ours / peer, 1.0) if last else no_goal(ours / peer)
        rows.append(row(f"fit, T = {count}", show_time(ours), show_time(peer), verdict,
                        "peer: pooled ridge on products, fixed penalty"))  # fmt: skip
    few, some, many = (own for own, _ in seconds.values())
    growth = (many - few) / (some - few) / 4.5
    rows.append(row("time for 90,000 tasks more over that for 20,000 more", f"{4.5 * growth:.2f}",
                    "4.5", at_most(growth, 1.2), "4.5: linear in T"))  # fmt: skip
    return rows


def main() -> list[dict]:
    """Compare errors, then times."""
    rows = [choice(*which) for which in product(PAPER_SETTINGS, ("gaussian", "unit"))]
    return [*rows, noise(300), noise(30), *times()]
