"""How tables are read: `fit` has learned it (`schema_learning.py`), all later tables follow it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from condmeta import persistence
from condmeta.errors import DataError
from condmeta.feature_maps.table_encoder import TableEncoder
from condmeta.feature_maps.training_ranges import RANGE
from condmeta.fitted.label_codes import encode
from condmeta.learners.labels import RowTasks
from condmeta.persistence.fields import (
    ANY,
    TEXT,
    InvalidFieldError,
    instance,
    mapping,
    maybe,
    one_of,
    optional,
    sequence,
)
from condmeta.persistence.registry import construct
from condmeta.tables.dates import read_time_column
from condmeta.tables.feature_ranges import Ranges, warn_far_rows, widen
from condmeta.tables.raw_columns import Readers, apply_readers, expand_names
from condmeta.tables.role_columns import (
    read_features,
    read_numbers,
    read_side_columns,
    refuse_gaps,
    side_of_rows,
)
from condmeta.tables.roles import Roles
from condmeta.tables.values import read_labels
from condmeta.tables.written_numbers import NumberReader
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.frames import backend_of, column_names, require_columns
from condmeta.tasks.ids import as_id_array, factorize
from condmeta.tasks.side_table import as_names
from condmeta.tasks.weights import Weighted
from condmeta.typing import Frame, SideInfo, Values


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
    readers, side_readers : dict of name -> reader
        How dates and numbers written as text are read, in the table and in the side table.
    kind : "number", "count", "class" or "ordered"
        What the target holds; successes in a number of trials are of the kind "class".
    ranges : dict of name -> (low, high)
        Training ranges of the features that are numbers; of older model files they are not known.
    """

    roles: Roles
    missing: str
    encoder: TableEncoder
    classes: list | None
    side_text: list[str]
    readers: Readers = field(default_factory=dict)
    side_readers: Readers = field(default_factory=dict)
    kind: str = "number"
    ranges: Ranges = field(default_factory=dict)

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

    @property
    def written(self) -> list[str]:
        """Columns of both tables with numbers that are written as text."""
        readers = {**self.readers, **self.side_readers}
        return [name for name, reader in readers.items() if isinstance(reader, NumberReader)]

    def matrix(self, frame: Frame) -> np.ndarray:
        """Return the encoded features of a table (N, d); unseen levels are reported."""
        rows = read_features(frame, self.roles.features, self.readers)
        if self.missing == "error":
            gaps = dict(zip(rows.columns, rows.gaps().sum(axis=0).tolist(), strict=True))
            refuse_gaps(gaps, rows.n_tasks, "fit the model with missing='impute'")
        return np.ascontiguousarray(self.encoder.transform(rows))

    def side(self, frame: Frame, side_info: SideInfo) -> TaskTable | None:
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
            raise DataError(
                f"Side column {lacking!r} is not in the table, but {given[0]!r} is: give all "
                "side columns, or none."
            )
        return side_of_rows(frame, self.roles, self.side_readers)

    def side_of_table(self, side_info: SideInfo) -> TaskTable:
        """Return the columns of a side table that the model reads."""
        if not self.roles.side_columns:
            raise DataError("The model was fitted without side information: give none now.")
        # A model that was fitted with side columns of the table reads them from a side table too.
        return read_side_columns(side_info, self.roles, self.roles.side_columns, self.side_readers)

    def side_of_row(self, row: Mapping[str, Any]) -> TaskTable:
        """Return the side row of a new task without an id, from a dict of column -> value."""
        keys = len(self.roles.side_key or self.roles.task)
        table = self.side_of_table({(0,) * keys if keys > 1 else 0: row})
        return TaskTable.trusted(as_id_array([None]), table.data)

    def tasks(
        self, frame: Frame, side: TaskTable | None, labelled: bool, X: np.ndarray | None = None
    ) -> TaskSet:
        """Return the rows of a table as tasks; `X` are its encoded features, where known."""
        X = self.matrix(frame) if X is None else X
        y = None
        if labelled:
            target = self.roles.target
            require_columns(frame, [target], "target")
            y = read_labels(apply_readers(frame, self.readers, [target]), target, self.classes)
        ids = self.roles.ids(frame)
        tasks = TaskSet.from_arrays(
            X, y, ids, side_info=side, feature_names=self.feature_names, missing_side="mean",
            weight=self._weights(frame, y, ids, labelled), time=self._times(frame, labelled),
        )  # fmt: skip
        tasks.task_name, tasks.backend = self.roles.task_name, backend_of(frame)
        return tasks

    def _weights(self, frame: Any, y: Values, ids: Any, labelled: bool) -> Any:
        """Return how often labelled rows count, and exposures of counts or trials of shares."""
        roles = self.roles
        repeat = None
        if labelled and roles.weight is not None:
            repeat = read_numbers(frame, roles.weight, "weight")
        names = roles.sizes if labelled or roles.exposure is not None else []
        if not names:
            return repeat
        role = "exposure" if roles.exposure is not None else "trials"
        given = Weighted(repeat, read_numbers(frame, names[0], role), role)
        labels = np.zeros(len(given.size)) if y is None else y
        encode(labels, "count" if role == "exposure" else "class", None, given, RowTasks(ids))
        return given

    def _times(self, frame: Any, required: bool) -> np.ndarray | None:
        """Return the times of rows (N,); rows to predict may lack them."""
        name = self.roles.time
        if name is None or (name not in column_names(frame) and not required):
            return None
        require_columns(frame, [name], "time")
        return read_time_column(frame, name)

    def widened(self, X: np.ndarray) -> "Schema":
        """Return the schema with training ranges that also hold the encoded rows X (N, d)."""
        return replace(self, ranges=widen(self.ranges, self.encoder, X))

    def warn_far_rows(self, tasks: TaskSet) -> None:
        """Warn of rows with a number far outside its training range."""
        warn_far_rows(self.ranges, self.encoder, self.readers, tasks)

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
            "task": roles.task, "target": roles.target, "time": roles.time, "classes": self.classes,
            "kind": self.kind, "weight": roles.weight,
            "features": features, "side_columns": roles.side_columns,
            "side_from": "columns" if roles.side else "table" if roles.side_table else None,
            "missing": self.missing,
            "read_as": {n: r.describe() for n, r in {**self.readers, **self.side_readers}.items()},
        }  # fmt: skip


