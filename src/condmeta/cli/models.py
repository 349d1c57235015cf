"""Models and tables of a command: loaded, read, and saved."""

from __future__ import annotations

import os
from typing import Any

from condmeta.errors import DataError, ModelFileError


def load_any(path: str) -> Any:
    """Return the model in a file."""
    import condmeta
    from condmeta.files import no_file

    try:
        return condmeta.load(path)
    except FileNotFoundError:
        raise no_file(path) from None


def load_model(path: str) -> Any:
    """Return the table model in a file."""
    import condmeta

    model = load_any(path)
    if not isinstance(model, condmeta.TableModel):
        raise ModelFileError(
            f"'{path}' holds a {type(model).__name__} of arrays, which knows no columns: use it in "
            "Python (condmeta.load), or make a model of a table with condmeta fit."
        )
    return model


def read_for(model: Any, path: str, csv: Any, **how: Any) -> Any:
    """Return a table as a model reads it: its names as text, whatever they look like."""
    from condmeta.files import read_table

    return read_table(path, text=model.schema_.text, csv=csv, **how)


def read_side(model: Any, path: str | None, csv: Any) -> Any:
    """Return the side table of a model, or None."""
    from condmeta.files import read_table

    if path is None:
        return None
    table = read_table(path, text=side_text(model), csv=csv)
    read = {*side_keys(model), *model.schema_.side_columns}
    return table.select([name for name in table.column_names if name in read])


def side_text(model: Any) -> list[str]:
    """Return the columns of a side table that are names: its key, categories."""
    return [*side_keys(model), *model.schema_.side_text]


def side_keys(model: Any) -> list[str]:
    """Return the key columns of the side table of a model."""
    schema = model.schema_
    key = schema.side_key
    return schema.columns.task if key is None else [key] if isinstance(key, str) else list(key)


def check_model_output(path: str) -> None:
    """Refuse a place that a model cannot be written to, before it is made."""
    from condmeta.files import check_place

    if path == "-":
        raise DataError("A model is written to a file: give its name with -o.")
    check_place(path)


def show_size(path: str) -> str:
    """Write the size of a file."""
    size = os.path.getsize(path)
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
