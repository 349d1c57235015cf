"""Grouping a shuffled table of ten million rows by task, against a sort of the same rows."""

from __future__ import annotations

import numpy as np

import condmeta as cm
from benchmarks.common import at_most, fastest, interleaved, no_goal, require, row, show_time

ROWS, FEATURES = 10_000_000, 5
REPEATS = 3


def main() -> list[dict]:
    """Measure TaskSet.from_arrays for whole numbers and for text as ids."""
    rng = np.random.default_rng(9)
    X, y = rng.standard_normal((ROWS, FEATURES)), rng.standard_normal(ROWS)
    rows = []
    for kind, count in (("int", 100_000), ("int", 1_000_000), ("str", 100_000)):
        codes = rng.integers(0, count, ROWS)
        ids = codes + 10**9
        if kind == "str":
            ids = np.array([f"s{i:07d}" for i in range(count)])[codes]
        rows.append(_row(X, y, kind, ids, codes, count))
    return rows


def sort_and_gather(X: np.ndarray, y: np.ndarray, codes: np.ndarray) -> tuple:
    """Group rows as NumPy does it when the codes are known: a stable sort, then copies."""
    order = np.argsort(codes, kind="stable")
    return X[order], y[order], order


def _row(X, y, kind: str, ids: np.ndarray, codes: np.ndarray, count: int) -> dict:
    def ours():
        return cm.TaskSet.from_arrays(X, y, task=ids)

    def peer():
        return sort_and_gather(X, y, codes)

    tasks, (X_sorted, _, order) = ours(), peer()
    # Tasks stand by first row here and by code there; inside a task the rows must be the same.
    at = np.argsort(codes[tasks.row_order], kind="stable")
    require(
        bool((tasks.row_order[at] == order).all() and (tasks.X[at] == X_sorted).all()),
        f"grouping by {kind} ids: rows differ from those of a stable sort.",
    )
    del tasks, X_sorted, order, at
    seconds, floor = fastest(interleaved({"ours": ours, "sort": peer}, REPEATS))
    ratio = seconds / floor
    return row(
        f"TaskSet.from_arrays, {ROWS:g} rows, {count:g} tasks, {kind} ids", show_time(seconds),
        show_time(floor), at_most(ratio, 2) if kind == "int" else no_goal(ratio),
        f"peer: stable argsort of the codes, known to it, and gather; best of {REPEATS}",
    )  # fmt: skip