def _upgrade(cls: type, state: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a schema in an older model file as those of today."""
    if "columns" in state:  # older files: the columns of the side table beside the roles
        roles, side_columns = state.pop("columns"), state.pop("side_columns")
        state["roles"] = roles._replace(
            side_key=as_names(state.pop("side_key")),
            side_table=[] if roles.side else side_columns,
        )
    if "kind" not in state:
        state["kind"] = "number" if state["classes"] is None else "class"
    return state


def _names_agree(state: dict[str, Any], sizes: dict[str, int]) -> None:
    roles, encoder = state["roles"], state["encoder"]
    if list(encoder.columns_) != expand_names(roles.features, state.get("readers", {})):
        raise InvalidFieldError("roles", "must name the features of the encoder")
    if not roles.task:
        raise InvalidFieldError("roles", "must name a task column")
    side = expand_names(roles.side_columns, state.get("side_readers", {}))
    if not set(state["side_text"]) <= set(side):
        raise InvalidFieldError("side_text", "must be side columns")


READERS = mapping(instance("DateReader", "NumberReader"))
persistence.register(
    Schema, restore=construct, upgrade=_upgrade, rule=_names_agree,
    fields={
        "roles": instance("Columns"), "missing": one_of("error", "impute"),
        "encoder": instance("TableEncoder", k="n"),
        "classes": maybe(sequence(ANY, "c", distinct=True)),
        "side_text": sequence(TEXT, distinct=True), "readers": optional(READERS),
        "side_readers": optional(READERS),
        "kind": optional(one_of("number", "count", "class", "ordered")),
        "ranges": optional(mapping(RANGE)),
    },
)  # fmt: skip
