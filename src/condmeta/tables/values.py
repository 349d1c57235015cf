"""Read and check the values of columns: missing values, text, the target."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.categories import ordered_categories
from condmeta.tasks.each_column import each_column
from condmeta.tasks.frames import gaps_of, get_column, get_series
from condmeta.tasks.messages import show_ids
from condmeta.tasks.numbers import DATE, to_floats
from condmeta.typing import Frame

ZEROS = 0.01  # share of zeros from which on whole numbers are counts,
MOST_CLASSES = 100
MOST_NUMBERS = 20  # different ones that may be classes
TAIL = 3.0  # if the largest is this many times the mean


def has_text(column: np.ndarray) -> bool:
    """Return whether a column holds text in some row."""
    return column.dtype == object and any(isinstance(value, str) for value in column)


def is_unique(column: np.ndarray) -> bool:
    """Return whether nearly every text of a column is different: names, not categories."""
    texts = [value for value in column.tolist() if value is not None]
    return len(set(texts)) > max(10, 0.9 * len(texts))


def require_values(frame: Frame, names: Sequence[str], role: str) -> None:
    """Refuse missing values in columns; the error counts them and names the first row."""

    def require(name: str) -> None:
        gaps = gaps_of(get_series(frame, name))
        if gaps.any():
            raise DataError(
                f"Column {name!r} ({role}) is empty in {gaps.sum():,} of {len(gaps):,} rows, first "
                f"in row {int(gaps.argmax()) + 1:,}",
                ": fill it, or drop these rows.",
            )

    each_column(names, require)


class Target(NamedTuple):
    """What a target holds.

    `kind` is "number", "count", "class" or "ordered" (in their order).
    """

    kind: str
    classes: list | None = None


def find_target(frame: Frame, target: str, kind: str | None, order: Any = None) -> Target:
    """Return what a target holds; `kind` is what the learner reads, None leaves it to the target.

    Two values are classes, and so are texts and ordered categories; whole numbers from 0 on may be
    counts.
    `order` are ordered classes, from the lowest.
    """
    require_values(frame, [target], "target")
    column, series = get_column(frame, target), get_series(frame, target)
    categories = ordered_categories(series)
    if kind == "ordered" or (kind is None and categories is not None and len(categories) > 2):
        return Target("ordered", _ordered(column, target, order, categories))
    classes = _find_classes(column, target, None if kind is None else kind == "class")
    if classes is not None:
        return Target("class", classes)
    numbers = to_floats(column, f"Column {target!r}", role="y")
    found = "count" if looks_like_counts(numbers) else "number"
    return Target(found if kind is None else kind)


def looks_like_counts(y: np.ndarray) -> bool:
    """Return whether numbers are counts of something rare enough that least squares misfit.

    Whole numbers of at least 0, a hundredth of them 0, and the largest three times the mean: the
    scores of a test from 0 to 10 are none, and large counts are numbers like others.

    Examples
    --------
    >>> import numpy as np
    >>> looks_like_counts(np.array([0, 1, 0, 2, 5])), looks_like_counts(np.array([0, 3, 4, 5, 5]))
    (True, False)
    """
    whole = len(y) > 0 and bool((y >= 0).all()) and bool((y == np.floor(y)).all())
    return (
        whole and float(np.mean(y == 0)) >= ZEROS and float(y.max()) >= TAIL * float(y.mean()) > 0
    )


def _ordered(column: np.ndarray, target: str, order: Any, categories: Any) -> list:
    """Return the classes of a target in their order."""
    if order is not None:
        return list(order)
    if categories is not None:
        return categories.tolist()
    values = sorted(set(column.tolist()), key=str if column.dtype == object else None)
    if has_text(column) and len(values) > 2:
        raise DataError(
            f"Column {target!r} (target) holds texts, which have no order ({show_ids(values)}): "
            "give the classes from the lowest to the highest (classes= of ConditionalOrdinal, "
            "--classes of condmeta fit)."
        )
    if len(values) < 2:
        raise DataError(f"Column {target!r} (target) has only the one value {values[0]!r}.")
    return values


def _find_classes(column: np.ndarray, target: str, classifier: bool | None) -> list | None:
    """Return the classes of a target, sorted, or None if it is a number.

    Two values and texts are classes, unless `classifier` is False: the learner predicts numbers.
    """
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
    if classifier is False and all(map(_is_written_number, values)):
        raise DataError(
            f"Column {target!r} (target) holds numbers as text ({values[0]!r}, ...): turn it into "
            "numbers."
        )
    if classifier is False:
        raise DataError(
            f"Column {target!r} (target) holds text ({values[0]!r}, ...) and the learner "
            "predicts numbers: use a classifier, or no learner: the target then decides."
        )
    if len(values) == 2:
        return values
    if text or classifier:
        if len(values) == 1:
            raise DataError(f"Column {target!r} (target) has only the one value {values[0]!r}.")
        if not text and len(values) > MOST_NUMBERS:
            raise DataError(
                f"Column {target!r} (target) has {len(values)} different numbers "
                f"({show_ids(values)}), and the learner is a classifier: use a regressor, or "
                "write the classes as text."
            )
        if len(values) > MOST_CLASSES:
            raise DataError(
                f"Column {target!r} (target) has {len(values)} different values "
                f"({show_ids(values)}): a classifier takes at most {MOST_CLASSES} classes. Join "
                "rare ones, or choose another column."
            )
        return values
    to_floats(column, f"Column {target!r}", role="y")
    return None


def _is_written_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_labels(frame: Frame, target: str, classes: list | None) -> np.ndarray:
    """Return the target (N,) as floats: numbers, or 0, 1, ... for the classes."""
    require_values(frame, [target], "target")
    column = get_column(frame, target)
    if classes is None:
        return to_floats(column, f"Column {target!r}", role="y")
    values = column.tolist()
    odd = [value for value in dict.fromkeys(values) if value not in classes]
    if odd:
        raise DataError(
            f"Column {target!r} (target) holds {show_ids(odd)}; the classes seen in fit are "
            f"{', '.join(map(repr, classes[:-1]))} and {classes[-1]!r}."
        )
    number = {value: float(code) for code, value in enumerate(classes)}
    return np.fromiter((number[value] for value in values), np.float64, len(values))
