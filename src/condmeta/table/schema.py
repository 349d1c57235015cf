"""How a table is read: learned once by fit, the same ever after."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

from condmeta import persistence
from condmeta.errors import DataError
from condmeta.table.columns import Columns, read_rows, refuse_gaps, require_values
from condmeta.table.target import find_classes, read_labels
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.encode import TableEncoder
from condmeta.tasks.frames import (
    backend_of,
    column_names,
    get_column,
    get_series,
    select_columns,
)
from condmeta.tasks.ids import factorize
from condmeta.tasks.numbers import DATE
from condmeta.tasks.side_table import read_side_table, side_from_rows


class Schema:
    """The columns of a table, how its features are encoded, and what its target is.

    Attributes
    ----------
    columns : Columns
    encoder : TableEncoder
        Numbers as they are, booleans 0 and 1, categories one-hot.
    classes : list or None
        The two values of a target that has two.
    side_columns, side_text : list of str
        Columns of the side information that the model reads, and those of them that are text.
    """

    def __init__(self, columns: Columns, missing: str, side_key: Any):
        self.columns, self.missing, self.side_key = columns, missing, side_key
        self.side_columns: list[str] = []
        self.side_text: list[str] = []

    def learn(self, frame: Any, rows: TaskTable, classifier: bool | None) -> Schema:
        """Learn kinds, levels and classes from a table and its raw features, as `rows` gives."""
        self.classes = find_classes(frame, self.columns.target, classifier)
        self.encoder = TableEncoder(of_rows=True).fit(rows)
        for name, levels in self.encoder.levels_.items():
            texts = levels or self.encoder.pooled_[name]
            if len(texts) > 1 and all(re.match(DATE, text) for text in texts):
                raise DataError(
                    f"Column {name!r} holds dates ({texts[0]}, ...): make a number of it, such as "
                    "the days since a start, or exclude it."
                )
            if not levels and self.encoder.pooled_[name]:
                raise DataError(
                    f"Column {name!r} holds {len(self.encoder.pooled_[name]):,} different texts in "
                    f"{rows.n_tasks:,} rows, none of them common: leave it out."
                )
        return self

    @property
    def feature_names(self) -> list[str]:
        """Names of the encoded features."""
        return list(self.encoder.names_out_)

    @property
    def text(self) -> list[str]:
        """Columns of a table that are names and not numbers, whatever they look like in a file."""
        names = [name for name, kind in self.encoder.kinds_.items() if kind == "category"]
        if self.classes is not None and isinstance(self.classes[0], str):
            names.append(self.columns.target)
        return [*self.columns.task, *names, *self.side_text]

    def rows(self, frame: Any) -> TaskTable:
        """Return the raw features of a table; gaps may be refused."""
        rows = read_rows(frame, self.columns.features)
        if self.missing == "error":
            refuse_gaps(rows)
        return rows

    def matrix(self, frame: Any) -> np.ndarray:
        """Return the features of a table, encoded (N, d); unseen levels are reported."""
        return np.ascontiguousarray(self.encoder.transform(self.rows(frame)))

    def ids(self, frame: Any) -> Any:
        """Return the ids of the rows, in the kind of the table."""
        keys = self.columns.task
        require_values(frame, keys, "task")
        return get_series(frame, keys[0]) if len(keys) == 1 else select_columns(frame, keys)

    @property
    def task_name(self) -> Any:
        """Return the name of the task column, or a tuple of several."""
        keys = self.columns.task
        return keys[0] if len(keys) == 1 else tuple(keys)

    def learn_side(self, frame: Any, side_info: Any, wanted: list[str]) -> TaskTable | None:
        """Return the side information of a fit, and keep in mind which columns it has."""
        if side_info is None:
            table = self._side_of_rows(frame) if self.columns.side else None
        else:
            table = read_side_table(side_info, task_name=self.task_name, side_key=self.side_key)
            self.side_columns = wanted
            table = self._pick(table) if wanted else table
        self.side_columns = [] if table is None else list(table.columns)
        if table is not None:
            _tell_names(table)
        kinds = {} if table is None else table.data
        self.side_text = [name for name, column in kinds.items() if _is_text(column)]
        return table

    def side(self, frame: Any, side_info: Any) -> TaskTable | None:
        """Return the side information of the tasks of a table, if there is any."""
        if side_info is not None:
            table = self.side_of_table(side_info)
            _, ids = factorize(self.ids(frame))
            return table.take(ids[table.has(ids)])
        have = column_names(frame)
        given = [name for name in self.columns.side if name in have]
        if not given:  # known tasks need none
            return None
        if len(given) < len(self.columns.side):
            lacking = next(name for name in self.columns.side if name not in have)
            raise DataError(f"Side column {lacking!r} is not in the table, and {given[0]!r} is.")
        return self._side_of_rows(frame)

    def side_of_table(self, side_info: Any) -> TaskTable:
        """Return a side table as the model reads it."""
        if not self.side_columns:
            raise DataError("The model was fitted without side information: give none now.")
        table = read_side_table(side_info, task_name=self.task_name, side_key=self.side_key)
        return self._pick(table)

    def _side_of_rows(self, frame: Any) -> TaskTable:
        columns = {name: get_column(frame, name) for name in self.columns.side}
        return side_from_rows(columns, *factorize(self.ids(frame)))

    def _pick(self, table: TaskTable) -> TaskTable:
        """Return the columns that the model reads; other ones do not matter."""
        lacking = [name for name in self.side_columns if name not in table.data]
        if lacking:
            raise DataError(
                f"The side table lacks {', '.join(map(repr, lacking))}; it has "
                f"{', '.join(map(repr, table.columns))}."
            )
        data = {name: table.data[name] for name in self.side_columns}
        return TaskTable._make(table.ids, data, table.backend)

    def tasks(
        self, frame: Any, side: TaskTable | None, labelled: bool, X: np.ndarray | None = None
    ) -> TaskSet:
        """Return the rows of a table as tasks; `X` is its matrix, where that is known."""
        target, X = self.columns.target, self.matrix(frame) if X is None else X
        y = read_labels(frame, target, self.classes) if labelled else None
        tasks = TaskSet.from_arrays(
            X, y, self.ids(frame), side_info=side, feature_names=self.feature_names,
            missing_side="mean",
        )  # fmt: skip
        tasks.task_name, tasks.backend = self.task_name, backend_of(frame)
        return tasks

    def describe(self) -> dict[str, Any]:
        """Return the columns and their kinds, for a card."""
        encoder, features = self.encoder, []
        for name, kind in encoder.kinds_.items():
            about: dict[str, Any] = {"name": name, "kind": kind}
            if kind == "category":
                about |= {
                    "levels": list(encoder.levels_[name]),
                    "pooled": len(encoder.pooled_[name]),
                }
            elif encoder.gaps_[name]:
                about["imputed"] = encoder.means_[name]
            features.append(about)
        return {
            "task": self.columns.task,
            "target": self.columns.target,
            "classes": self.classes,
            "features": features,
            "side_columns": self.side_columns,
            "side_from": "columns" if self.columns.side else "table" if self.side_columns else None,
            "missing": self.missing,
        }


def _is_text(column: np.ndarray) -> bool:
    return column.dtype == object and any(isinstance(value, str) for value in column)


persistence.register(Columns, export=Columns._asdict, restore=lambda cls, parts: cls(**parts))
persistence.register(Schema)


def _tell_names(table: TaskTable) -> None:
    """Warn of side columns that are text of which no value is common: they tell nothing."""
    encoder = TableEncoder().fit(table)
    for name, levels in encoder.levels_.items():
        if not levels and encoder.pooled_[name]:
            first = next(iter(encoder.pooled_[name]))
            warnings.warn(
                f"Side column {name!r} holds {len(encoder.pooled_[name]):,} different texts "
                f"({first!r}, ...), none of them common, and so tells nothing: leave it out, or "
                "turn it into numbers.",
                stacklevel=4,
            )
