"""What the benchmarks share: seeded tasks, clocks, agreement of answers, rows of a table."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np


class Tasks(NamedTuple):
    """T tasks of n points around w = M phi + b + 0.5 N(0, I), y = <x, w> + N(0, 1).

    X (T n, d), y (T n,), offsets (T+1,), Phi (T, k), theta (T, d) = M phi + b.
    """

    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    Phi: np.ndarray
    theta: np.ndarray

    def head(self, count: int) -> Tasks:
        """Return the first tasks."""
        rows = self.offsets[count]
        parts = self.X[:rows], self.y[:rows], self.offsets[: count + 1]
        return Tasks(*parts, self.Phi[:count], self.theta[:count])

    def parts(self):
        """Yield theta, X, y of each task."""
        for t, theta in enumerate(self.theta):
            rows = slice(self.offsets[t], self.offsets[t + 1])
            yield theta, self.X[rows], self.y[rows]


def draw_tasks(count: int, n: int, d: int, k: int, seed: int) -> Tasks:
    """Draw tasks; M and b depend on the sizes alone, so that seeds draw from one environment."""
    rng = np.random.default_rng([d, k])
    M, b = rng.standard_normal((d, k)) / np.sqrt(k), rng.standard_normal(d)
    rng = np.random.default_rng(seed)
    Phi = rng.standard_normal((count, k))
    theta = Phi @ M.T + b
    W = theta + 0.5 * rng.standard_normal((count, d))
    X = rng.standard_normal((count * n, d))
    y = np.einsum("tnd,td->tn", X.reshape(count, n, d), W).ravel()
    y += rng.standard_normal(count * n)
    return Tasks(X, y, np.arange(count + 1) * n, Phi, theta)


def pin() -> None:
    """Keep this process on one core, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def timed(call: Callable[[], Any]) -> float:
    """Return the processor seconds of a call: other processes on the machine do not count."""
    gc.collect()
    start = time.process_time()
    result = call()
    seconds = time.process_time() - start
    del result
    return seconds


def interleaved(calls: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Time calls in turn, so that a slow moment of the machine meets all of them."""
    runs: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            runs[name].append(timed(call))
    return runs


def fastest(runs: Mapping[str, list[float]]) -> list[float]:
    """Return the smallest time of each call, in order."""
    return [min(times) for times in runs.values()]


def medians(runs: Mapping[str, list[float]]) -> list[float]:
    """Return the median time of each call, in order."""
    return [statistics.median(times) for times in runs.values()]


def require(condition: bool, sentence: str) -> None:
    """Stop the benchmark where answers do not agree: a wrong answer has no speed."""
    if not condition:
        raise AssertionError(sentence)


def agree(ours, theirs, what: str, tol: float) -> None:
    """Require two arrays to be equal to `tol`, relative to the largest entry."""
    scale = np.abs(theirs).max()
    error = np.abs(np.asarray(ours) - theirs).max() / (scale if scale > 0 else 1.0)
    require(bool(error <= tol), f"{what}: answers differ by {error:.1e}, allowed is {tol:.0e}.")


def at_least(ratio: float, bound: float, unit: str = "x") -> dict[str, Any]:
    """Return the ratio, the goal and whether it is met, for a ratio that should be large."""
    return {
        "ratio": f"{ratio:.3g}{unit}",
        "goal": f">= {bound:g}{unit}",
        "met": bool(ratio >= bound),
    }


def at_most(ratio: float, bound: float, unit: str = "x") -> dict[str, Any]:
    """Return the ratio, the goal and whether it is met, for a ratio that should be small."""
    return {
        "ratio": f"{ratio:.3g}{unit}",
        "goal": f"<= {bound:g}{unit}",
        "met": bool(ratio <= bound),
    }


def no_goal(ratio: float, unit: str = "x") -> dict[str, Any]:
    """Return a ratio that is for information."""
    return {"ratio": f"{ratio:.3g}{unit}", "goal": "", "met": None}


def row(what: str, ours: str, peer: str, verdict: Mapping[str, Any], note: str = "") -> dict:
    """Return one row of a table: what, ours, peer, ratio, goal, met, note."""
    return {"what": what, "ours": ours, "peer": peer, **verdict, "note": note}


def show_time(seconds: float) -> str:
    """Write a time with a unit that suits its size."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"
