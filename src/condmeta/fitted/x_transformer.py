"""A transformer of X: fit it, and check the rows that it gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from condmeta.errors import DataError
from condmeta.fitted.splines import Splines


def fit_transformer(named: Any, X, weight=None) -> Any:
    """Return a fitted transformer of rows X (N, d), which count weight (N,) times.

    `named` is None, "splines", or a transformer: a copy of it is fitted, and gets the weights if
    its `fit` takes them.
    """
    if named is None:
        return None
    if isinstance(named, str):
        return Splines.learn(X, weight)
    knows = weight is not None and has_fit_parameter(named, "sample_weight")
    return clone(named).fit(X, **({"sample_weight": weight} if knows else {}))


def checked_rows(rows, n: int) -> np.ndarray:
    """Return the output of a transformer as finite numbers, or raise."""
    rows = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
    if rows.ndim != 2 or len(rows) != n or rows.dtype.kind not in "fiub":
        raise DataError(
            f"The 'x_transform' gave an array of shape {rows.shape} and type {rows.dtype}, "
            f"expected numbers of shape ({n}, d)."
        )
    if not np.isfinite(rows).all():
        row = int(np.argmax(~np.isfinite(rows).all(axis=1)))
        raise DataError(f"The 'x_transform' gave NaN or infinity in row {row}.")
    return np.ascontiguousarray(rows, dtype=np.float64)
