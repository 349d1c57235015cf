"""Read tables and columns of any DataFrame library, and write the same kind back.

Everything goes through narwhals, which is imported inside the functions: arrays never pay for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.numbers import level_name, to_floats

_BLOCK_BYTES = 1 << 19  # a block of rows that stays in cache while its columns are interleaved


def _roots(obj: Any) -> set[str]:
    """Return the top-level packages of the classes of an object, without importing any."""
    return {cls.__module__.partition(".")[0] for cls in type(obj).__mro__} - {"builtins", "abc"}


def _kind(obj: Any) -> str | None:
    """Return "frame", "series" or None."""
    if obj is None or isinstance(obj, np.ndarray | list | tuple | dict | str | np.generic):
        return None
    roots = _roots(obj)
    if "pandas" in roots:
        if hasattr(obj, "columns"):
            return "frame"
        return "series" if hasattr(obj, "factorize") else None
    if "pyarrow" in roots:
        if hasattr(obj, "column_names"):
            return "frame"
        return "series" if hasattr(obj, "dictionary_encode") or hasattr(obj, "to_pylist") else None
    if "polars" in roots:
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
    """Say whether an object is a table of some DataFrame library."""
    return _kind(obj) == "frame"


def is_series(obj: Any) -> bool:
    """Say whether an object is a column of some DataFrame library."""
    return _kind(obj) == "series"


def backend_of(obj: Any) -> str | None:
    """Name the library of a table or column: "pandas", "polars", "pyarrow", or None."""
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
    """Return a table in memory: lazy ones are collected, record batches become tables."""
    roots = _roots(frame)
    if "pandas" in roots:
        return frame
    if "pyarrow" in roots and type(frame).__name__ == "RecordBatch":
        return sys.modules["pyarrow"].Table.from_batches([frame])
    import narwhals.stable.v2 as nw

    wrapped = nw.from_native(frame)
    return (wrapped.collect() if isinstance(wrapped, nw.LazyFrame) else wrapped).to_native()


def column_names(frame: Any) -> list[Any]:
    """Return the column names of a table, which must differ from each other."""
    frame = eager(frame)
    names = list(frame.column_names if backend_of(frame) == "pyarrow" else frame.columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"Column {twice!r} occurs {names.count(twice)} times: rename its copies.")
    return names


def require_columns(frame: Any, names: Iterable[Any], role: str = "") -> None:
    """Raise a DataError that names the first column a table does not have, and its role."""
    have = column_names(frame)
    for name in names:
        if name not in have and name not in index_names(frame):
            if len(have) > 10:  # those that may have been meant first
                near = get_close_matches(str(name), [n for n in have if isinstance(n, str)], n=3)
                have = [*near, *(n for n in have if n not in near)]
            shown = ", ".join(map(repr, have[:10])) + (", ..." if len(have) > 10 else "")
            what = f"Column {name!r} ({role})" if role else f"Column {name!r}"
            raise DataError(f"{what} is not in the table; it has {shown}.")


def index_names(frame: Any) -> list[Any]:
    """Return the names of the index levels of a pandas table; no other table has any."""
    if backend_of(frame) != "pandas":
        return []
    return [name for name in frame.index.names if name is not None]


def get_series(frame: Any, name: Any) -> Any:
    """Return a column in its own kind; a level of a pandas index counts as a column."""
    frame = eager(frame)
    if name in index_names(frame) and name not in frame.columns:
        return frame.index.get_level_values(name)
    require_columns(frame, [name])
    if backend_of(frame) == "pyarrow":
        return frame.column(name)
    return frame[name]


def get_column(frame: Any, name: Any) -> np.ndarray:
    """Return a column as an array: see `to_array`."""
    return to_array(get_series(frame, name))


def drop_columns(frame: Any, names: Iterable[Any]) -> Any:
    """Return a table of the same kind without the named columns."""
    frame = eager(frame)
    gone = set(names)
    return select_columns(frame, [name for name in column_names(frame) if name not in gone])


def select_columns(frame: Any, names: Iterable[Any]) -> Any:
    """Return a table of the same kind with the named columns in that order."""
    frame, names = eager(frame), list(names)
    require_columns(frame, names)
    return frame.select(names) if backend_of(frame) != "pandas" else frame[names]


def to_array(series: Any) -> np.ndarray:
    """Turn a column into (N,): numbers float64 or integer, bool, datetime64, else object.

    Gaps are NaN among numbers, NaT among dates and None elsewhere; categories become text.
    """
    import narwhals.stable.v2 as nw

    column = nw.from_native(as_native(series), series_only=True)
    dtype, gaps = column.dtype, column.null_count() > 0
    if dtype.is_numeric():
        column = column.cast(nw.Float64) if gaps or dtype.is_decimal() else column
        return column.to_numpy()
    if dtype == nw.Boolean and not gaps:
        return column.to_numpy().astype(bool)
    if isinstance(dtype, nw.Date | nw.Datetime):
        return column.to_numpy()
    if isinstance(dtype, nw.Unknown) and column.to_numpy().dtype.kind == "c":
        return column.to_numpy()
    values = column.to_list()
    if gaps:
        missing = np.flatnonzero(column.is_null().to_numpy())
        for row in missing.tolist():
            values[row] = None
    if isinstance(dtype, nw.Categorical | nw.Enum):
        names = {v: None if v is None else level_name(v) for v in set(values)}
        values = list(map(names.__getitem__, values))
    return np.fromiter(values, dtype=object, count=len(values))


def gaps_of(series: Any) -> np.ndarray:
    """Say of each row of a column whether its value is missing: (N,) bool."""
    import narwhals.stable.v2 as nw

    column = nw.from_native(as_native(series), series_only=True)
    gaps = column.is_null()
    if column.dtype.is_float():
        gaps = gaps | column.is_nan().fill_null(True)
    return gaps.to_numpy().astype(bool)


def as_native(series: Any) -> Any:
    """Return a column that narwhals accepts: indexes and bare arrays become series."""
    roots, name = _roots(series), type(series).__name__
    if "pandas" in roots and not hasattr(series, "iloc"):
        return sys.modules["pandas"].Series(series)
    if "pyarrow" in roots and name != "ChunkedArray":
        return sys.modules["pyarrow"].chunked_array([series])
    return series


def numeric_matrix(frame: Any, columns: Iterable[Any] | None = None) -> np.ndarray:
    """Return columns of a table as one (N, d) float64 C-contiguous array; gaps are NaN."""
    frame = eager(frame)
    names = column_names(frame) if columns is None else list(columns)
    parts = [to_floats(get_column(frame, name), f"Column {name!r}") for name in names]
    n_rows = parts[0].shape[0] if parts else int(frame.shape[0])
    out = np.empty((n_rows, len(parts)))
    step = max(1, _BLOCK_BYTES // (8 * max(1, len(parts))))
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        for j, part in enumerate(parts):
            out[rows, j] = part[rows]
    return out


def as_matrix(X: Any) -> np.ndarray:
    """Return X as an (N, d) float64 C-contiguous array, from a table, array or nested list."""
    if is_frame(X):
        return numeric_matrix(X)
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise DataError("X is sparse; condmeta needs a dense array: use X.toarray().")
    try:
        array = to_array(X) if is_series(X) else np.asarray(X)
    except ValueError as error:
        raise DataError("X has rows of unequal length; it must be a 2-D table.") from error
    if array.ndim != 2:
        raise DataError(
            f"X must be a 2-D table (rows, features), got an array of shape {array.shape}. "
            "Reshape your data: X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one row."
        )
    return np.ascontiguousarray(to_floats(array, "X"))


def as_vector(y: Any, label: str = "y") -> np.ndarray:
    """Return y as an (N,) float64 array, from a column, array or list."""
    if is_frame(y):
        raise DataError(f"{label} must be 1-D (one target a row), got a table: pass one column.")
    try:
        array = to_array(y) if is_series(y) else np.asarray(y)
    except ValueError as error:
        raise DataError(f"{label} must be 1-D (one target a row).") from error
    if array.ndim != 1:
        raise DataError(
            f"{label} must be 1-D (one target a row), got an array of shape {array.shape}."
        )
    return np.ascontiguousarray(to_floats(array, label, role="y"))


def make_frame(columns: Mapping[str, np.ndarray], backend: str | None = None) -> Any:
    """Build a table of the named library from equally long columns.

    Without a library: pandas, else polars, else PyArrow, else a NumPy structured array.
    """
    if backend is None:
        backend = next((b for b in ("pandas", "polars", "pyarrow") if _importable(b)), "numpy")
    if backend == "numpy":
        fields = [(name, np.asarray(values).dtype) for name, values in columns.items()]
        n_rows = len(next(iter(columns.values()))) if columns else 0
        out = np.empty(n_rows, dtype=fields)
        for name, values in columns.items():
            out[name] = values
        return out
    if backend == "pandas":
        import pandas as pd

        plain = {n: v.tolist() if v.dtype == object else v for n, v in columns.items()}
        return pd.DataFrame({name: pd.Series(values) for name, values in plain.items()})
    return _make_arrow_like(columns, backend)


def _make_arrow_like(columns: Mapping[str, np.ndarray], backend: str) -> Any:
    """Build a polars or PyArrow table, whose columns hold one type each."""
    import importlib

    library = importlib.import_module(backend)
    make = library.DataFrame if backend == "polars" else library.table
    out = {}
    for name, values in columns.items():
        plain = values.tolist() if values.dtype == object else np.ascontiguousarray(values)
        kinds = {type(v).__name__ for v in plain} - {"NoneType"} if plain is not values else set()
        if isinstance(plain, list) and len(kinds) > 1:
            raise DataError(
                f"Column {name!r} mixes types ({', '.join(sorted(kinds))}), which a {backend} "
                "table cannot hold: convert it to one type."
            )
        out[name] = plain
    return make(out)


def _importable(name: str) -> bool:
    from importlib.util import find_spec

    return name in sys.modules or find_spec(name) is not None
