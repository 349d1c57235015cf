"""Read and check the values of columns: missing values, text, the target."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.frames import gaps_of, get_column, get_series
from condmeta.tasks.messages import show_ids
from condmeta.tasks.numbers import DATE, to_floats


def has_text(column: np.ndarray) -> bool:
    """Return whether a column holds text in some row."""
    return column.dtype == object and any(isinstance(value, str) for value in column)


def is_unique(column: np.ndarray) -> bool:
    """Return whether nearly every text of a column is different: names, not categories."""
    texts = [value for value in column.tolist() if value is not None]
    return len(set(texts)) > max(10, 0.9 * len(texts))


def require_values(frame: Any, names: Sequence[str], role: str) -> None:
    """Refuse missing values in columns; the error counts them and names the first row."""
    for name in names:
        gaps = gaps_of(get_series(frame, name))
        if gaps.any():
            raise DataError(
                f"Column {name!r} ({role}) is empty in {gaps.sum():,} of {len(gaps):,} rows, first "
                f"in row {int(gaps.argmax()) + 1:,}: fill it, or drop these rows."
            )


def find_classes(frame: Any, target: str, classifier: bool | None) -> list | None:
    """Return the two classes of a target, sorted, or None if it is a number.

    Two values are classes, unless `classifier` is False: then the learner predicts numbers.
    """
    require_values(frame, [target], "target")
    column = get_column(frame, target)
    text = has_text(column)
    if classifier is False and not text:
        to_floats(column, f"Column {target!r}", role="y")
        return None
    values = sorted(set(column.tolist()), key=str if column.dtype == object else None)
    if text and not all(isinstance(value, str) for value in values):
        odd = next(value for value in values if not isinstance(value, str))
        other = next(value for value in values if isinstance(value, str))
        raise DataError(
            f"Column {target!r} (target) mixes text and numbers ({other!r} and {odd!r}): write all "
            "values as one of them."
        )
    if column.dtype.kind == "M" or (text and all(re.match(DATE, str(v)) for v in values)):
        raise DataError(f"Column {target!r} (target) holds dates: predict a number, such as days.")
    if classifier is False:
        raise DataError(
            f"Column {target!r} (target) holds text ({values[0]!r}, ...) and the learner predicts "
            "numbers: take a classifier, or leave the choice to the target."
        )
    if len(values) == 2:
        return values
    if text or classifier:
        if len(values) == 1:
            raise DataError(f"Column {target!r} (target) has only the one value {values[0]!r}.")
        raise DataError(
            f"Column {target!r} (target) has {len(values)} values ({show_ids(values)}), but a "
            "classifier needs two: make a yes/no column for each value, such as "
            f"{target}_{values[0]}, and fit a model to each column."
        )
    to_floats(column, f"Column {target!r}", role="y")
    return None


def read_labels(frame: Any, target: str, classes: list | None) -> np.ndarray:
    """Return the target (N,) as floats: numbers, or 0 and 1 for the classes."""
    require_values(frame, [target], "target")
    column = get_column(frame, target)
    if classes is None:
        return to_floats(column, f"Column {target!r}", role="y")
    values = column.tolist()
    odd = [value for value in dict.fromkeys(values) if value not in classes]
    if odd:
        raise DataError(
            f"Column {target!r} (target) holds {show_ids(odd)}; the classes seen in fit are "
            f"{classes[0]!r} and {classes[1]!r}."
        )
    return np.fromiter((value == classes[1] for value in values), np.float64, len(values))
