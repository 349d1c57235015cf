"""Adaptation in bulk and one at a time, and predictions of many known tasks."""

from __future__ import annotations

import statistics
import time

import numpy as np

import condmeta as cm
from benchmarks.common import (
    Tasks,
    agree,
    at_least,
    at_most,
    draw_tasks,
    fastest,
    interleaved,
    no_goal,
    row,
    show_time,
)

N, D, K = 10, 20, 5
T = 100_000
LOOPED = 1000  # tasks of the loop of Ridge, whose time is per task
ROWS = 1_000_000
LAM = 0.1
CALLS = 1000


def main() -> list[dict]:
    """Measure adapt against a loop of Ridge, one adapt call, and predict against its arithmetic."""
    train = draw_tasks(2000, N, D, K, seed=4)
    learner = cm.ConditionalSGDRegressor(loss="squared", inner="batch", lam=LAM, keep_tasks=False)
    learner.fit(hold(train))
    return [_in_bulk(learner), *_one_call(learner), *_predict()]


def hold(tasks: Tasks, first: int = 0, name=int) -> cm.TaskSet:
    """Return a TaskSet with the features as its side table."""
    ids = [name(i) for i in range(first, first + len(tasks.Phi))]
    side = cm.TaskTable(tasks.Phi, ids=ids)
    return cm.TaskSet(tasks.X, tasks.y, tasks.offsets, ids, side=side)


def ridge_loop(theta: np.ndarray, tasks: Tasks) -> np.ndarray:
    """Solve mean e^2 / 2 + lam/2 ||w - theta||^2 for each task by Ridge on its residuals."""
    from sklearn.linear_model import Ridge

    coef = np.empty_like(theta)
    for t, (_, X, y) in enumerate(tasks.parts()):
        model = Ridge(alpha=LAM * len(y), fit_intercept=False)
        coef[t] = theta[t] + model.fit(X, y - X @ theta[t]).coef_
    return coef


def _in_bulk(learner) -> dict:
    tasks = draw_tasks(T, N, D, K, seed=5)
    held, few = hold(tasks), tasks.head(LOOPED)
    models = learner.adapt(held)
    theta = models.theta_[:LOOPED]
    agree(models.coef_[:LOOPED], ridge_loop(theta, few), "adapt and Ridge", 1e-8)
    del models
    calls = {"adapt": lambda: learner.adapt(held), "loop": lambda: ridge_loop(theta, few)}
    ours, loop = fastest(interleaved(calls, 5))
    ours, loop = ours / T, loop / LOOPED
    return row(
        f"a task, adapt of {T:g} tasks of {N}, d = {D}, squared", show_time(ours),
        show_time(loop), at_least(loop / ours, 100),
        f"peer: loop of Ridge(alpha=lam n) over {LOOPED} tasks; one thread, best of 5",
    )  # fmt: skip


def _one_call(learner) -> list[dict]:
    few = draw_tasks(CALLS, 5, D, K, seed=6)
    default = cm.ConditionalSGDRegressor(keep_tasks=False).fit(hold(few))
    rows = []
    for name, model in (("squared, batch", learner), ("absolute, online", default)):
        points = list(zip(few.parts(), few.Phi.tolist(), strict=True))
        sides = [{f"s{j}": value for j, value in enumerate(phi)} for _, phi in points]
        tasks = [(X, y, side) for ((_, X, y), _), side in zip(points, sides, strict=True)]
        together = model.adapt(hold(few))
        one = model.adapt(*tasks[0][:2], side_info=tasks[0][2])
        agree(one.coef_, together.coef_[0], "adapt alone and in bulk", 1e-10)
        times = [timed_adapt(model, *task) for task in tasks]
        median = statistics.median(times)
        verdict = at_most(median / 1e-3, 1.0, " ms")
        note = f"side row: a dict of {K} numbers; median of {CALLS} calls, wall clock"
        rows.append(
            row(f"one adapt call, n = 5, d = {D}, {name}", show_time(median), "", verdict, note)
        )
    return rows


def timed_adapt(model, X, y, side) -> float:
    """Return the time of one call; the garbage collector stays as a user has it."""
    start = time.perf_counter()
    model.adapt(X, y, side_info=side)
    return time.perf_counter() - start


def _predict() -> list[dict]:
    tasks = draw_tasks(T, N, D, K, seed=7)
    rng = np.random.default_rng(8)
    codes = rng.integers(0, T, ROWS)
    X = rng.standard_normal((ROWS, D))
    rows = []
    for kind, name in (("int", int), ("str", "store-{:06d}".format)):
        learner = cm.ConditionalSGDRegressor().fit(hold(tasks, name=name))
        coef = learner.fitted_.tasks.coef
        ids = np.array([name(i) for i in range(T)])[codes]

        def arithmetic(coef=coef):
            return np.einsum("ij,ij->i", X, coef[codes])

        def ours(learner=learner, ids=ids):
            return learner.predict(X, task=ids)

        agree(ours(), arithmetic(), f"predict, {kind} ids", 1e-12)
        seconds, floor = fastest(interleaved({"predict": ours, "arithmetic": arithmetic}, 3))
        rows.append(
            row(f"predict of {ROWS:g} shuffled rows, {T:g} known tasks, {kind} ids",
                show_time(seconds), show_time(floor), no_goal(seconds / floor),
                "peer: gather of the weights and row products alone, codes known")
        )  # fmt: skip
    return rows
