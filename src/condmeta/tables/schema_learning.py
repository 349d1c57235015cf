"""Learn how to read a table: the role of each column, its kind, levels of categories, classes."""

import re
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.feature_maps.column_profile import ColumnProfile
from condmeta.feature_maps.table_encoder import TableEncoder
from condmeta.tables.feature_ranges import ranges_of
from condmeta.tables.raw_columns import Readers, apply_readers, find_readers
from condmeta.tables.role_columns import (
    read_features,
    read_side_columns,
    refuse_gaps,
    side_of_rows,
)
from condmeta.tables.roles import ColumnOptions, Roles, assign_roles, open_side_table
from condmeta.tables.schema import Schema
from condmeta.tables.values import Target, find_target, has_text, is_unique
from condmeta.tasks import TaskTable
from condmeta.tasks.each_column import each_column
from condmeta.tasks.frames import is_frame, require_columns
from condmeta.tasks.numbers import DATE
from condmeta.tasks.side_table import as_names
from condmeta.typing import Frame, SideInfo
from condmeta.warn import warn


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
    rows = read_features(frame, roles.features, readers)
    encoder = TableEncoder(of_rows=True)
    profiles = {name: encoder.profile(column, name) for name, column in rows.data.items()}
    fit_encoder(encoder, profiles, missing)
    labels = apply_readers(frame, readers, [roles.target])
    found = target_of(labels, roles, kind, order)
    X = np.ascontiguousarray(encoder.transform(rows))
    side, roles, side_text, side_readers = learn_side(frame, side_table, roles, options)
    schema = Schema(
        roles, missing, encoder, classes=found.classes, kind=found.kind, readers=readers,
        side_text=side_text, side_readers=side_readers, ranges=ranges_of(profiles),
    )  # fmt: skip
    return schema, X, side


def fit_encoder(encoder: TableEncoder, profiles: dict[str, ColumnProfile], missing: str) -> None:
    """Fit the encoder of the features; refuse gaps, names and dates among them."""
    if missing == "error":
        n_rows = max((profile.size for profile in profiles.values()), default=0)
        gaps = {name: profile.gaps for name, profile in profiles.items()}
        refuse_gaps(gaps, n_rows, "set missing='impute'")
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
        side = read_side_columns(side_table, roles, roles.side_table, side_readers)
    elif roles.side:
        side_readers = find_readers(frame, roles.side, options, of_tasks=True)
        side = side_of_rows(frame, roles, side_readers)
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
