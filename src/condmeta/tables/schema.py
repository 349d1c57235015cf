"""How a table is read: `fit` learns it once, and later tables are read in the same way."""

import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from condmeta import persistence
from condmeta.errors import DataError
from condmeta.feature_maps.table_encoder import TableEncoder
from condmeta.persistence.fields import (
    ANY,
    TEXT,
    InvalidFieldError,
    instance,
    maybe,
    one_of,
    sequence,
)
from condmeta.persistence.registry import construct
from condmeta.tables.roles import ColumnOptions, Roles, assign_roles, open_side_table, read_side
from condmeta.tables.values import find_classes, has_text, read_labels
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.frames import backend_of, column_names, get_column, get_series, require_columns
from condmeta.tasks.ids import factorize
from condmeta.tasks.numbers import DATE
from condmeta.tasks.side_column import type_column
from condmeta.tasks.side_table import as_names, side_from_rows


@dataclass(frozen=True, eq=False)
class Schema:
    """The columns of a table by role, and the encoding of its features and its target.

    Attributes
    ----------
    roles : Roles
    missing : "error" or "impute"
        What happens to a missing feature.
    encoder : TableEncoder
        Numbers as they are, booleans 0 and 1, categories one-hot.
    classes : list or None
        The two values of a target that has two.
    side_text : list of str
        Side columns that hold text.
    """

    roles: Roles
    missing: str
    encoder: TableEncoder
    classes: list | None
    side_text: list[str]

    @property
    def feature_names(self) -> list[str]:
        """Names of the encoded features."""
        return list(self.encoder.names_out_)

    @property
    def text(self) -> list[str]:
        """Columns of a table that hold names, even where these look like numbers in a file."""
        names = [name for name, kind in self.encoder.kinds_.items() if kind == "category"]
        if self.classes is not None and isinstance(self.classes[0], str):
            names.append(self.roles.target)
        return [*self.roles.task, *names, *self.side_text]

    @property
    def side_table_text(self) -> list[str]:
        """Columns of a side table that hold names: its key and its text columns."""
        return [*(self.roles.side_key or self.roles.task), *self.side_text]

    def matrix(self, frame: Any) -> np.ndarray:
        """Return the encoded features of a table (N, d); unseen levels are reported."""
        rows = _read_features(frame, self.roles, self.missing)
        return np.ascontiguousarray(self.encoder.transform(rows))

    def side(self, frame: Any, side_info: Any) -> TaskTable | None:
        """Return the side information of the tasks of a table, if there is any."""
        if side_info is not None:
            table = self.side_of_table(side_info)
            _, ids = factorize(self.roles.ids(frame))
            return table.take(ids[table.has(ids)])
        have = column_names(frame)
        given = [name for name in self.roles.side if name in have]
        if not given:  # known tasks need none
            return None
        if len(given) < len(self.roles.side):
            lacking = next(name for name in self.roles.side if name not in have)
            raise DataError(f"Side column {lacking!r} is not in the table, and {given[0]!r} is.")
        return _side_of_rows(frame, self.roles)

    def side_of_table(self, side_info: Any) -> TaskTable:
        """Return the columns of a side table that the model reads."""
        if not self.roles.side_columns:
            raise DataError("The model was fitted without side information: give none now.")
        # A model that was fitted with side columns of the table reads them from a side table too.
        return read_side(side_info, self.roles._replace(side_table=self.roles.side_columns))

    def tasks(
        self, frame: Any, side: TaskTable | None, labelled: bool, X: np.ndarray | None = None
    ) -> TaskSet:
        """Return the rows of a table as tasks; `X` are its encoded features, where known."""
        X = self.matrix(frame) if X is None else X
        y = read_labels(frame, self.roles.target, self.classes) if labelled else None
        tasks = TaskSet.from_arrays(
            X, y, self.roles.ids(frame), side_info=side, feature_names=self.feature_names,
            missing_side="mean",
        )  # fmt: skip
        tasks.task_name, tasks.backend = self.roles.task_name, backend_of(frame)
        return tasks

    def describe(self) -> dict[str, Any]:
        """Return the columns and their kinds, for a model card."""
        encoder, features = self.encoder, []
        for name, kind in encoder.kinds_.items():
            about: dict[str, Any] = {"name": name, "kind": kind}
            if kind == "category":
                about["levels"] = list(encoder.levels_[name])
                about["pooled"] = len(encoder.pooled_[name])
            elif encoder.gaps_[name]:
                about["imputed"] = encoder.means_[name]
            features.append(about)
        roles = self.roles
        return {
            "task": roles.task, "target": roles.target, "classes": self.classes,
            "features": features, "side_columns": roles.side_columns,
            "side_from": "columns" if roles.side else "table" if roles.side_table else None,
            "missing": self.missing,
        }  # fmt: skip


