"""The page of results: one table per data set, and the cells where our learner is behind."""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy.cells import at_size, most_splits
from benchmarks.accuracy.data import PROBLEMS, group
from benchmarks.accuracy.methods import METHODS
from benchmarks.accuracy.run import Outcome
from benchmarks.accuracy.store import Outcomes
from benchmarks.accuracy.verdict import best_of, gap, standard_error
from benchmarks.accuracy.verdict_tables import table, verdicts

HEAD = """# Accuracy on new tasks

Made by `python -m benchmarks.accuracy --write`. Every method is fitted to the training tasks; of a
new task it sees n support points, and predicts the query points. Cells are mean absolute errors, or
log losses of two classes, and in brackets their standard errors over splits of the tasks; all
methods see the same rows. **Bold** is the best of a column. A tick marks those of our methods that
are within 1 % plus two standard errors, of the paired difference, of the best. Times are processor
seconds of one thread: of a fit, and milliseconds to adapt to a new task and predict its query
points. A fit that takes longer than the limit is ended, and not tried on further splits: "> 10 s".

The learners were designed on the first twelve data sets and on the development half. The validation
half was looked at only to write this page. A hash of its name decides the half of a data set. The
fresh tables were added on 2026-11-18. Errors on both groups were seen before the last two changes
of the Auto learners: every task counts in every draw of the weights, and up to 50 tasks are held
out in several rounds. Development tables, cut to 5 to 30 of their tasks, decided on the second.

Mixed models and GPBoost predict a new task from its support by the BLUP formulas; inputs, side
columns and all their products are their fixed effects. Packages run with their default settings,
but for the rounds of trees, which are chosen on tasks left out. The MAML loop is our own.

A tick says that a difference was not shown, not that there is none: with few splits the standard
error can be large, so read it beside the error itself.
"""


def page(outcomes: Outcomes, about: str) -> str:
    """Return the page in Markdown."""
    known = [name for name in PROBLEMS if name in outcomes]
    sections = [section(name, outcomes[name]) for name in known]
    return "\n".join([HEAD, f"{about}\n", verdicts(outcomes), *sections])


def section(name: str, outcomes: dict[str, Outcome]) -> str:
    """Return the table of one data set."""
    problem = PROBLEMS[name]
    lines = [f"## {name} ({group(name)})", "", f"{problem.title}.", ""]
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
