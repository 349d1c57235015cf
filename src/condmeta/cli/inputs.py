"""The models and tables that a command reads.

Commands import this module when they run, so that `--help` is fast. It loads NumPy; scikit-learn is
loaded with the first model, so that a mistyped name is reported at once.
"""

import os
from collections.abc import Callable
from typing import Any

import condmeta
from condmeta.errors import ModelFileError, ReadingNote
from condmeta.tables import files
from condmeta.tables.files import CsvOptions, arrow, read_table
from condmeta.tables.roles import ColumnOptions, assign_roles
from condmeta.tables.task_columns import with_task_columns
from condmeta.tasks.side_table import as_names
from condmeta.warn import warn


def csv_options(params: dict, side: bool = False) -> CsvOptions:
    """Return the CSV options of a command for its table, or for its side table."""
    which = "side_" if side else ""
    delimiter = params[f"{which}delimiter"]
    delimiter = "\t" if delimiter in ("\\t", "tab") else delimiter
    found = CsvOptions(delimiter, params[f"{which}decimal"], params[f"{which}encoding"])
    return found._replace(like=csv_options(params), prefix="--side-") if side else found


def column_options(params: dict) -> ColumnOptions:
    """Return the columns that the options of a command name."""
    return ColumnOptions(**{name: params.get(name) for name in ColumnOptions._fields})


def read_training(path: str, options: ColumnOptions, params: dict):
    """Return the table of all tasks, with its rows sorted, the side table or None, and the options.

    In the returned options, the names of columns that hold a comma are put together.
    """
    table = read_table(path, text=options.table_text, csv=csv_options(params))
    side = read_side(options, params)
    options = options.with_commas([*table.column_names, *(side.column_names if side else [])])
    table = files.as_text(table, options.table_text)
    side = None if side is None else files.as_text(side, options.side_table_text)
    table = with_task_columns(table, side, as_names(options.task))
    check_training(table, side, options)
    for name, role in ((options.time, "time"), (options.sort_by, "sort by")):
        if name is not None:
            table = files.sort_rows(table, name, role)
    if options.time in options.excluded and not _is_number(table.column(options.time).type):
        warn(
            f"Column {options.time!r} holds the times of rows and is not a feature. To use its "
            "weekdays too, list it in --features with the other columns.",
            ReadingNote,
        )  # fmt: skip
    return table, side, options


def _is_number(kind: Any) -> bool:
    return arrow.types.is_integer(kind) or arrow.types.is_floating(kind)


def read_rows(
    path: str, schema: Any, params: dict, keep_types: bool = False, chunks: bool = False
) -> Any:  # fmt: skip
    """Return the table that a model is used with; `chunks=True` gives its parts."""
    read = files.read_batches if chunks else read_table
    csv = csv_options(params)
    return read(path, text=schema.text, written=schema.written, csv=csv, keep_types=keep_types)


def read_side(columns: Any, params: dict) -> Any:
    """Return the side table, or None; `columns` are those of the options or of a model's schema."""
    path = params["side_table"]
    if path is None:
        return None
    csv = csv_options(params, side=True)
    written = getattr(columns, "written", ())  # options name none: fit finds them
    return read_table(path, text=columns.side_table_text, written=written, csv=csv)


def check_training(table: Any, side: Any, options: ColumnOptions) -> None:
    """Refuse columns that have a role and are not what they seem, such as dates as text."""
    roles = assign_roles(table, side, options)
    read = {*roles.features, *roles.side, roles.target}
    names = [name for name in table.column_names if name in read]
    files.check_columns(table, names, options.text, options.target)
    if side is not None:
        files.check_columns(side, roles.side_table, options.text)


def open_model(path: str, read: Callable[[str], Any] | None = None) -> Any:
    """Return the model in a file, or what another function reads from it."""
    try:
        return (read or condmeta.load)(path)
    except FileNotFoundError:
        raise files.no_file(path) from None


def load_model(path: str) -> "condmeta.TableModel":
    """Return the table model in a file."""
    model = open_model(path)
    if not isinstance(model, condmeta.TableModel):
        raise ModelFileError(
            f"'{path}' holds a {type(model).__name__} that was fitted to arrays, so it has no "
            "column names: use it in Python (condmeta.load), or fit a model to a table with "
            "condmeta fit."
        )
    return model


def show_size(path: str) -> str:
    """Return the size of a file as text."""
    size = os.path.getsize(path)
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