def learn_schema(
    frame: Any, side_info: Any, options: ColumnOptions, missing: str, classifier: bool | None
) -> tuple[Schema, np.ndarray, TaskTable | None]:
    """Learn how to read tables like this one: roles, kinds of columns, levels, classes.

    Parameters
    ----------
    frame : table
    side_info : table, dict or TaskTable, optional
        The side table.
    options : ColumnOptions
        The columns that the user named.
    missing : "error" or "impute"
    classifier : bool or None
        Whether the learner predicts classes; None leaves that to the target.

    Returns
    -------
    the schema, the encoded features (N, d), the side information of all tasks or None
    """
    if missing not in ("error", "impute"):
        raise DataError(
            "The 'missing' parameter of TableModel must be 'error' or 'impute'. "
            f"Got {missing!r} instead."
        )
    side_table = None if side_info is None else open_side_table(side_info)
    roles = assign_roles(frame, side_table, options)
    rows = _read_features(frame, roles, missing)
    classes = find_classes(frame, roles.target, classifier)
    encoder = TableEncoder(of_rows=True).fit(rows)
    _refuse_names_and_dates(encoder, rows.n_tasks)
    X = np.ascontiguousarray(encoder.transform(rows))
    if side_table is not None:
        side = read_side(side_table, roles)
    else:
        side = _side_of_rows(frame, roles) if roles.side else None
    side_text = []
    if side is not None:
        _warn_uncommon_texts(side)
        side_text = [name for name, column in side.data.items() if has_text(column)]
    return Schema(roles, missing, encoder, classes, side_text), X, side


def _read_features(frame: Any, roles: Roles, missing: str) -> TaskTable:
    """Return the raw features of a table, typed, one entry a row; gaps may be refused."""
    require_columns(frame, roles.features, "features")
    data = {n: type_column(get_series(frame, n), n, "Column") for n in roles.features}
    n_rows = len(next(iter(data.values()))) if data else 0
    rows = TaskTable.trusted(np.arange(n_rows), data)
    if missing == "error" and (gaps := rows.gaps()).any():
        counts = zip(rows.columns, gaps.sum(axis=0).tolist(), strict=True)
        found = [f"{name!r} {count:,}" for name, count in counts if count]
        shown = ", ".join(found[:8]) + (", ..." if len(found) > 8 else "")
        raise DataError(
            f"Features have missing values among {n_rows:,} rows: {shown}. Fill them, drop the "
            "rows, or set missing='impute' to use the mean and mark the gaps."
        )
    return rows


def _side_of_rows(frame: Any, roles: Roles) -> TaskTable:
    columns = {name: get_column(frame, name) for name in roles.side}
    return side_from_rows(columns, *factorize(roles.ids(frame)))


def _refuse_names_and_dates(encoder: TableEncoder, n_rows: int) -> None:
    """Refuse text features that are dates, or where hardly any value occurs twice."""
    for name, levels in encoder.levels_.items():
        pooled = encoder.pooled_[name]
        texts = levels or pooled
        if len(texts) > 1 and all(re.match(DATE, text) for text in texts):
            raise DataError(
                f"Column {name!r} holds dates ({texts[0]}, ...): make a number of it, such as "
                "the days since a start, or exclude it."
            )
        if not levels and pooled:
            raise DataError(
                f"Column {name!r} holds {len(pooled):,} different texts in {n_rows:,} rows, none "
                "of them common: leave it out."
            )


def _warn_uncommon_texts(table: TaskTable) -> None:
    """Warn of text side columns without a common value: they carry no information."""
    encoder = TableEncoder().fit(table)
    for name, levels in encoder.levels_.items():
        pooled = encoder.pooled_[name]
        if not levels and pooled:
            warnings.warn(
                f"Side column {name!r} holds {len(pooled):,} different texts "
                f"({next(iter(pooled))!r}, ...), none of them common. It carries no information: "
                "leave it out, or turn it into numbers.",
                stacklevel=5,
            )


def _upgrade(cls: type, state: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a schema in an older model file as those of today."""
    if "columns" in state:  # older files: the columns of the side table beside the roles
        roles, side_columns = state.pop("columns"), state.pop("side_columns")
        state["roles"] = roles._replace(
            side_key=as_names(state.pop("side_key")),
            side_table=[] if roles.side else side_columns,
        )
    return state


def _names_agree(state: dict[str, Any], sizes: dict[str, int]) -> None:
    roles, encoder = state["roles"], state["encoder"]
    if list(encoder.columns_) != roles.features:
        raise InvalidFieldError("roles", "must name the features of the encoder")
    if not roles.task:
        raise InvalidFieldError("roles", "must name a task column")
    if not set(state["side_text"]) <= set(roles.side_columns):
        raise InvalidFieldError("side_text", "must be side columns")


persistence.register(
    Schema, restore=construct, upgrade=_upgrade, rule=_names_agree,
    fields={
        "roles": instance("Columns"), "missing": one_of("error", "impute"),
        "encoder": instance("TableEncoder", k="n"),
        "classes": maybe(sequence(ANY, "2", distinct=True)),
        "side_text": sequence(TEXT, distinct=True),
    },
)  # fmt: skip
