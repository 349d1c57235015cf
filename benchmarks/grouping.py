"""Grouping a shuffled table of ten million rows by task, against a sort of the same rows."""

from __future__ import annotations

import numpy as np

import condmeta as cm
from benchmarks.common import at_most, fastest, interleaved, no_goal, require, row, show_time

ROWS, FEATURES = 10_000_000, 5
REPEATS = 2
NOTE = f"peer: stable argsort of the codes, known to it, and gather; best of {REPEATS}"


def main() -> list[dict]:
    """Measure TaskSet.from_arrays for whole numbers and for text as ids."""
    rng = np.random.default_rng(9)
    X, y = rng.standard_normal((ROWS, FEATURES)), rng.standard_normal(ROWS)
    few = rng.permutation(np.arange(ROWS) % 100_000)
    texts = np.array([f"s{i:07d}" for i in range(100_000)])[few]
    many = rng.permutation(np.arange(ROWS) % 1_000_000)
    return [
        *_rows(X, y, few, {"int": few + 10**9, "str": texts}),
        *_rows(X, y, many, {"int": many + 10**9}),
    ]


def sort_and_gather(X: np.ndarray, y: np.ndarray, codes: np.ndarray) -> tuple:
    """Group rows as NumPy does it when the codes are known: a stable sort, then copies."""
    order = np.argsort(codes, kind="stable")
    return X[order], y[order], order


def _rows(X, y, codes: np.ndarray, columns: dict[str, np.ndarray]) -> list[dict]:
    calls = {"sort": lambda: sort_and_gather(X, y, codes)}
    order = sort_and_gather(X, y, codes)[2]
    for kind, ids in columns.items():
        calls[kind] = lambda ids=ids: cm.TaskSet.from_arrays(X, y, task=ids)
        _compare(calls[kind](), X, codes, order, kind)
    floor, *times = fastest(interleaved(calls, REPEATS))
    rows = []
    for kind, seconds in zip(columns, times, strict=True):
        what = f"TaskSet.from_arrays, {ROWS:g} rows, {codes.max() + 1:g} tasks, {kind} ids"
        verdict = at_most(seconds / floor, 2) if kind == "int" else no_goal(seconds / floor)
        rows.append(row(what, show_time(seconds), show_time(floor), verdict, NOTE))
    return rows


def _compare(tasks: cm.TaskSet, X, codes, order, kind: str) -> None:
    """Require the rows of a stable sort: tasks stand by first row here and by code there."""
    first = codes[tasks.row_order[tasks.offsets[:-1]]]
    rank = np.empty(len(tasks), np.int64)
    rank[first] = np.arange(len(tasks))
    starts = np.zeros(len(tasks) + 1, np.int64)
    np.cumsum(np.bincount(codes), out=starts[1:])
    shift = np.repeat(tasks.offsets[:-1][rank] - starts[:-1], np.diff(starts))
    at = np.arange(len(codes)) + shift
    require(
        bool(
            (tasks.row_order[at] == order).all()
            and (tasks.X[at[::97], 0] == X[order[::97], 0]).all()
        ),
        f"grouping by {kind} ids: rows differ from those of a stable sort.",
    )
