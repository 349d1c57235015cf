"""Read tables and columns of any DataFrame library, and write the same kind back.

Tables go through narwhals, which is imported inside the functions: arrays never load it.
"""

import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.each_column import each_column
from condmeta.tasks.messages import show_ids
from condmeta.tasks.numbers import level_name, to_floats

_MARKS = ("pandas", "columns", "factorize"), ("pyarrow", "column_names", "to_pylist")
_BLOCK_BYTES = 1 << 19  # a block of rows that stays in cache while its columns are copied


def _roots(obj: Any) -> set[str]:
    """Return the top-level packages of the classes of an object, without importing any."""
    return {cls.__module__.partition(".")[0] for cls in type(obj).__mro__} - {"builtins", "abc"}


def _kind(obj: Any) -> str | None:
    """Return "frame", "series" or None."""
    if obj is None or isinstance(obj, np.ndarray | list | tuple | dict | str | np.generic):
        return None
    roots = _roots(obj)
    for library, table_has, column_has in _MARKS:
        if library in roots:
            column = "series" if hasattr(obj, column_has) else None
            return "frame" if hasattr(obj, table_has) else column
    if "polars" in roots:  # asking a lazy table for its columns would resolve it
        kind = {"DataFrame": "frame", "LazyFrame": "frame", "Series": "series"}
        return next((kind[c.__name__] for c in type(obj).__mro__ if c.__name__ in kind), None)
    if "narwhals" not in sys.modules and not any(hasattr(obj, a) for a in ("columns", "to_list")):
        return None
    import narwhals.stable.v2 as nw

    wrapped = nw.from_native(obj, pass_through=True, allow_series=True)
    if isinstance(wrapped, nw.DataFrame | nw.LazyFrame):
        return "frame"
    return "series" if isinstance(wrapped, nw.Series) else None


def is_frame(obj: Any) -> bool:
    """Return whether an object is a table of a DataFrame library."""
    return _kind(obj) == "frame"


def is_dask(frame: Any) -> bool:
    """Return whether a table is a Dask DataFrame; Dask is not imported for it."""
    return type(frame).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(
        frame, "map_partitions"
    )


def is_series(obj: Any) -> bool:
    """Return whether an object is a column of a DataFrame library."""
    return _kind(obj) == "series"


def backend_of(obj: Any) -> str | None:
    """Return the library of a table or column: "pandas", "polars", "pyarrow", or None."""
    if _kind(obj) is None:
        return None
    roots = _roots(obj)
    for name in ("pandas", "polars", "pyarrow"):
        if name in roots:
            return name
    import narwhals.stable.v2 as nw

    implementation = nw.from_native(obj, allow_series=True).implementation
    if implementation.is_pandas_like():
        return "pandas"
    return "polars" if implementation.is_polars() else "pyarrow"


def eager(frame: Any) -> Any:
    """Return a table in memory: collect lazy tables, turn record batches into tables."""
    roots = _roots(frame)
    if "pandas" in roots:
        return frame
    if "pyarrow" in roots and type(frame).__name__ == "RecordBatch":
        return sys.modules["pyarrow"].Table.from_batches([frame])
    import narwhals.stable.v2 as nw

    wrapped = nw.from_native(frame)
    return (wrapped.collect() if isinstance(wrapped, nw.LazyFrame) else wrapped).to_native()


def column_names(frame: Any) -> list[Any]:
    """Return the column names of a table; a repeated name is a DataError."""
    frame = eager(frame)
    names = list(frame.column_names if backend_of(frame) == "pyarrow" else frame.columns)
    if len(set(names)) < len(names):
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        shown = ", column ".join(f"{name!r} occurs {names.count(name)} times" for name in twice)
        raise DataError(f"Column {shown}: rename {'its' if len(twice) == 1 else 'the'} copies.")
    return names


