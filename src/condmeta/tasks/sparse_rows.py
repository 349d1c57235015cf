"""Sparse rows of X, as tasks hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from condmeta.errors import DataError
from condmeta.persistence.fields import (
    InvalidFieldError,
    either,
    floats,
    integers,
    number,
    sequence,
)
from condmeta.persistence.registry import register


class SparseRows(csr_array):
    """Rows (N, d) in SciPy's compressed form, with a length and `take` as arrays have them."""

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, at: Any, axis: int = 0) -> SparseRows:
        """Return the rows at these positions."""
        return self[at]

    def times(self, scale: Any) -> SparseRows:
        """Return the columns, each times its scale (d,)."""
        return SparseRows((self.data * scale[self.indices], self.indices, self.indptr), self.shape)

    def with_ones(self) -> SparseRows:
        """Return the rows with a column of ones at the end."""
        n, d = self.shape
        at = self.indptr[1:]
        data, indices = np.insert(self.data, at, 1.0), np.insert(self.indices, at, d)
        return SparseRows((data, indices, self.indptr + np.arange(n + 1)), (n, d + 1))

    def largest(self) -> np.ndarray:
        """Return the largest absolute value of each column (d,)."""
        found = np.zeros(self.shape[1])
        np.maximum.at(found, self.indices, np.abs(self.data))
        return found

    def moments(self, weight: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation (d,) of rows that count weight (N,) times."""
        n = len(self) if weight is None else weight.sum()
        times = np.ones(len(self)) if weight is None else weight
        by_entry = np.repeat(times, np.diff(self.indptr))
        d = self.shape[1]
        mean = np.bincount(self.indices, by_entry * self.data, d) / n
        left = self.data - mean[self.indices]
        there = np.bincount(self.indices, by_entry, d)
        square = np.bincount(self.indices, by_entry * left**2, d) + (n - there) * mean**2
        return mean, np.sqrt(square / n)


def read_sparse(X: Any) -> SparseRows:
    """Return a sparse matrix as rows of float64, entries in order and none twice."""
    if X.dtype.kind not in "fiub":
        raise DataError(f"X is a sparse matrix of {X.dtype}; it must hold real numbers.")
    rows = SparseRows(X, dtype=np.float64)
    rows.sum_duplicates()
    return rows


def _export(rows: SparseRows) -> dict[str, Any]:
    names = "data", "indices", "indptr"
    return {name: getattr(rows, name) for name in names} | {"shape": tuple(map(int, rows.shape))}


def _restore(cls: type, parts: dict[str, Any]) -> SparseRows:
    rows = cls((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))
    rows.check_format(full_check=True)  # a file may hold anything
    return rows


def _entries_exist(state: dict, sizes: dict[str, int]) -> None:
    """Refuse positions outside the rows: compiled code would read beyond the arrays."""
    pointers, (n, d) = state["indptr"], state["shape"]
    if len(pointers) != n + 1 or pointers[0] != 0 or (np.diff(pointers) < 0).any():
        raise InvalidFieldError("indptr", f"must rise from 0, with {n + 1} entries")
    if pointers[-1] != sizes["E"]:
        raise InvalidFieldError("indptr", "must end at the number of entries")
    if state["indices"].max(initial=-1) >= d:
        raise InvalidFieldError("indices", f"must be below {d}")
    sizes["N"], sizes["d"] = n, d


POSITIONS = either(integers("E", low=0), integers("E", low=0, dtype="int32"))
POINTERS = either(integers("P", low=0), integers("P", low=0, dtype="int32"))
register(
    SparseRows,
    export=_export,
    restore=_restore,
    fields={
        "data": floats("E"), "indices": POSITIONS, "indptr": POINTERS,
        "shape": sequence(number(low=0, whole=True), "2"),
    },
    rule=_entries_exist,
)  # fmt: skip
