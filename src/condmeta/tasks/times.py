"""Times of rows: numbers in any unit, or dates, which count in days."""

from datetime import date, datetime
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.frames import is_series, to_array
from condmeta.tasks.messages import name_task
from condmeta.tasks.numbers import is_na

MICROSECONDS_OF_A_DAY = 86_400e6


def read_times(time: Any, n_rows: int, label: str = "time", task_of_row: Any = None) -> np.ndarray:
    """Return the times of rows (N,): float64, or datetime64[us] for dates; or raise a DataError.

    One number or date is the time of all rows. Dates with a time zone become UTC.

    Examples
    --------
    >>> read_times(["2024-01-31", "2024-02-01"], 2)
    Traceback (most recent call last):
    condmeta.errors.DataError: time holds text ('2024-01-31', ...): give numbers, or dates, such \
as pandas.to_datetime makes of text.
    >>> read_times([2019, 2020], 2)
    array([2019., 2020.])
    """
    values = _values(time, label)
    if values.ndim == 0:
        values = np.repeat(values[None], n_rows)
    if values.shape != (n_rows,):
        raise DataError(
            f"{label} has shape {values.shape}, expected one time for each of {n_rows} rows."
        )
    if values.dtype == object:
        values = _from_objects(values, label)
    if values.dtype.kind not in "iufM":
        raise DataError(f"{label} holds {values.dtype}: give numbers or dates.")
    values = values.astype("datetime64[us]" if values.dtype.kind == "M" else np.float64)
    missing = np.isnat(values) if values.dtype.kind == "M" else ~np.isfinite(values)
    if missing.any():
        row = int(np.argmax(missing))
        where = "" if task_of_row is None else f" ({_name(task_of_row(row))})"
        raise DataError(
            f"{label} is missing or infinite in {int(missing.sum())} of {n_rows} rows, first in "
            f"row {row}{where}. Every row needs a time: fill it in, or drop the row."
        )
    return values


def _name(task_id: Any) -> str:
    name = name_task(task_id)
    return name[:1].lower() + name[1:]


def as_clock(time: np.ndarray) -> np.ndarray:
    """Return times (N,) as numbers: dates in days since 1970."""
    if time.dtype.kind != "M":
        return time
    return time.astype(np.int64) / MICROSECONDS_OF_A_DAY


def kind_of(time: np.ndarray) -> str:
    """Return "days" for dates, else "numbers"."""
    return "days" if time.dtype.kind == "M" else "numbers"


def _values(time: Any, label: str) -> np.ndarray:
    if is_series(time):
        return to_array(time)
    values = np.asarray(time)
    # A list with a text among its numbers would become an array of texts.
    values = values if values.dtype.kind != "U" else np.asarray(time, dtype=object)
    return values


def _from_objects(values: np.ndarray, label: str) -> np.ndarray:
    """Return dates or numbers of an array of objects; None and NaN are gaps."""
    filled = [value for value in values.tolist() if not is_na(value)]
    text = next((value for value in filled if isinstance(value, str)), None)
    if text is not None:
        raise DataError(
            f"{label} holds text ({text!r}, ...): give numbers, or dates, such as "
            "pandas.to_datetime makes of text."
        )
    if filled and all(isinstance(value, date) for value in filled):
        return np.array([_as_datetime64(value) for value in values.tolist()], "datetime64[us]")
    try:
        return np.array([np.nan if is_na(v) else float(v) for v in values.tolist()])
    except (TypeError, ValueError):
        kinds = sorted({type(value).__name__ for value in filled})
        raise DataError(f"{label} holds {', '.join(kinds)}: give numbers or dates.") from None


def _as_datetime64(value: Any) -> np.datetime64:
    if is_na(value):
        return np.datetime64("NaT", "us")
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.replace(tzinfo=None) - value.utcoffset()
    return np.datetime64(value, "us")
