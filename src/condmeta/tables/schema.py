"""How a table is read: `fit` learns it once, and later tables are read in the same way."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from condmeta import persistence
from condmeta.errors import DataError
from condmeta.feature_maps.column_profile import ColumnProfile
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
from condmeta.tables.feature_ranges import Ranges, ranges_of, warn_far_rows, widen
from condmeta.tables.raw_columns import Readers, apply_readers, expand_names, find_readers
from condmeta.tables.roles import ColumnOptions, Roles, assign_roles, open_side_table, read_side
from condmeta.tables.values import (
    Target,
    find_target,
    has_text,
    is_unique,
    read_labels,
    require_values,
)
from condmeta.tables.written_numbers import NumberReader
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.each_column import each_column
from condmeta.tasks.frames import (
    backend_of,
    column_names,
    eager,
    get_column,
    get_series,
    is_frame,
    require_columns,
    select_columns,
)
from condmeta.tasks.ids import as_id_array, factorize
from condmeta.tasks.numbers import DATE, to_floats
from condmeta.tasks.side_column import type_column
from condmeta.tasks.side_table import as_names, side_from_rows
from condmeta.tasks.weights import Weighted
from condmeta.typing import Frame, SideInfo, Values
from condmeta.warn import warn


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
        rows = _read_features(frame, self.roles.features, self.readers)
        if self.missing == "error":
            gaps = dict(zip(rows.columns, rows.gaps().sum(axis=0).tolist(), strict=True))
            _refuse_gaps(gaps, rows.n_tasks, "fit the model with missing='impute'")
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
        return _side_of_rows(frame, self.roles, self.side_readers)

    def side_of_table(self, side_info: SideInfo) -> TaskTable:
        """Return the columns of a side table that the model reads."""
        if not self.roles.side_columns:
            raise DataError("The model was fitted without side information: give none now.")
        # A model that was fitted with side columns of the table reads them from a side table too.
        return _read_side(side_info, self.roles, self.roles.side_columns, self.side_readers)

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
            repeat = _numbers(frame, roles.weight, "weight")
        names = roles.sizes if labelled or roles.exposure is not None else []
        if not names:
            return repeat
        role = "exposure" if roles.exposure is not None else "trials"
        given = Weighted(repeat, _numbers(frame, names[0], role), role)
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


def learn_schema(
    frame: Frame, side_info: SideInfo, options: ColumnOptions, missing: str, kind: str | None,
    order: Any = None,
) -> tuple[Schema, np.ndarray, TaskTable | None]:  # fmt: skip
    """Learn how to read tables like this one: roles, kinds of columns, levels, classes.

    Parameters
    ----------
    frame : table
    side_info : table, dict or TaskTable, optional
        The side table.
    options : ColumnOptions
        The columns that the user named.
    missing : "error" or "impute"
    kind : "number", "count", "class", "ordered" or None
        What the learner predicts; None leaves that to the target.
    order : sequence, optional
        Ordered classes, from the lowest to the highest.

    Returns
    -------
    the schema, the encoded features (N, d), the side information of all tasks or None
    """
    if missing not in ("error", "impute"):
        raise DataError(
            "The 'missing' parameter of TableModel must be 'error' or 'impute'. "
            f"Got {missing!r} instead."
        )
    key = as_names(options.side_key) or as_names(options.task)
    side_table = None if side_info is None else open_side_table(side_info, key)
    roles = assign_roles(frame, side_table, options)
    readers = find_readers(frame, [*roles.features, roles.target], options, options.holidays)
    rows = _read_features(frame, roles.features, readers)
    encoder = TableEncoder(of_rows=True)
    profiles = {name: encoder.profile(column, name) for name, column in rows.data.items()}
    fit_encoder(encoder, profiles, missing)
    labels = apply_readers(frame, readers, [roles.target])
    found = target_of(labels, roles, kind, order)
    X = np.ascontiguousarray(encoder.transform(rows))
    side, roles, side_text, side_readers = learn_side(frame, side_table, roles, options)
    parts = found.classes, side_text, readers, side_readers, found.kind
    return Schema(roles, missing, encoder, *parts, ranges_of(profiles)), X, side


def fit_encoder(encoder: TableEncoder, profiles: dict[str, ColumnProfile], missing: str) -> None:
    """Fit the encoder of the features; refuse gaps, names and dates among them."""
    if missing == "error":
        n_rows = max((profile.size for profile in profiles.values()), default=0)
        gaps = {name: profile.gaps for name, profile in profiles.items()}
        _refuse_gaps(gaps, n_rows, "set missing='impute'")
    encoder.fit_profiles(profiles)
    _refuse_names_and_dates(profiles, encoder)


def learn_side(
    frame: Frame, side_table: Any, roles: Roles, options: ColumnOptions
) -> tuple[TaskTable | None, Roles, list[str], Readers]:
    """Return the side information of all tasks, the roles, its text columns and its readers."""
    side, side_readers = None, {}
    if side_table is not None:
        if is_frame(side_table):
            written = options._replace(decimal=options.side_decimal or options.decimal)
            side_readers = find_readers(side_table, roles.side_table, written, of_tasks=True)
        side = _read_side(side_table, roles, roles.side_table, side_readers)
    elif roles.side:
        side_readers = find_readers(frame, roles.side, options, of_tasks=True)
        side = _side_of_rows(frame, roles, side_readers)
    side_text = []
    if side is not None:
        side, roles = _without_names(side, roles)
        side_text = [name for name, column in side.data.items() if has_text(column)]
    return side, roles, side_text, side_readers


def target_of(frame: Frame, roles: Any, kind: str | None, order: Any = None) -> Target:
    """Return what the target holds; `roles` (or options) name it, and exposure or trials."""
    if roles.exposure is not None and kind not in (None, "count"):
        raise DataError("An exposure is for counts: use ConditionalCount (--learner count).")
    if roles.trials is not None and kind not in (None, "class"):
        raise DataError("Trials are for shares: use ConditionalLogistic (--learner logistic).")
    if roles.trials is not None:
        find_target(frame, roles.target, "number")
        return Target("class")
    return find_target(frame, roles.target, "count" if roles.exposure is not None else kind, order)


def kind_of_target(
    frame: Frame, options: ColumnOptions, kind: str | None, order: Any = None
) -> str:
    """Return what the target of a table holds, as `learn_schema` finds it."""
    require_columns(frame, [options.target], "target")
    readers = find_readers(frame, [options.target], options)
    return target_of(apply_readers(frame, readers), options, kind, order).kind


def _read_features(frame: Any, names: list[str], readers: Readers) -> TaskTable:
    """Return the raw features of a table, typed, one entry a row."""
    require_columns(frame, names, "features")
    frame = apply_readers(select_columns(frame, names), readers)
    read = expand_names(names, readers)
    data = each_column(read, lambda name: type_column(get_series(frame, name), name, "Column"))
    n_rows = len(next(iter(data.values()))) if data else 0
    return TaskTable.trusted(np.arange(n_rows), data)


def _numbers(frame: Any, name: str, role: str) -> np.ndarray:
    """Return a column of numbers without gaps."""
    require_columns(frame, [name], role)
    require_values(frame, [name], role)
    return to_floats(get_column(frame, name), f"Column {name!r}", role=role)


def _refuse_gaps(gaps: dict[str, int], n_rows: int, remedy: str) -> None:
    """Refuse missing features; the error counts them by column."""
    found = [f"{name!r} {count:,}" for name, count in gaps.items() if count]
    if found:
        shown = ", ".join(found[:8]) + (", ..." if len(found) > 8 else "")
        raise DataError(
            f"Features have missing values among {n_rows:,} rows: {shown}. Fill them, drop "
            f"the rows, or {remedy} to use the mean and mark the gaps."
        )


def _read_side(side_info: Any, roles: Roles, columns: list[str], readers: Readers) -> TaskTable:
    """Return the named columns of a side table."""
    if isinstance(side_info, Mapping):
        key = roles.side_key or roles.task
        if not any(isinstance(row, Mapping) for row in side_info.values()) and not set(
            columns
        ).isdisjoint(side_info):
            raise DataError(
                "side_info is one row, and does not say which task it is about: pass a dict of id "
                f"-> row, or a table with the column {key[0]!r}."
            )
        side_info = open_side_table(side_info, key)
    if is_frame(side_info):
        have = set(column_names(side_info))
        lacking = [name for name in columns if name not in have]
        side_info = side_info if lacking else apply_readers(eager(side_info), readers, columns)
        columns = columns if lacking else expand_names(columns, readers)
    return read_side(side_info, roles._replace(side_table=columns))


def _side_of_rows(frame: Any, roles: Roles, readers: Readers) -> TaskTable:
    opened = apply_readers(select_columns(frame, roles.side), readers)
    columns = {name: get_column(opened, name) for name in expand_names(roles.side, readers)}
    return side_from_rows(columns, *factorize(roles.ids(frame)))


def _refuse_names_and_dates(profiles: dict[str, ColumnProfile], encoder: TableEncoder) -> None:
    """Refuse text features that are dates, or where nearly every value is different."""

    def refuse(name: str) -> None:
        levels, pooled = encoder.levels_[name], encoder.pooled_[name]
        texts = levels or pooled
        if len(texts) > 1 and all(re.match(DATE, text) for text in texts):
            raise DataError(
                f"Column {name!r} holds dates ({texts[0]}, ...)",
                ": write them as 2024-01-31, or exclude the column.",
            )
        different = len(levels) + len(pooled)
        if (not levels and pooled) or profiles[name].is_unique:
            raise DataError(
                f"Column {name!r} holds {different:,} different texts in "
                f"{profiles[name].size:,} rows ({texts[0]!r}, ...)",
                ": as categories they cannot help to predict other rows. Leave it out, or turn "
                "it into numbers.",
            )

    each_column(encoder.levels_, refuse)


def _without_names(side: TaskTable, roles: Roles) -> tuple[TaskTable, Roles]:
    """Leave out text columns in which nearly every task has a value of its own, with a note."""
    names = [name for name, column in side.data.items() if has_text(column) and is_unique(column)]
    if not names:
        return side, roles
    shown = ", side column ".join(
        f"{name!r} holds {len(set(side.data[name].tolist())):,} different texts in "
        f"{side.n_tasks:,} rows ({side.data[name][0]!r}, ...)"
        for name in names
    )
    what = f"Side column {shown}, too many to help to predict other tasks"
    if len(names) == len(side.data):
        raise DataError(f"{what}: give other side columns, or none.")
    warn(f"{what}: {'it is' if len(names) == 1 else 'they are'} left out.")
    data = {name: column for name, column in side.data.items() if name not in names}
    kept = {"side": roles.side, "side_table": roles.side_table}
    kept = {role: [name for name in column if name not in names] for role, column in kept.items()}
    return TaskTable.trusted(side.ids, data, side.backend), roles._replace(**kept)


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