def require_columns(
    frame: Any, names: Iterable[Any], role: str = "", where: str = "the table"
) -> None:
    """Raise a DataError that names the absent columns, their role and the table."""
    have = column_names(frame)
    absent = [n for n in dict.fromkeys(names) if n not in have and n not in index_names(frame)]
    if not absent:
        return
    if len(have) > 10:  # similar names first
        from difflib import get_close_matches  # slow to import, and errors alone need it

        texts = [name for name in have if isinstance(name, str)]
        near = [like for name in absent for like in get_close_matches(str(name), texts, n=3)]
        have = list(dict.fromkeys([*near, *have]))
    shown = ", ".join(map(repr, have[:10])) + (", ..." if len(have) > 10 else "")
    named, of_role = show_ids(absent), f" ({role})" if role else ""
    are = f"Column {named}{of_role} is" if len(absent) == 1 else f"Columns {named}{of_role} are"
    raise DataError(f"{are} not in {where}; it has {shown}.")


def index_names(frame: Any) -> list[Any]:
    """Return the names of the index levels of a pandas table; other tables have none."""
    index = frame.index.names if backend_of(frame) == "pandas" else []
    return [name for name in index if name is not None]


def get_series(frame: Any, name: Any) -> Any:
    """Return a column of a table, or a level of a pandas index, in its own library."""
    frame = eager(frame)
    if name in index_names(frame) and name not in frame.columns:
        return frame.index.get_level_values(name)
    require_columns(frame, [name])
    return frame.column(name) if backend_of(frame) == "pyarrow" else frame[name]


def get_column(frame: Any, name: Any) -> np.ndarray:
    """Return a column as an array: see `to_array`."""
    return to_array(get_series(frame, name))


def get_raw(frame: Any, name: Any) -> np.ndarray:
    """Return a column as `get_column` does; times lose their zone, categories are no text."""
    import narwhals.stable.v2 as nw

    column = nw.from_native(as_native(get_series(frame, name)), series_only=True)
    if isinstance(column.dtype, nw.Categorical | nw.Enum):
        return np.empty(0)  # the values are what the user says that they are
    if isinstance(column.dtype, nw.Datetime) and column.dtype.time_zone is not None:
        column = column.dt.replace_time_zone(None)
    return to_array(column.to_native())


def replace_columns(frame: Any, found: Mapping[Any, Mapping[str, np.ndarray]]) -> Any:
    """Return a table of the same library with other columns in place of some."""
    import narwhals.stable.v2 as nw

    new = {name: values for columns in found.values() for name, values in columns.items()}
    wrapped = nw.from_native(eager(frame), eager_only=True)
    wrapped = wrapped.drop([name for name in found if name not in new])
    backend = wrapped.implementation
    columns = (
        nw.new_series(name, values.tolist(), nw.String, backend=backend)
        if values.dtype == object
        else nw.new_series(name, values, nw.Float64, backend=backend)
        for name, values in new.items()
    )
    return wrapped.with_columns(*columns).to_native()


def drop_columns(frame: Any, names: Iterable[Any]) -> Any:
    """Return a table of the same library without the named columns."""
    frame, gone = eager(frame), set(names)
    return select_columns(frame, [name for name in column_names(frame) if name not in gone])


def select_columns(frame: Any, names: Iterable[Any]) -> Any:
    """Return a table of the same library with the named columns, in that order."""
    frame, names = eager(frame), list(names)
    require_columns(frame, names)
    return frame.select(names) if backend_of(frame) != "pandas" else frame[names]


def to_array(series: Any) -> np.ndarray:
    """Return a column as an array (N,): float64, integer, bool, datetime64, else object.

    Gaps become NaN in numbers, NaT in dates and None otherwise; categories become text.
    """
    import narwhals.stable.v2 as nw

    column = nw.from_native(as_native(series), series_only=True)
    dtype, gaps = column.dtype, column.null_count() > 0
    if dtype.is_numeric():
        column = column.cast(nw.Float64) if gaps or dtype.is_decimal() else column
        return column.to_numpy()
    if dtype == nw.Boolean and not gaps:
        return column.to_numpy().astype(bool)
    is_complex = isinstance(dtype, nw.Unknown) and column.to_numpy().dtype.kind == "c"
    if is_complex or isinstance(dtype, nw.Date | nw.Datetime):
        return column.to_numpy()
    values = column.to_list()
    if gaps:
        for row in np.flatnonzero(column.is_null().to_numpy()).tolist():
            values[row] = None
    if isinstance(dtype, nw.Categorical | nw.Enum):
        names = {v: None if v is None else level_name(v) for v in set(values)}
        values = list(map(names.__getitem__, values))
    return np.fromiter(values, dtype=object, count=len(values))


