"""The page of results: one table per data set, and the cells where our learner is behind."""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy.data import PROBLEMS
from benchmarks.accuracy.methods import METHODS
from benchmarks.accuracy.run import Outcome
from benchmarks.accuracy.store import Outcomes
from benchmarks.accuracy.verdict import Gap, best_of, gap, standard_error

# Our learners, and whether they are to reach the best of the methods linear in x, or of all.
JUDGED = {"ridge": True, "auto": False}
HEAD = """# Accuracy on new tasks

Made by `python -m benchmarks.accuracy --write`. Every method is fitted to the training tasks; of a
new task it sees n support points, and predicts the query points. Cells are mean absolute errors,
and in brackets their standard errors over splits of the tasks; all methods see the same rows.
**Bold** is the best of a column. A tick marks those of our methods that are within 1 % plus two
standard errors, of the paired difference, of the best; "behind" lists the rest. Times are processor
seconds of one thread: of a fit, and milliseconds to adapt to a new task and predict its query
points. A fit that takes more than {limit:g} s is ended, and not tried on further splits.

Mixed models and GPBoost predict a new task from its support by the BLUP formulas; inputs, side
columns and all their products are their fixed effects. Packages run with their default settings,
but for the rounds of GPBoost's trees, which are chosen on tasks left out. The MAML loop is our own.

A tick says that a difference was not shown, not that there is none: with few splits the standard
error can be large, so read it beside the error itself.
"""


def page(outcomes: Outcomes, limit: float, about: str) -> str:
    """Return the page in Markdown."""
    known = [name for name in PROBLEMS if name in outcomes]
    sections = [section(name, outcomes[name]) for name in known]
    return "\n".join([HEAD.format(limit=limit), f"{about}\n", behind(outcomes), *sections])


def section(name: str, outcomes: dict[str, Outcome]) -> str:
    """Return the table of one data set."""
    problem = PROBLEMS[name]
    lines = [f"## {name}", "", f"{problem.title}.", ""]
    if not any(outcome.errors for outcome in outcomes.values()):
        reasons = {outcome.failure for outcome in outcomes.values()}
        return "\n".join([*lines, f"Skipped: {'; '.join(sorted(reasons))}.", ""])
    splits = most_splits(outcomes)
    lines[2] += (
        f" {problem.n_train} training tasks, {problem.n_test} new tasks at most, {splits} splits."
    )
    sizes = [f"n = {size}" for size in problem.sizes]
    rows = [["method", *sizes, "fit, s", "adapt, ms"]]
    columns = [at_size(outcomes, j) for j in range(len(problem.sizes))]
    for method in METHODS:
        if method in outcomes:
            rows.append(_row(method, outcomes[method], columns, splits))
    return "\n".join([*lines, table(rows), ""])


def most_splits(outcomes: dict[str, Outcome]) -> int:
    """Return the most splits that half of the methods which did not fail have."""
    counts = [len(outcome.errors) for outcome in outcomes.values() if not outcome.failure]
    counts = sorted(counts, reverse=True) or [0]
    return counts[(len(counts) - 1) // 2]


def at_size(outcomes: dict[str, Outcome], j: int) -> dict[str, np.ndarray]:
    """Return the errors (splits,) of every complete method at one support size."""
    splits = most_splits(outcomes)
    return {
        method: np.array(outcome.errors)[:splits, j]
        for method, outcome in outcomes.items()
        if method in METHODS and splits and len(outcome.errors) >= splits
    }


def _row(method: str, outcome: Outcome, columns, splits: int) -> list[str]:
    title, width = METHODS[method].title, len(columns)
    if len(outcome.errors) < splits:
        done = f"({len(outcome.errors)} of {splits} splits done)" if outcome.errors else ""
        return [title, f"{outcome.failure} {done}".strip(), *[""] * (width + 1)]
    cells = [_cell(method, errors) for errors in columns]
    times = f"{np.mean(outcome.fit):.2g}", f"{1e3 * np.mean(outcome.adapt):.2g}"
    return [title, *cells, *times]


def _cell(method: str, errors: dict[str, np.ndarray]) -> str:
    mean = f"{errors[method].mean():.4g}"
    text = f"{mean} ({standard_error(errors[method]):.1g})"
    if best_of(errors, errors) == method:
        return f"**{mean}** ({standard_error(errors[method]):.1g})"
    if METHODS[method].ours and gap(errors, method, errors).within:
        return f"{text} ✓"
    return text


def behind(outcomes: Outcomes) -> str:
    """Return the cells in which our learners are not within reach of the best method."""
    return "## Behind\n\n" + "\n".join(_judged(outcomes, *which) for which in JUDGED.items())


def _judged(outcomes: Outcomes, ours: str, linear: bool) -> str:
    rows = [["data", "n", METHODS[ours].title, "best", "behind, %", "two se, %"]]
    cells = 0
    for name in (name for name in PROBLEMS if name in outcomes):
        for j, size in enumerate(PROBLEMS[name].sizes):
            errors = at_size(outcomes[name], j)
            if ours not in errors:
                continue
            cells += 1
            others = [method for method in errors if METHODS[method].linear or not linear]
            entry = gap(errors, ours, others)
            if not entry.within:
                rows.append(_behind(name, size, errors[ours], entry))
    peers = "methods linear in x" if linear else "all methods"
    text = (
        f"{METHODS[ours].title} is within reach of the best of {peers} in {cells - len(rows) + 1} "
        f"of {cells} cells."
    )
    return f"{text}\n\n{table(rows)}\n" if len(rows) > 1 else f"{text}\n"


def _behind(name: str, size: int, ours: np.ndarray, entry: Gap) -> list[str]:
    unit = 100 / entry.best_error
    return [
        name, str(size), f"{ours.mean():.4g}",
        f"{METHODS[entry.best].title} {entry.best_error:.4g}",
        f"{unit * entry.difference:.1f}", f"{2 * unit * entry.se:.1f}",
    ]  # fmt: skip


def table(rows: list[list[str]]) -> str:
    """Return rows, the first of which is the head, as a table of Markdown."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])
