"""Type one raw column: numbers, booleans, or text and categories."""

from datetime import date, timedelta
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.frames import is_series, to_array
from condmeta.tasks.numbers import NUMBERS, as_float, is_na

_BOOLEANS = (bool, np.bool_)
DURATIONS = timedelta, np.timedelta64


def type_column(values: Any, name: str, what: str = "Side column") -> np.ndarray:
    """Return a column as float64 with NaN, bool, or object with None for gaps.

    Numbers become float64; booleans bool, or object if there are gaps; text and categories object.
    Error messages begin with `what`.
    """
    array = to_array(values) if is_series(values) else values
    if isinstance(array, np.ndarray):
        if array.ndim != 1:
            raise DataError(f"{what} {name!r} must be 1-D, got shape {array.shape}.")
        if array.dtype.kind in "fiu":
            return array.astype(np.float64)
        if array.dtype.kind == "b":
            return array.copy()
        if array.dtype.kind in "Mm":
            raise _times(name, what, array.dtype.kind == "m")
        if array.dtype.kind == "c":
            raise DataError(f"{what} {name!r} holds complex numbers; it must be real.")
        array = array.tolist()
    return _type_list(list(array), name, what)


def _type_list(values: list, name: str, what: str) -> np.ndarray:
    """Type a list of Python values."""
    if set(map(type, values)) in ({str}, {str, type(None)}):  # long columns of text: no Python loop
        return np.fromiter(values, dtype=object, count=len(values))
    plain = [None if is_na(v) else v for v in values]
    filled = [v for v in plain if v is not None]
    if not filled:
        return np.full(len(plain), np.nan)
    kinds = set(map(type, filled))
    if all(issubclass(kind, _BOOLEANS) for kind in kinds):
        plain = [None if v is None else bool(v) for v in plain]
        return np.array(plain, dtype=bool if None not in plain else object)
    # NumPy calls its durations integers.
    if any(issubclass(kind, date | timedelta | np.datetime64 | np.timedelta64) for kind in kinds):
        raise _times(name, what, all(issubclass(kind, DURATIONS) for kind in kinds))
    if all(issubclass(kind, NUMBERS) for kind in kinds):
        return np.array(
            [np.nan if v is None else as_float(v, f"{what} {name!r}") for v in plain], np.float64
        )
    if all(issubclass(kind, str) for kind in kinds):
        text = [None if v is None else str(v) for v in plain]
        return np.fromiter(text, dtype=object, count=len(text))
    other = next((v for v in filled if not isinstance(v, (str, *NUMBERS))), None)
    if other is not None:
        raise DataError(
            f"{what} {name!r} holds objects (of type {type(other).__name__})",
            ": it must hold numbers, booleans or text.",
        )
    text = next(v for v in filled if isinstance(v, str))
    number = next(v for v in filled if not isinstance(v, str))
    raise DataError(
        f"{what} {name!r} mixes text and numbers ({str(text)!r} and {number})",
        ": make it one of them.",
    )


def _times(name: str, what: str, durations: bool) -> DataError:
    holds, number = ("durations", "hours") if durations else ("dates", "days since a start")
    reader = "" if durations else ", or take TableModel, which reads dates"
    return DataError(
        f"{what} {name!r} holds {holds}", f": turn it into a number, such as the {number}{reader}."
    )


def join_columns(first: np.ndarray, second: np.ndarray, name: str) -> np.ndarray:
    """Append one typed column to another of the same kind."""
    if first.dtype == second.dtype and first.dtype != object:
        return np.concatenate([first, second])
    return _type_list([*first.tolist(), *second.tolist()], name, "Side column")
