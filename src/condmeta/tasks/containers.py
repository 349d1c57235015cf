"""Refuse values that are no array, no list and no table, before anything is read from them."""

from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np

from condmeta.errors import DataError

ODD = str | bytes | Set | Mapping | Iterator | type


def refuse_odd(values: Any, label: str) -> None:
    """Raise a DataError if values cannot be rows or targets: a text, a set, a function, ...

    Examples
    --------
    >>> refuse_odd({1.0, 2.0}, "X")
    Traceback (most recent call last):
    condmeta.errors.DataError: X is a set: pass an array, a list or a table.
    """
    if hasattr(values, "toarray"):  # sparse: X may be, y is refused in the words of scikit-learn
        return
    if isinstance(values, ODD) or callable(values):
        kind = "class" if isinstance(values, type) else type(values).__name__
        article = "an" if kind[0] in "aeiou" else "a"
        raise DataError(f"{label} is {article} {kind}: pass an array, a list or a table.")
    if isinstance(values, np.ndarray) and values.dtype.kind == "V":
        raise DataError(
            f"{label} is a structured array: pass its fields as columns, such as "
            f"np.column_stack([{label}[name] for name in {label}.dtype.names])."
        )
