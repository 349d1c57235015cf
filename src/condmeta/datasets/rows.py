"""What the data sets share: the options for their rows."""

from __future__ import annotations

import numpy as np

from condmeta.errors import DataError


def scale_rows(X: np.ndarray, scale: str, owner: str) -> np.ndarray:
    """Return X (N, d) as it is ("none") or with rows of unit norm ("rows"; zero rows stay)."""
    if scale == "none":
        return X
    if scale == "rows":
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        return X / np.where(norms > 0, norms, 1.0)
    raise DataError(
        f"The 'scale' parameter of {owner} must be 'none' or 'rows'. Got {scale!r} instead."
    )
