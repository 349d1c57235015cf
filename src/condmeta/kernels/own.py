"""The user's own kernels: a function of two rows, or precomputed values."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from condmeta.errors import DataError
from condmeta.kernels.table_kernels import Kernel
from condmeta.persistence import register
from condmeta.persistence.fields import InvalidFieldError, floats, integers


class FunctionKernel(Kernel):
    """A kernel given by a function k(a, b) of two rows.

    Examples
    --------
    >>> FunctionKernel(lambda a, b: min(a[0], b[0])).gram(np.array([[1.0], [3.0]]), [[2.0]])
    array([[1.],
           [2.]])
    """

    def __init__(self, function: Callable):
        self.function = function

    def gram(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return the values of all pairs; a value that is not a finite number is a DataError."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        values = [self.function(a, b) for a in A for b in B]
        try:
            out = np.array(values, dtype=float)
        except (TypeError, ValueError):
            out = np.empty((0, 0))
        if out.ndim > 1:
            rule = f"The kernel {name} must return one number for two rows"
            raise DataError(f"{rule}. Got {values[0]!r} instead.")
        out = out.reshape(len(A), len(B))
        if not np.isfinite(out).all():
            i, j = np.argwhere(~np.isfinite(out))[0]
            raise DataError(
                f"The kernel {name} gave {out[i, j]} for the rows "
                f"{np.asarray(A[i]).tolist()} and {np.asarray(B[j]).tolist()}."
            )
        return out


def _columns_exist(state: dict, sizes: dict[str, int]) -> None:
    if state["own"].max(initial=-1) >= sizes["k"]:
        raise InvalidFieldError("own", "must be columns of the values")


@register(
    fields={"values": floats("T k", nan=True), "own": integers("T", low=-1)}, rule=_columns_exist
)
class GramRows:
    """Rows of a matrix of kernel values, and the column of each row's own task.

    Parameters
    ----------
    values : (T, m) array
        Kernel values with m known tasks; NaN in the rows of tasks without values.
    own : (T,) int array
        The column of the row's own task, -1 for a task without a column.

    Examples
    --------
    >>> rows = GramRows(np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([0, 1]))
    >>> len(rows[:1]), rows.present.tolist()
    (1, [True, True])
    """

    def __init__(self, values: np.ndarray, own: np.ndarray):
        self.values, self.own = values, own

    def __len__(self) -> int:
        return len(self.own)

    def __getitem__(self, at: Any) -> Self:
        return type(self)(self.values[at], self.own[at])

    @property
    def present(self) -> np.ndarray:
        """Which tasks have values (T,)."""
        return ~np.isnan(self.values).any(axis=1)

    def concat(self, other: Self) -> Self:
        """Return these rows, then the rows of `other`."""
        values = np.concatenate([self.values, other.values])
        return type(self)(values, np.concatenate([self.own, other.own]))


@register(fields={})
class PrecomputedKernel(Kernel):
    """Look kernel values up in `GramRows`: the kernel of ``kernel="precomputed"``.

    Examples
    --------
    >>> rows = GramRows(np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([0, 1]))
    >>> PrecomputedKernel().gram(rows, rows[1:])
    array([[0.5],
           [1. ]])
    """

    def gram(self, A: GramRows, B: GramRows) -> np.ndarray:
        """Return the columns of B's tasks in the rows of A."""
        return A.values[:, B.own]
