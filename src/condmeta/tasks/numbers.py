"""Convert values to numbers; name the column if it holds text, dates or other objects."""

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np

from condmeta.errors import DataError

DATE = r"^\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})(\D.*)?$"  # as text
LARGE = 1e30  # numbers beyond it are squared in other units
NUMBERS = (int, float, np.integer, np.floating, np.bool_, Decimal)
SIDE_BY_SIDE = 1024  # numbers that are compared at once


def level_name(value: Any) -> str:
    """Return a category as text; a whole number has no decimal point."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def to_floats(values: np.ndarray, label: str, role: str = "X") -> np.ndarray:
    """Return numbers and booleans as float64; anything else is a DataError that names `label`."""
    kind = values.dtype.kind
    if kind in "fiub":
        return values.astype(np.float64, copy=False)
    remedy = f"{role} must be numeric: encode it as numbers."
    if role == "y":
        remedy = (
            "y must be numeric: encode it as numbers, or, if it names classes, use a classifier "
            "such as ConditionalLogistic."
        )
    if role == "X":
        options = (
            "encode it, move it to the side table, or, if it names the task, pass it as task=."
        )
        remedy = f"X must be numeric: {options}"
    if kind == "c":
        raise DataError(f"{label} holds complex numbers", f"; {role} must be real.")
    if kind in "Mm":
        holds, number = ("dates", "days since a start") if kind == "M" else ("durations", "hours")
        reader = ", or take TableModel, which reads dates" if role == "X" and kind == "M" else ""
        raise DataError(
            f"{label} holds {holds}",
            f"; {role} must be numeric: turn it into a number, such as the {number}{reader}.",
        )
    flat = values.ravel().tolist()
    if kind == "O":
        # NumPy calls its durations integers.
        others = [
            v
            for v in flat
            if isinstance(v, np.timedelta64) or not (isinstance(v, NUMBERS) or is_na(v))
        ]
        if not others:
            numbers = [np.nan if is_na(v) else as_float(v, label) for v in flat]
            return np.array(numbers, dtype=np.float64).reshape(values.shape)
        if not isinstance(others[0], str):
            name = type(others[0]).__name__
            raise DataError(f"{label} holds objects (of type {name})", f"; {remedy}")
        flat = others
    if role == "X" and re.match(DATE, str(flat[0])):
        remedy = (
            "X must be numeric: turn dates into a number, such as the days since a start, or take "
            "TableModel, which reads them."
        )
    elif role == "X":
        remedy = (
            "X must be numeric: encode it, or take TableModel, which reads text; or move it to the "
            "side table, or, if it names the task, pass it as task=."
        )
    shown = ", ".join(repr(str(v)) for v in flat[:1])
    raise DataError(f"{label} holds text ({shown}, ...)", f"; {remedy}")


def class_names(values: np.ndarray, label: str) -> np.ndarray | None:
    """Return text labels as an object array of str; None if the labels are not text.

    Examples
    --------
    >>> class_names(np.array(["yes", "no"]), "y").tolist(), class_names(np.array([1, 2]), "y")
    (['yes', 'no'], None)
    """
    if values.dtype.kind not in "OUT":
        return None
    flat = values.tolist()
    given = [value for value in flat if not is_na(value)]
    if not any(isinstance(value, str) for value in given):
        return None
    other = next((value for value in given if not isinstance(value, str)), None)
    if other is not None:
        text = next(value for value in given if isinstance(value, str))
        raise DataError(
            f"{label} mixes text and numbers ({text!r} and {other!r}): write all classes as one of "
            "them."
        )
    if len(given) < len(flat):
        row = next(row for row, value in enumerate(flat) if is_na(value))
        raise DataError(f"{label} has no label in row {row}: fill it or drop the row.")
    return np.array(flat, dtype=object)


def refuse_masked(values: Any, label: str) -> None:
    """Raise if an array, or a row of a list, hides values behind a mask."""
    parts = values if isinstance(values, list | tuple) else [values]
    if any(isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in parts):
        raise DataError(
            f"{label} has masked values, and condmeta does not read masks: fill them, or drop "
            "their rows."
        )


def as_float(value: Any, label: str) -> float:
    """Return a number as a float; one that is too large for it is a DataError."""
    try:
        return float(value)
    except OverflowError:
        raise DataError(
            f"{label} holds a whole number of {len(str(value))} digits, which is beyond the range "
            "of floating-point numbers (1.8e308)."
        ) from None


def is_na(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, or the NA and NaT of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and value != value


def is_empty(values: np.ndarray) -> bool:
    """Return whether all values are NaN, as pandas reads a column without values."""
    return values.dtype.kind == "f" and bool(np.isnan(values).all())


def power_of_two(size: Any):
    """Return powers of two of these sizes where squares could overflow or underflow, else 1.

    To divide by a power of two changes no digit.

    Examples
    --------
    >>> power_of_two(np.array([0.0, 3.0, 1e200])).tolist() == [1.0, 1.0, 2.0**664]
    True
    """
    size = np.asarray(size, dtype=float)
    extreme = (size > LARGE) | ((size > 0) & (size < 1 / LARGE))
    return np.ldexp(1.0, np.where(extreme, np.frexp(size)[1] - 1, 0))


def standard_deviation(values: np.ndarray) -> float:
    """Return the standard deviation of numbers (N,), whatever their size."""
    unit = power_of_two(np.abs(values).max(initial=0.0))
    return float(unit * np.std(values / unit))


def put_rows(array: np.ndarray, at: Any, values: Any) -> np.ndarray:
    """Return an array with other rows at positions `at`, of a type that holds both.

    Where all rows are others it is `values` itself.
    """
    kind = np.result_type(array, values)  # counts are integers until weights come
    if np.shape(values) == array.shape and are_all(at, len(array)):
        return values.astype(kind, copy=False)
    out = array.astype(kind)
    out[at] = values
    return out


def take_rows(array: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the rows at positions `at`; the array itself if these are all, in order."""
    return array if are_all(at, len(array)) else array[at]


