"""The page of a comparison: the advised learner, errors, side information, single tasks."""

from __future__ import annotations

import base64
import csv
import io
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

import condmeta
from condmeta.display.pages.render import inline_svg, render
from condmeta.display.pages.task_cards import MOST_TASKS, task_cards
from condmeta.display.plots import AdvantageDisplay, ShotCurveDisplay
from condmeta.display.plots.advantage import MOST, label_shares
from condmeta.display.plots.canvas import MOST_LINES, add_notes, default_style, new_figure
from condmeta.engine import active_engine
from condmeta.text import rows_known

if TYPE_CHECKING:
    from condmeta.evaluation.comparison import Comparison
    from condmeta.evaluation.report_words import Words

# inches, by the class of page.css that shows the figure
WIDTHS = {"on-desk": 11.0, "on-phone": 3.6}
HEIGHT = 4.2
MOST_NAMED = 3  # side columns in the description of their chart
NARROW = 6.0  # below it a legend has one column
MEANING = {
    "own data": "a model of its own rows",
    "pooled": "one linear model for all rows",
    "unconditional": "each starts from what all have in common",
    "conditional": "each starts from what its side information suggests",
    "transformed": "the same with splines of the inputs, or with labels on another scale",
    "unconditional on base": "boosted trees for all rows, corrected by own rows",
    "conditional on base": "boosted trees for all rows, corrected by side information and own rows",
    "task mean on base": "boosted trees for all rows, plus the mean of the own residuals",
    "constant on base": "boosted trees for all rows, the same for all tasks",
    "auto": "the best of these for each number of known rows",
}
SHOWN = {
    "random": "drawn at random",
    "first": "the first ones; the error is that on the later ones",
}


def render_comparison(
    found: Comparison, words: Words, *, title: str | None = None, command: str | None = None,
    following: str | None = None,
) -> str:  # fmt: skip
    """Return the page as text; its charts do not depend on the user's style of matplotlib."""
    tasks, cards = found.tasks, task_cards(found) | {"noun": words.noun}
    cards["learner"] = words.labels[found.advised]
    cards["coef_learner"] = words.labels.get(cards["coef_learner"], "")
    with default_style():
        curves = _curves(found, words)
        has_shares = found.advantage is not None
        pictures = {"advantage": _advantage_picture(found, words)} if has_shares else {}
    return render(
        "comparison.html", ("sort.js", "cards.js"), title=title or "Which learner?",
        command=command, found=found, words=words, facts=_facts(found), curves=curves,
        rows=[_row(found, name, words) for name in found.names], columns=_columns(found),
        pictures=pictures,
        snippet=following or _snippet(found), download=_csv_link(found.rows), cards=cards,
        shown=min(len(cards["tasks"]), MOST_TASKS), of_all=int((tasks.sizes > 0).sum()),
        about={"condmeta": condmeta.__version__, "engine": active_engine()},
    )  # fmt: skip


def _curves(found: Comparison, words: Words) -> dict[str, Any]:
    """Return the chart of the best learners, their number, and the chart of all if more exist."""
    display = ShotCurveDisplay.from_frame(found.frame, error_name=f"mean {found.criterion.title}")
    charts = {"some": MOST_LINES} | ({"all": None} if len(found.names) > MOST_LINES else {})
    made: dict[str, Any] = {"all": None, "drawn": min(MOST_LINES, len(found.names))}
    for key, most in charts.items():
        made[key] = Markup()
        for kind, width in WIDTHS.items():
            _draw_curves(display, words, width, most)
            alt = _errors_in_words(found, words, list(display.lines_))
            made[key] += inline_svg(display.figure_, f"{key}-{kind}", alt, kind)
    return made


def _errors_in_words(found: Comparison, words: Words, names: list[str]) -> str:
    """Return the errors of some learners for people who cannot see the chart, the best first."""
    parts = []
    for shot in found.shots:
        rows = [row for row in found.rows if row["shot"] == shot and row["learner"] in names]
        rows.sort(key=lambda row: row["error"])
        errors = "; ".join(f"{words.labels[row['learner']]} {row['error']:.3g}" for row in rows)
        parts.append(f"With {rows_known(shot)}: {errors}.")
    return f"Mean {found.criterion.title} for a new {words.noun}. {' '.join(parts)}"


