"""The verdict: in how many cells our learners are near the best of all methods, and where not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from benchmarks.accuracy.cells import Cell, cells
from benchmarks.accuracy.data import GROUPS
from benchmarks.accuracy.methods import METHODS
from benchmarks.accuracy.store import Outcomes
from benchmarks.accuracy.verdict import Gap, gap

POOLED = "pooled-ridge", "pooled"


class Rule(NamedTuple):
    """A learner, the field that judges it, and what it should reach.

    `share` is the least share of cells within 1 % plus two standard errors of the best, `worst` the
    largest distance, in % beyond two standard errors.
    """

    learner: str
    field: str
    what: str
    share: int
    worst: float | None


RULES = (
    Rule("auto", "errors", "absolute error", 90, 5),
    Rule("auto", "squared", "root mean squared error", 90, 5),
    Rule("auto-squared", "squared", "root mean squared error", 90, 5),
    Rule("ridge", "errors", "absolute error", 75, 15),
    Rule("ridge", "squared", "root mean squared error", 75, 15),
    Rule("ridge-base", "errors", "absolute error", 75, 15),
    Rule("ridge-base", "squared", "root mean squared error", 75, 15),
    Rule("ridge-linear", "errors", "absolute error", 75, 15),
    Rule("ridge-linear", "squared", "root mean squared error", 75, 15),
    Rule("auto-classifier", "errors", "log loss", 90, None),
    Rule("logistic", "errors", "log loss", 75, None),
)


class Judged(NamedTuple):
    """A cell in which a learner was judged, and its distance to the best method."""

    cell: Cell
    gap: Gap

    @property
    def percent(self) -> float:
        """Return the distance in % of the best error."""
        return 100 * self.gap.difference / self.gap.best_error

    @property
    def beyond(self) -> float:
        """Return the distance in % beyond two standard errors."""
        return 100 * (self.gap.difference - 2 * self.gap.se) / self.gap.best_error


def judge(found: Iterable[Cell], learner: str, among: Iterable[str] | None = None) -> list[Judged]:
    """Compare a learner with the best of all methods, or of those named, in every cell."""
    out = []
    for cell in found:
        rivals = [name for name in cell.errors if among is None or name in among]
        if learner in cell.errors and any(name != learner for name in rivals):
            out.append(Judged(cell, gap(cell.errors, learner, rivals)))
    return out


def verdicts(outcomes: Outcomes) -> str:
    """Return the tables of all groups that were measured."""
    return "\n".join(text for each in GROUPS if (text := verdict(outcomes, each)))


def verdict(outcomes: Outcomes, group: str) -> str:
    """Return the table of one group, and the cells in which our learners are behind."""
    rows, behind = [["learner", "judged by", "within", "goal", "worst, %", "goal", "where"]], []
    for rule in RULES:
        classes = METHODS[rule.learner].classes
        found = judge(cells(outcomes, [group], rule.field, classes), rule.learner)
        if found:
            rows.append(_row(rule, found))
            behind += [_behind(rule, each) for each in found if not each.gap.within]
    if len(rows) == 1:
        return ""
    text = [f"## Verdict: {group}", "", WITHIN, "", table(rows), "", cold_start(outcomes, group)]
    if behind:
        head = ["learner", "judged by", "data", "n", "error", "best", "behind, %", "two se, %"]
        text += ["", "Cells that are not within:", "", table([head, *behind])]
    return "\n".join([*text, "", densities(outcomes, group)])


WITHIN = (
    "Within: cells no more than 1 % plus two standard errors behind the best of all methods. "
    "Worst: the largest distance in %, less two standard errors."
)


def _row(rule: Rule, found: list[Judged]) -> list[str]:
    within = sum(each.gap.within for each in found)
    last = max(found, key=lambda each: each.beyond)
    return [
        METHODS[rule.learner].title, rule.what,
        f"{within} of {len(found)} ({100 * within / len(found):.0f} %)", f"{rule.share} %",
        f"{max(last.beyond, 0):.1f}", "" if rule.worst is None else f"{rule.worst:g}",
        f"{last.cell.data}, n = {last.cell.size}",
    ]  # fmt: skip


def _behind(rule: Rule, each: Judged) -> list[str]:
    cell, best = each.cell, each.gap
    return [
        METHODS[rule.learner].title, rule.what, cell.data, str(cell.size),
        f"{cell.errors[rule.learner].mean():.4g}",
        f"{METHODS[best.best].title} {best.best_error:.4g}",
        f"{each.percent:.1f}", f"{200 * best.se / best.best_error:.1f}",
    ]  # fmt: skip


def cold_start(outcomes: Outcomes, group: str) -> str:
    """Say how far ConditionalRidge is behind the better pooled ridge at 0 points, at worst."""
    zero = [cell for cell in cells(outcomes, [group], "errors") if cell.size == 0]
    found = judge(zero, "ridge", POOLED)
    if not found:
        return ""
    bad = [each for each in found if each.beyond > 2]
    last = max(found, key=lambda each: each.beyond)
    return (
        f"At 0 points ConditionalRidge is more than 2 % plus two standard errors behind the better "
        f"of two pooled ridges on {len(bad)} of {len(found)} data sets; the worst is "
        f"{last.cell.data}: {last.percent:+.1f} %."
    )


def densities(outcomes: Outcomes, group: str) -> str:
    """Return the mean log density of labels by method, beside that of ConditionalRidge."""
    found = [cell for cell in cells(outcomes, [group], "density") if "ridge" in cell.errors]
    names = [name for name in METHODS if any(name in cell.errors for cell in found)]
    rows = [["log density of a label", "mean above ConditionalRidge", "median", "better in"]]
    for name in names:
        apart = np.array(
            [(c.errors[name] - c.errors["ridge"]).mean() for c in found if name in c.errors]
        )
        if name != "ridge":
            better = f"{(apart > 0).sum()} of {len(apart)} cells"
            mean, median = f"{apart.mean():+.3f}", f"{np.median(apart):+.3f}"
            rows.append([METHODS[name].title, mean, median, better])
    return f"{table(rows)}\n" if len(rows) > 1 else ""


def table(rows: list[list[str]]) -> str:
    """Return rows, the first of which is the head, as a table of Markdown."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])