def are_all(at: np.ndarray, n: int) -> bool:
    """Return whether positions are 0, 1, ..., n - 1."""
    return len(at) == n and at.dtype != bool and bool((at == np.arange(n)).all())


def column_ends(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest number of each column (d,) of rows (N, d), N > 0.

    Rows are compared many at once: one by one, short rows take four times as long.

    Examples
    --------
    >>> [ends.tolist() for ends in column_ends(np.array([[3.0, 1.0], [2.0, 5.0]]))]
    [[2.0, 1.0], [3.0, 5.0]]
    """
    n, d = X.shape
    at_once = max(SIDE_BY_SIDE // max(d, 1), 1)
    if n < at_once or not X.flags.c_contiguous:
        return X.min(axis=0), X.max(axis=0)
    whole = n - n % at_once
    wide, rest = X[:whole].reshape(-1, at_once * d), X[whole:]
    low, high = (
        find.reduce(np.concatenate([find.reduce(wide, axis=0).reshape(at_once, d), rest]), axis=0)
        for find in (np.minimum, np.maximum)
    )
    return low, high


def tree_sum(parts: Iterable[tuple]) -> tuple:
    """Return the sum of 2^b tuples of arrays over the perfect binary tree of their positions.

    Part of the tree, such as the tasks of one worker, has the same bits as in the whole.

    Examples
    --------
    >>> tree_sum((number,) for number in [1.0, 2.0, 3.0, 4.0])
    (10.0,)
    """
    sums: list[tuple] = []  # of whole subtrees that no neighbour was added to yet
    for position, part in enumerate(parts):
        while position & 1:
            left = sums.pop()
            part = tuple(a + b for a, b in zip(left, part, strict=True))
            position >>= 1
        sums.append(part)
    (total,) = sums
    return total
