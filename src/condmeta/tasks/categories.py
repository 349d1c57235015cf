"""Columns of ordered categories."""

from typing import Any

import numpy as np


def ordered_categories(y: Any) -> np.ndarray | None:
    """Return the categories of a column of ordered ones that occur, in their order; else None."""
    if hasattr(y, "cat") and getattr(y.cat, "ordered", False):  # pandas
        used = set(y.dropna().unique())
        return np.array([label for label in y.cat.categories if label in used])
    if type(y).__module__.startswith("polars") and str(y.dtype).startswith("Enum"):
        used = set(y.drop_nulls().unique().to_list())
        return np.array([label for label in y.dtype.categories.to_list() if label in used])
    return None
