"""What a map of points is given: X, y, offsets, and weights where there are some."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from condmeta.errors import DataError


def arrays_of(points: Any) -> Sequence[Any]:
    """Return X, y, offsets and weight; weight may be None."""
    if isinstance(points, tuple):
        return *points, *[None] * (4 - len(points))
    return points.X, points.y, points.offsets, getattr(points, "weight", None)


def read_by(label: str, method: Any, points: Any) -> Sequence[Any]:
    """Return what a method of a map of points is given: weights only where there are some."""
    *arrays, weight = arrays_of(points)
    if weight is None:
        return arrays
    if len(inspect.signature(method).parameters) < 4:
        raise DataError(
            f"The feature map {label} reads points without weights. Give its "
            f"{method.__name__} a fourth argument, weight, or leave sample_weight out."
        )
    return *arrays, weight


def one_task(points: Any) -> Any:
    """Return the points of the first task that has some: enough to know the width of a map."""
    if points is None:
        return None
    X, y, offsets, weight = arrays_of(points)
    end = next((int(end) for end in offsets if end > 0), 0)
    first = [None if array is None else array[:end] for array in (y, weight)]
    return X[:end], first[0], np.array([0, end]), first[1]