def _draw_curves(display: ShotCurveDisplay, words: Words, width: float, most: int | None) -> None:
    """Draw the chart with the names of the report; its legend stands above, where it fits."""
    display.plot(new_figure(width, HEIGHT).subplots(), legend=False, most=most)
    display.ax_.set_xlabel(f"rows of the {words.noun} that are known")
    if display.cut_:
        add_notes(display.ax_, ["\N{BLACK UP-POINTING TRIANGLE} above the chart: see the table"])
    for name, line in display.lines_.items():
        line.set_label(words.labels[name])
    display.figure_.legend(
        handles=list(display.lines_.values()), loc="outside upper center", frameon=False,
        ncols=1 if width < NARROW else 3, fontsize="small",
    )  # fmt: skip


def _facts(found: Comparison) -> dict[str, str]:
    tasks = found.tasks
    sizes = tasks.sizes[tasks.sizes > 0]
    low, high = int(sizes.min()), int(sizes.max())
    points = str(low) if low == high else f"{low} to {high} (median {np.median(sizes):g})"
    side = [] if tasks.side is None else list(tasks.side.columns)
    names = tasks.feature_names or [f"x{j}" for j in range(tasks.n_features)]
    return {
        "tasks": f"{len(sizes):,}, each with {points} rows",
        "rows": f"{len(tasks.y):,}",
        "features": f"{tasks.n_features}: {_listed(names)}",
        "side information": f"{len(side)} columns: {_listed(side)}" if side else "none",
        "error": f"mean {found.criterion.title} on tasks held out in 5 folds",
        "rows known": SHOWN[found.order],
    }


def _listed(names: Any, most: int = 12) -> str:
    names = list(map(str, names))
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def _row(found: Comparison, name: str, words: Words) -> dict[str, Any]:
    """Return the errors of one learner; the best of a column is marked."""
    mine = (row for row in found.rows if row["learner"] == name)
    cells = [row | {"is_best": row["behind"] == 0} for row in mine]
    return {"name": words.labels[name], "meaning": MEANING.get(name, ""), "cells": cells}


def _columns(found: Comparison) -> list[dict[str, Any]]:
    """Return the side columns, sorted by the share that each explains alone."""
    shares = {} if found.advantage is None else found.advantage.column_shares
    rows = [{"name": name, "alone": a, "unique": b} for name, (a, b) in shares.items()]
    return sorted(rows, key=lambda row: -row["alone"].value)


def _advantage_picture(found: Comparison, words: Words) -> Markup:
    display, made = AdvantageDisplay.from_advantage(found.advantage), Markup()
    shares = sorted(display.columns.items(), key=lambda item: -item[1][0][0])[:MOST_NAMED]
    alone = "; ".join(
        f"{name} {100 * min(max(alone[0], 0), 1):.0f} %" for name, (alone, _) in shares
    )
    alt = f"{words.side} Alone: {alone}."
    for kind, width in WIDTHS.items():
        height = 1.6 + 0.36 * min(len(display.columns), MOST)
        display.plot(new_figure(width, height).subplots())
        label = f"share of how one {words.noun} differs from another"
        label_shares(display.ax_, label, len(display.columns) - MOST)
        made += inline_svg(display.figure_, f"advantage-{kind}", alt, kind)
    return made


def _snippet(found: Comparison) -> str:
    """Return the lines of code that fit and use the advised learner."""
    has_side = found.tasks.side is not None
    side, row = (", side_info=side_table", ", side_info=row") if has_side else ("", "")
    return (
        f"model = cm.{found.call}.fit(X, y, task=ids{side})\n"
        "model.predict(X_new, task=ids_new)  # known tasks, and new tasks without rows\n"
        f"model.adapt(X_few, y_few{row})  # a new task, from a few rows"
    )


def _csv_link(rows: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return "data:text/csv;base64," + base64.b64encode(out.getvalue().encode()).decode()
