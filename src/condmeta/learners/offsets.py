"""Offsets of labels and exposures of counts: a model that was fitted with one needs it always."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.fitted import Fitted
from condmeta.tasks.arrays import as_vector
from condmeta.typing import Values


def read_offset(offset: Any, n_rows: int) -> np.ndarray:
    """Return an offset (N,) as finite numbers, or raise; one number is that of all rows."""
    if np.ndim(offset) == 0 and isinstance(offset, Real):
        offset = np.full(n_rows, float(offset))
    values = as_vector(offset, "offset")
    if values.shape != (n_rows,):
        raise DataError(f"offset has shape {values.shape}, expected one number for {n_rows} rows.")
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values)))
        raise DataError(f"offset holds {values[row]} in row {row}: it must be finite.")
    return values


def minus_offset(y: Values, offset: Any):
    """Return y - offset, or y unchanged without one."""
    if is_zero(offset):
        return y
    if y is None:
        raise DataError(
            "offset= works only with X and y. From the target of a TaskSet, subtract it yourself."
        )
    y = as_vector(y)
    return y - read_offset(offset, len(y))


def is_zero(offset: Any) -> bool:
    """Return whether an offset changes nothing: None, or the number 0."""
    return offset is None or (isinstance(offset, Real) and offset == 0)


def remember_offset(fitted: Fitted, offset: Any) -> Fitted:
    """Return a value that knows whether it was learned with an offset."""
    return fitted if is_zero(offset) else fitted._replace(info=fitted.info | {"offset": True})


def require_offset(fitted: Fitted | None, offset: Any) -> None:
    """Raise if a model that was fitted with an offset is called without one."""
    refuse_forgotten(fitted is not None and bool(fitted.info.get("offset")), offset)


def refuse_forgotten(with_offset: bool, offset: Any) -> None:
    """Raise if there is no offset, and the model was fitted with one."""
    if offset is None and with_offset:
        raise DataError(
            "The model was fitted with an offset: give offset= here as well, one number for each "
            "row, or offset=0 for rows without one."
        )


def require_exposure(fitted: Fitted | None, exposure: Any) -> None:
    """Raise if a model that was fitted with an exposure is called without one."""
    if exposure is None and fitted is not None and fitted.info.get("exposure"):
        raise DataError(
            "The model was fitted with an exposure: give exposure= here as well, one number for "
            "each row, or exposure=1 for counts in one unit of exposure."
        )


def read_exposure(exposure: Any, n_rows: int) -> np.ndarray:
    """Return exposures (N,) as finite numbers of at least 0; one number is that of all rows."""
    if np.ndim(exposure) == 0 and isinstance(exposure, Real):
        exposure = np.full(n_rows, float(exposure))
    values = as_vector(exposure, "exposure")
    if values.shape != (n_rows,):
        raise DataError(f"X has {n_rows} rows and exposure has {len(values)}.")
    good = (values >= 0) & (values < np.inf)
    if not good.all():
        row = int(np.argmin(good))
        raise DataError(
            f"Row {row} has exposure {values[row]:g}: it must be a finite number of at least 0."
        )
    return values
