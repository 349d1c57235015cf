"""The page of a comparison: what to use, by how much, does side information pay, task by task."""

from __future__ import annotations

import base64
import csv
import io
from typing import Any

import numpy as np

import condmeta
from condmeta.engine import active_engine
from condmeta.evaluation.comparison import AUTO, Comparison
from condmeta.plots import AdvantageDisplay, ShotCurveDisplay
from condmeta.plots.canvas import new_figure
from condmeta.report.fill import fill
from condmeta.report.pictures import inline_svg
from condmeta.report.task_cards import MOST_TASKS, task_cards

SIZE = 5.2, 3.6  # inches
MEANING = {
    "own data": "the task's own points alone",
    "pooled": "one linear model for all tasks",
    "unconditional": "a learned prior, no side information",
    "conditional": "a learned prior that follows the side information",
    "unconditional on base": "boosted trees, then a learned prior on top of them",
    "conditional on base": "boosted trees, then a prior that follows the side information",
    "task mean on base": "boosted trees plus the shrunken mean of the task's residuals",
    AUTO: "chosen among these for each number of points, by other tasks",
}

SHOWN = {
    "random": "drawn from those of the task",
    "first": "the first of the task in their order; it is judged by the later ones",
}


def render_comparison(
    found: Comparison,
    *,
    title: str | None = None,
    command: str | None = None,
    following: str | None = None,
) -> str:
    """Return the page as text."""
    tasks, cards = found.tasks, task_cards(found)
    curves = ShotCurveDisplay.from_frame(found.frame, error_name=f"mean {found.criterion.title}")
    curves.plot(new_figure(*SIZE).subplots(), legend=False)
    curves.figure_.legend(
        handles=list(curves.lines_.values()), loc="outside upper center", ncols=3, frameon=False,
        fontsize="small",
    )  # fmt: skip
    pictures = {}
    if found.advantage is not None:
        pictures["advantage"] = _advantage_picture(found)
    return fill(
        "comparison.html",
        ("sort.js", "cards.js"),
        title=title or "Which learner?",
        command=command,
        found=found,
        facts=_facts(found),
        curves=inline_svg(curves.figure_, "curves", curves.describe()),
        rows=[_row(found, c) for c in range(len(found.names))],
        columns=_columns(found),
        pictures=pictures,
        snippet=following or _snippet(found),
        cards=cards,
        shown=min(len(cards["tasks"]), MOST_TASKS),
        of_all=int((tasks.sizes > 0).sum()),
        download=_as_link(_table_text(found)),
        about={"condmeta": condmeta.__version__, "engine": active_engine()},
    )


def _facts(found: Comparison) -> dict[str, str]:
    tasks = found.tasks
    sizes = tasks.sizes[tasks.sizes > 0]
    side = [] if tasks.side is None else list(tasks.side.columns)
    names = tasks.feature_names or [f"x{j}" for j in range(tasks.n_features)]
    return {
        "tasks": f"{len(sizes)}, with {_from_to(sizes)} points",
        "rows": f"{len(tasks.y)}",
        "features": f"{tasks.n_features}: {_listed(names)}",
        "side information": f"{len(side)} columns: {_listed(side)}" if side else "none",
        "judged by": f"mean {found.criterion.title} on tasks held out in 5 folds",
        "points shown": SHOWN[found.order],
    }


def _from_to(sizes: np.ndarray) -> str:
    low, high = int(sizes.min()), int(sizes.max())
    return str(low) if low == high else f"{low} to {high} (median {np.median(sizes):g})"


def _listed(names, most: int = 12) -> str:
    names = list(map(str, names))
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def _row(found: Comparison, c: int) -> dict[str, Any]:
    """Return the errors of one learner, with marks for the best."""
    name = found.names[c]
    mine = (row for row in found.rows if row["learner"] == name)
    cells = [row | {"is_best": row["behind"] == 0} for row in mine]
    return {"name": name, "meaning": MEANING.get(name, ""), "cells": cells}


def _columns(found: Comparison) -> list[dict[str, Any]]:
    """Return the side columns, the one that explains most alone first."""
    if found.advantage is None:
        return []
    rows = [
        {"name": name, "alone": alone, "unique": unique}
        for name, (alone, unique) in found.advantage.column_shares.items()
    ]
    return sorted(rows, key=lambda row: -row["alone"].value)


def _advantage_picture(found: Comparison):
    display = AdvantageDisplay.from_advantage(found.advantage)
    display.plot(new_figure(SIZE[0], 1.6 + 0.32 * min(len(display.columns), 12)).subplots())
    return inline_svg(display.figure_, "advantage", display.describe())


def _snippet(found: Comparison) -> str:
    """Return the lines that fit and use what is advised."""
    side, row = ("", "")
    if found.tasks.side is not None:
        side, row = ", side_info=side_table", ", side_info=row"
    return "\n".join(
        [
            f"model = cm.{found.call}.fit(X, y, task=ids{side})",
            "model.predict(X_new, task=ids_new)  # known tasks, and new ones without points",
            f"model.adapt(X_few, y_few{row})  # a new task, from a few points",
        ]
    )


def _table_text(found: Comparison) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(found.rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found.rows)
    return out.getvalue()


def _as_link(text: str) -> str:
    return "data:text/csv;base64," + base64.b64encode(text.encode()).decode()
