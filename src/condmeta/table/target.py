"""The target of a table: numbers, or two classes as 0 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.table.columns import require_values
from condmeta.tasks.frames import get_column
from condmeta.tasks.messages import show_ids
from condmeta.tasks.numbers import to_floats


def find_classes(frame: Any, target: str, classifier: bool | None) -> list | None:
    """Return the two classes of a target, sorted, or None if it is a number.

    Two values are classes, unless `classifier` is False: the learner wants numbers.
    """
    require_values(frame, [target], "target")
    column = get_column(frame, target)
    text = column.dtype == object and any(isinstance(value, str) for value in column)
    if classifier is False and not text:
        to_floats(column, f"Column {target!r}", role="y")
        return None
    if column.dtype.kind == "M":
        raise DataError(f"Column {target!r} (target) holds dates: predict a number made of it.")
    values = sorted(set(column.tolist()), key=str if column.dtype == object else None)
    if classifier is False:
        raise DataError(
            f"Column {target!r} (target) holds text ({values[0]!r}, ...) and the learner predicts "
            "numbers: take a classifier, or leave the choice to the target."
        )
    if len(values) == 2:
        return values
    if text or classifier:
        raise _not_two(target, values)
    to_floats(column, f"Column {target!r}", role="y")
    return None


def _not_two(target: str, values: list) -> DataError:
    if len(values) == 1:
        return DataError(f"Column {target!r} (target) has the one value {values[0]!r}.")
    return DataError(
        f"Column {target!r} (target) has {len(values)} values ({show_ids(values)}), and classes "
        f"are two: make a column of yes and no for each value, such as {target}_{values[0]}, and "
        "a model of each."
    )


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
