"""Row-aligned offsets: what a model of the user's own says of each row."""

from __future__ import annotations

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.frames import as_vector


def read_offset(offset, n_rows: int) -> np.ndarray:
    """Return an offset (N,) as finite numbers, or say what is wrong with it."""
    values = as_vector(np.asarray(offset))
    if values.shape != (n_rows,):
        raise DataError(f"offset has shape {values.shape}, expected one number for {n_rows} rows.")
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values)))
        raise DataError(f"offset holds {values[row]} in row {row}: it must be finite.")
    return values


def take_off(y, offset):
    """Return y - offset, or y as it is without one."""
    if offset is None:
        return y
    if y is None:
        raise DataError("An offset goes with y: a TaskSet carries its own target, take it off y.")
    y = as_vector(np.asarray(y))
    return y - read_offset(offset, len(y))