def gaps_of(series: Any) -> np.ndarray:
    """Return for each row of a column whether its value is missing, (N,) bool."""
    import narwhals.stable.v2 as nw

    column = nw.from_native(as_native(series), series_only=True)
    gaps = column.is_null()
    if column.dtype.is_float():
        gaps = gaps | column.is_nan().fill_null(True)
    return gaps.to_numpy().astype(bool)


def as_native(series: Any) -> Any:
    """Return a column that narwhals accepts: an index or a PyArrow array becomes a series."""
    roots = _roots(series)
    if "pandas" in roots and not hasattr(series, "iloc"):
        return sys.modules["pandas"].Series(series)
    if "pyarrow" in roots and type(series).__name__ != "ChunkedArray":
        return sys.modules["pyarrow"].chunked_array([series])
    return series


def numeric_matrix(frame: Any, columns: Iterable[Any] | None = None) -> np.ndarray:
    """Return columns of a table as one (N, d) float64 C-contiguous array; gaps are NaN."""
    frame = eager(frame)
    names = column_names(frame) if columns is None else list(columns)
    if columns is None and backend_of(frame) == "pandas":
        plain = (isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in frame.dtypes)
        if all(plain):  # neither text nor nullable numbers: all columns at once
            return np.ascontiguousarray(frame.to_numpy(dtype=np.float64))
    read = each_column(names, lambda name: to_floats(get_column(frame, name), f"Column {name!r}"))
    parts = list(read.values())
    n_rows = parts[0].shape[0] if parts else int(frame.shape[0])
    out = np.empty((n_rows, len(parts)))
    step = max(1, _BLOCK_BYTES // (8 * max(1, len(parts))))
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        for j, part in enumerate(parts):
            out[rows, j] = part[rows]
    return out


def make_frame(columns: Mapping[str, np.ndarray], backend: str | None = None) -> Any:
    """Build a table of the named library from equally long columns.

    Without a library: pandas, else polars, else PyArrow, else a NumPy structured array.
    """
    if backend is None:
        backend = next((b for b in ("pandas", "polars", "pyarrow") if _importable(b)), "numpy")
    if backend == "numpy":
        fields = [(name, np.asarray(values).dtype) for name, values in columns.items()]
        out = np.empty(max(map(len, columns.values()), default=0), dtype=fields)
        for name, values in columns.items():
            out[name] = values
        return out
    if backend == "pandas":
        import pandas as pd

        plain = {n: v.tolist() if v.dtype == object else v for n, v in columns.items()}
        return pd.DataFrame({name: pd.Series(values) for name, values in plain.items()})
    library = import_module(backend)
    make = library.DataFrame if backend == "polars" else library.table
    return make({name: _arrow_values(name, v, backend) for name, v in columns.items()})


def _arrow_values(name: str, values: np.ndarray, backend: str) -> Any:
    """Return a column for a polars or PyArrow table; mixed types are a DataError."""
    if values.dtype != object:
        return np.ascontiguousarray(values)
    kinds = sorted({type(v).__name__ for v in values} - {"NoneType"})
    if len(kinds) > 1:
        raise DataError(
            f"Column {name!r} mixes types ({', '.join(kinds)}), which a {backend} table cannot "
            "hold: convert it to one type."
        )
    return values.tolist()


def _importable(name: str) -> bool:
    return name in sys.modules or find_spec(name) is not None
