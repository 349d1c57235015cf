"""The models and tables that a command reads.

Commands import this module when they run, so that `--help` is fast. It loads NumPy; scikit-learn is
loaded with the first model, so that a mistyped name is reported at once.
"""

import os
from collections.abc import Callable
from typing import Any

import condmeta
from condmeta.errors import ModelFileError
from condmeta.tables import files
from condmeta.tables.files import CsvOptions, read_table
from condmeta.tables.roles import ColumnOptions, assign_roles


def csv_options(params: dict) -> CsvOptions:
    """Take the CSV options out of the parameters of a command and return them."""
    delimiter = params.pop("delimiter")
    delimiter = "\t" if delimiter in ("\\t", "tab") else delimiter
    return CsvOptions(delimiter, params.pop("decimal"), params.pop("encoding"))


def column_options(params: dict) -> ColumnOptions:
    """Return the columns that the options of a command name."""
    return ColumnOptions(**{name: params[name] for name in ColumnOptions._fields})


def read_training(path: str, side_path: str | None, csv: CsvOptions, options: ColumnOptions):
    """Return the table of all tasks, with its rows sorted, and the side table or None."""
    table = read_table(path, text=options.table_text, csv=csv)
    side = read_side(options, side_path, csv)
    check_training(table, side, options)
    if options.sort_by is not None:
        files.check_sort_column(table.column(options.sort_by), options.sort_by)
        table = table.sort_by(options.sort_by)  # stable: rows of one time keep their order
    return table, side


def read_side(columns: Any, path: str | None, csv: CsvOptions) -> Any:
    """Return the side table, or None; `columns` are those of the options or of a model's schema."""
    return None if path is None else read_table(path, text=columns.side_table_text, csv=csv)


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
            f"'{path}' holds a {type(model).__name__} of arrays, which knows no columns: use it in "
            "Python (condmeta.load), or make a model of a table with condmeta fit."
        )
    return model


def show_size(path: str) -> str:
    """Return the size of a file as text."""
    size = os.path.getsize(path)
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
