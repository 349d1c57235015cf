"""Read tables by a formula: the arguments of a call of a learner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw

from condmeta.errors import DataError
from condmeta.fitted.tables import INTERCEPT
from condmeta.tables.formula_parts import FormulaParts
from condmeta.tables.formula_terms import FormulaTerms, variables
from condmeta.tasks import TaskTable
from condmeta.tasks.frames import is_frame, require_columns
from condmeta.tasks.messages import show_id

OF_NEW_ROWS = "offset", "exposure", "time"  # roles that predictions need


def read_tables(
    parts: FormulaParts, terms: FormulaTerms, columns: Mapping[str, str], table: Any,
    side_table: Any, labelled: bool = False,
) -> tuple[Any, Any, dict[str, Any]]:  # fmt: skip
    """Return X as a table, y or None, and the further arguments of a call of the learner.

    `columns` has the columns of weights, offsets and the like, by role.
    """
    table = as_pandas(table, "the table")
    require_columns(table, parts.task)
    X = terms.columns("features", parts.features, table)
    if not X.shape[1]:
        X = X.assign(**{INTERCEPT: 1.0})
    y = _read_target(parts.target, terms, table) if labelled else None
    ids = table[parts.task[0] if len(parts.task) == 1 else parts.task]
    call = {"task": ids, "side_info": _read_side(parts, terms, table, side_table)}
    for role, column in columns.items():
        if labelled or (role in OF_NEW_ROWS and (role != "time" or column in table.columns)):
            require_columns(table, [column], role)
            call[role] = table[column]
    return X, y, call


def _read_target(target: str, terms: FormulaTerms, table: Any) -> Any:
    """Return the labels: numbers, or the names of classes."""
    if target.startswith("cbind("):
        raise DataError(
            f"{target!r} holds successes and failures: write the column of successes as the "
            "target, and name the column of trials in trials=."
        )
    y = terms.columns("target", f"0 + {target}", table)
    if y.shape[1] == 1:
        return y.iloc[:, 0]
    if target not in table.columns:
        raise DataError(
            f"The target {target!r} must be a number, or a column of classes. Write arithmetic "
            "in I(...). For k successes in m trials, write k as the target and trials='m'."
        )
    return table[target]


def _read_side(
    parts: FormulaParts, terms: FormulaTerms, table: Any, side_table: Any
) -> TaskTable | None:
    """Return the side rows of tasks: of the side table, or of columns that tasks share."""
    task, side = parts.task, parts.side
    if side is None:
        return None
    if side_table is None:
        if not set(variables(side)) <= set(table.columns):
            return None  # of known tasks
        rows = table[[*task, *variables(side)]].drop_duplicates()
    else:
        rows = as_pandas(side_table, "the side table")
        require_columns(rows, task)
    twice = rows[task].duplicated()
    if twice.any():
        first = tuple(rows[task][twice].iloc[0])
        raise DataError(
            f"Task {show_id(first[0] if len(task) == 1 else first)} has several rows of side "
            f"columns: {', '.join(variables(side))} must be constant within a task."
        )
    return TaskTable(terms.columns("side", side, rows), rows[task])


def as_pandas(table: Any, what: str) -> Any:
    """Return a table as pandas, with rows numbered from 0."""
    if not is_frame(table):
        raise DataError(f"A formula needs {what} as a DataFrame. Got {type(table).__name__}.")
    frame = nw.from_native(table, eager_only=True).to_pandas()
    return frame.reset_index(drop=frame.index.names == [None])
