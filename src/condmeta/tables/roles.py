"""Which column of a table has which role: task, target, feature, side information.

`assign_roles` decides this for `TableModel` and for the command line.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np

from condmeta import persistence
from condmeta.errors import DataError
from condmeta.persistence.fields import TEXT, maybe, optional, sequence
from condmeta.persistence.registry import construct
from condmeta.tables.values import require_values
from condmeta.tasks import TaskTable, frames
from condmeta.tasks.frames import (
    backend_of,
    column_names,
    eager,
    is_frame,
    is_series,
    make_frame,
    require_columns,
)
from condmeta.tasks.messages import show_id
from condmeta.tasks.side_table import as_names, read_side_table, require_same_columns
from condmeta.typing import Frame, SideInfo

MANY_ROWS = 1 << 18  # of a side table
PANDAS_INDEX = re.compile(r"__index_level_\d+__")


class ColumnOptions(NamedTuple):
    """The columns that a user names. Where a name is None, `assign_roles` uses the default.

    Attributes
    ----------
    task : str or list of str
        Task columns; several columns make tuple ids.
    target : str
        The column to predict.
    features : list of str, optional
        By default all columns that have no other role.
    exclude : list of str, optional
        Columns of the table or of the side table that the model must not read.
    side : list of str, optional
        Side columns: of the side table if there is one, else of the table itself. By default
        all columns of the side table.
    side_key : str or list of str, optional
        Key of the side table. By default its index or the columns named like the task columns.
    sort_by : str, optional
        The column that rows are sorted by. It is a feature only if `features` names it.
    time : str, optional
        The column with the time of each row. It is a feature only if `features` names it.
    text : list of str
        Columns to read as text, even if they look like numbers or dates.
    dates : list of str, optional
        What becomes of a column of dates: some of "weekday", "month" and "days" (see `find_dates`).
    holidays : str, optional
        Country whose holidays are a further feature of dates.
    decimal : "." or ",", optional
        Decimal sign of numbers that are written as text, where the values leave it open.
    side_decimal : "." or ",", optional
        The same for the side table; by default `decimal`.
    exposure : str, optional
        The column that counts are proportional to.
    trials : str, optional
        The column with the number of trials of which the target counts the successes.
    weight : str, optional
        The column that says how often a row counts. It is no feature.
    """

    task: Any
    target: str
    features: Any = None
    exclude: Any = None
    side: Any = None
    side_key: Any = None
    sort_by: str | None = None
    time: str | None = None
    text: Sequence[str] = ()
    dates: Sequence[str] | None = None
    holidays: str | None = None
    decimal: str | None = None
    exposure: str | None = None
    trials: str | None = None
    weight: str | None = None
    side_decimal: str | None = None

    @property
    def excluded(self) -> list[str]:
        """Columns that are no features: also those of order and time, unless in `features`.

        Examples
        --------
        >>> ColumnOptions("store", "sold", exclude=["note"], sort_by="day").excluded
        ['note', 'day']
        """
        names, features = as_names(self.exclude), as_names(self.features)
        others = dict.fromkeys(name for name in (self.sort_by, self.time) if name is not None)
        return [*names, *(name for name in others if name not in features)]

    def with_commas(self, have: Collection[str]) -> "ColumnOptions":
        """Put names together that a comma has split, if the tables have such a column.

        Examples
        --------
        >>> options = ColumnOptions(["store"], "sold", features=["price", "height", "cm"])
        >>> options.with_commas(["store", "sold", "price", "height, cm"]).features
        ['price', 'height, cm']
        """
        split = {tuple(part.strip() for part in name.split(",")): name
                 for name in have if "," in name}  # fmt: skip
        if not split:
            return self
        lists = {name: value for name, value in self._asdict().items() if isinstance(value, list)}
        return self._replace(**{name: _joined(value, split) for name, value in lists.items()})

    @property
    def table_text(self) -> list[str]:
        """Columns of the table to read as text: the task ids and `text`."""
        return [*as_names(self.task), *self.text]

    @property
    def side_table_text(self) -> list[str]:
        """Columns of the side table to read as text: its key and `text`."""
        return [*(as_names(self.side_key) or as_names(self.task)), *self.text]


def _joined(names: list[str], split: dict[tuple[str, ...], str]) -> list[str]:
    """Replace each run of names that is a split name by that name."""
    out, at = [], 0
    while at < len(names):
        run = next((run for run in split if tuple(names[at : at + len(run)]) == run), None)
        out.append(names[at] if run is None else split[run])
        at += 1 if run is None else len(run)
    return out


class Roles(NamedTuple):
    """The names of the columns of each role.

    Attributes
    ----------
    task, target, features : of the table
    side : list of str
        Side columns of the table itself.
    side_table : list of str
        Columns to read of the side table, without its key.
    side_key : list of str
        Key of the side table; empty if it is the index or named like the task columns.
    exposure, trials : str or None
        What counts are proportional to, or how many trials a number of successes has.
    time : str or None
        The column of the table with the time of each row.
    weight : str or None
        The column of the table that says how often a row counts.
    """

    task: list[str]
    target: str
    features: list[str]
    side: list[str]
    side_table: list[str]
    side_key: list[str]
    time: str | None = None
    exposure: str | None = None
    trials: str | None = None
    weight: str | None = None

    @property
    def read(self) -> list[str]:
        """The columns of the table that its tasks are made of."""
        more = *as_names(self.weight), *self.sizes
        return [*dict.fromkeys([*self.task, self.target, *self.features, *more])]

    @property
    def sizes(self) -> list[str]:
        """The column of exposures or of trials, if there is one."""
        return [name for name in (self.exposure, self.trials) if name is not None]

    @property
    def task_name(self) -> Any:
        """The name of the task column, or a tuple of several names."""
        return self.task[0] if len(self.task) == 1 else tuple(self.task)

    @property
    def side_columns(self) -> list[str]:
        """The columns of side information, of the table itself or of the side table."""
        return self.side or self.side_table

    def ids(self, frame: Frame) -> Any:
        """Return the task id of each row, in the kind of the table."""
        require_values(frame, self.task, "task")
        if len(self.task) == 1:
            return frames.get_series(frame, self.task[0])
        return frames.select_columns(frame, self.task)


def assign_roles(frame: Frame, side_table: Any, options: ColumnOptions) -> Roles:
    """Return the role of each column of a table and of its side table.

    Parameters
    ----------
    frame : table
    side_table : table, TaskTable or None
    options : ColumnOptions

    Examples
    --------
    >>> import pandas as pd
    >>> sales = pd.DataFrame(columns=["store", "day", "price", "sold"])
    >>> stores = pd.DataFrame(columns=["store", "size", "opened"])
    >>> options = ColumnOptions("store", "sold", exclude=["opened"], sort_by="day")
    >>> roles = assign_roles(sales, stores, options)
    >>> roles.features, roles.side_table
    (['price'], ['size'])
    """
    task, target, key = as_names(options.task), options.target, as_names(options.side_key)
    excluded, wanted = options.excluded, as_names(options.side)
    side = wanted if side_table is None else []
    in_side_table = [] if side_table is None else _side_names(side_table, task, key)
    elsewhere = [] if side_table is None else [*in_side_table, *(key or task)]
    require_columns(frame, task, "task")
    require_columns(frame, [target], "target")
    require_columns(frame, side, "side")
    require_columns(frame, as_names(options.sort_by), "sort by")
    require_columns(frame, as_names(options.time), "time")
    require_columns(frame, [name for name in excluded if name not in elsewhere], "exclude")
    require_columns(frame, [name for name in options.text if name not in elsewhere], "text")
    sizes = {"exposure": options.exposure, "trials": options.trials}
    if None not in sizes.values():
        raise DataError("Give exposure (of counts) or trials (of shares), not both.")
    sizes |= {"weight": options.weight}
    given = [name for name in sizes.values() if name is not None]
    for role, name in sizes.items():
        require_columns(frame, as_names(name), role)
    if options.features is None:
        others = {*task, target, *side, *excluded, *given}
        features = [name for name in _without_index(column_names(frame)) if name not in others]
        if not features:
            raise DataError(
                "No column is left to be a feature: the table has only task, target, side and "
                "excluded columns."
            )
    else:
        features = as_names(options.features)
        require_columns(frame, features, "features")
    names = [*task, target, *side, *features, *given]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        shown = " has two roles, column ".join(map(repr, twice))
        raise DataError(
            f"Column {shown} has two roles: a column can be only one of task, target, feature and "
            "side column."
        )
    if options.time in (*task, target, *side):
        raise DataError(
            f"Column {options.time!r} has two roles: a column of time can be a feature, but not "
            "the task, the target or a side column."
        )
    if side_table is None:
        return Roles(task, target, features, side, [], key, options.time, **sizes)
    _require_side_key(side_table, key)
    wanted = wanted or [name for name in _without_index(in_side_table) if name not in excluded]
    _require_side_columns(in_side_table, wanted)
    return Roles(task, target, features, [], wanted, key, options.time, **sizes)


def open_side_table(
    side_info: SideInfo, key: Sequence[str] = (), read: Collection[str] = ()
) -> Any:
    """Return side information as a table in memory, or a dict as a TaskTable.

    A dict of rows with dates or text becomes a table with the `key` columns, so that these are read
    as in a table. So does one with columns that were `read` as dates or numbers in fit: all of
    their values may be missing now.
    """
    if is_series(side_info) or isinstance(side_info, np.ndarray):
        raise DataError(
            f"A TableModel reads the target in its table and takes no y; the second argument is "
            f"the side table. Got a {type(side_info).__name__} instead."
        )
    if key and isinstance(side_info, Mapping) and _is_raw(side_info.values(), read):
        return _table_of_rows(side_info, key)
    return eager(side_info) if is_frame(side_info) else read_side_table(side_info)


def _is_raw(rows: Iterable[Any], read: Collection[str]) -> bool:
    """Return whether rows of a dict hold dates or text, or columns that are `read`."""
    raw = str, date, np.datetime64
    return any(
        name in read or isinstance(value, raw)
        for row in rows
        if isinstance(row, Mapping)
        for name, value in row.items()
    )


def _table_of_rows(rows: Mapping[Any, Any], key: Sequence[str]) -> Any:
    """Return a dict of id -> row as a table; several key columns have tuples of ids."""
    ids = [task if len(key) > 1 else (task,) for task in rows]
    for task in ids:
        if not isinstance(task, tuple) or len(task) != len(key):
            raise DataError(
                f"side_info has the id {show_id(task)}, and an id is a tuple of the columns "
                f"{', '.join(map(repr, key))}."
            )
    names = [name for name in require_same_columns(rows) if name not in key]
    columns = {name: [row[name] for row in rows.values()] for name in names}
    columns |= dict(zip(key, zip(*ids, strict=True), strict=True))
    return make_frame({n: np.fromiter(v, object, len(v)) for n, v in columns.items()})


def read_side(side_info: SideInfo, roles: Roles) -> TaskTable:
    """Return the columns of a side table that the model reads; other columns do not matter."""
    side_info = open_side_table(side_info, roles.side_key or roles.task)
    names = _side_names(side_info, roles.task, roles.side_key)
    _require_side_columns(names, roles.side_table)
    if is_frame(side_info):
        _require_side_key(side_info, roles.side_key)
        unread = {name for name in names if name not in roles.side_table}
        drop = [name for name in column_names(side_info) if str(name) in unread]
        side_info = frames.drop_columns(side_info, drop)
    how = {"task_name": roles.task_name, "side_key": roles.side_key}
    if backend_of(side_info) == "pyarrow" and len(side_info) > MANY_ROWS:
        begins = range(0, len(side_info), MANY_ROWS)  # ids of all rows at once take much memory
        parts = (read_side_table(side_info.slice(b, MANY_ROWS), **how) for b in begins)
        table = TaskTable.stacked(parts, len(side_info))
        if len(set(table.ids.tolist())) < table.n_tasks:
            table = read_side_table(side_info, **how)  # it names the ids that are there twice
    else:
        table = read_side_table(side_info, **how)
    data = {name: table.data[name] for name in roles.side_table}
    return TaskTable.trusted(table.ids, data, table.backend)


def _without_index(names: Iterable[str]) -> list[str]:
    """Return names without those that Parquet files give to an index of pandas without a name."""
    return [name for name in names if not PANDAS_INDEX.fullmatch(str(name))]


def _require_side_key(side_table: Any, key: list[str]) -> None:
    if is_frame(side_table):
        require_columns(side_table, key, "side key", "the side table")


def _require_side_columns(names: list[str], wanted: list[str]) -> None:
    lacking = [name for name in wanted if name not in names]
    if lacking:
        raise DataError(
            f"The side table lacks {', '.join(map(repr, lacking))}; it has "
            f"{', '.join(map(repr, names))}."
        )


def _side_names(side_table: Any, task: list[str], side_key: list[str]) -> list[str]:
    """Return the columns of a side table without its key, which `read_side_table` finds."""
    if isinstance(side_table, TaskTable):
        return list(side_table.columns)
    indexed = not side_key and frames.index_names(side_table)
    key = [] if indexed else side_key or task
    return [str(name) for name in column_names(side_table) if name not in key]


NAMES = sequence(TEXT, distinct=True)
# Model files call this class "Columns"; older files hold its first four fields only.
persistence.register(
    Roles, name="Columns", export=Roles._asdict, restore=construct,
    upgrade=lambda cls, parts: {"side_table": [], "side_key": []} | parts,
    fields={
        "task": NAMES, "target": TEXT, "features": NAMES, "side": NAMES, "side_table": NAMES,
        "side_key": NAMES, "time": optional(maybe(TEXT)), "exposure": optional(maybe(TEXT)),
        "trials": optional(maybe(TEXT)), "weight": optional(maybe(TEXT)),
    },
)  # fmt: skip
