"""Kernels on sets of points."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np

from condmeta.errors import DataError
from condmeta.kernels.table_kernels import GaussianKernel, Kernel, LaplaceKernel, LinearKernel
from condmeta.persistence import register
from condmeta.persistence.fields import (
    InvalidFieldError,
    either,
    floats,
    instance,
    integers,
    number,
    one_of,
)
from condmeta.tasks.messages import bad_parameter
from condmeta.tasks.splits import task_rows
from condmeta.typing import KernelObject, Numbers

BASE_CLASSES = "LinearKernel", "GaussianKernel", "LaplaceKernel"
BASES = {"linear": LinearKernel, "gaussian": GaussianKernel, "laplace": LaplaceKernel}
_BLOCK_VALUES = 1 << 20  # kernel values of pairs of points held in memory at a time (8 MB)


def _offsets_rise(state: dict, sizes: dict[str, int]) -> None:
    offsets = state["offsets"]
    whole = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == sizes["N"]
    if not whole or (np.diff(offsets) < 0).any():
        raise InvalidFieldError("offsets", "must rise from 0 to the number of points")


@register(fields={"X": floats("N k"), "offsets": integers("T+1")}, rule=_offsets_rise)
class PointSets:
    """Sets of points, one after another.

    Parameters
    ----------
    X : (N, p) array
    offsets : (T+1,) int array
        Set t holds the rows offsets[t] to offsets[t+1].

    Examples
    --------
    >>> sets = PointSets(np.arange(6.0).reshape(3, 2), [0, 1, 3])
    >>> len(sets), sets[[1]].X.tolist()
    (2, [[2.0, 3.0], [4.0, 5.0]])
    """

    def __init__(self, X: np.ndarray, offsets: Numbers):
        self.X = X
        self.offsets = np.asarray(offsets, dtype=np.int64)

    @classmethod
    def of(cls, sets: Iterable[Numbers]) -> Self:
        """Return a sequence of (n, p) arrays as sets."""
        parts = [np.atleast_2d(np.asarray(part, dtype=float)) for part in sets]
        return cls(np.concatenate(parts), np.cumsum([0, *map(len, parts)]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, at: Any) -> Self:
        """Return the sets of a slice, of positions or of a mask."""
        rows, offsets = task_rows(self.offsets, np.atleast_1d(np.arange(len(self))[at]))
        return type(self)(self.X[rows], offsets)

    @property
    def sizes(self) -> np.ndarray:
        """Points of each set (T,)."""
        return np.diff(self.offsets)

    @property
    def present(self) -> np.ndarray:
        """Which sets have points (T,)."""
        return self.sizes > 0

    def concat(self, other: Self) -> Self:
        """Return these sets, then the sets of `other`."""
        X = np.concatenate([self.X, other.X])
        return type(self)(X, np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]]))


class SetKernel(Kernel):
    """A kernel on sets of points."""

    reads_points = True

    def __call__(self, a: Any, b: Any) -> float:
        """Return k(a, b) of two sets, arrays (n, p)."""
        return float(self.gram(PointSets.of([a]), PointSets.of([b]))[0, 0])

    def _check(self, *sets: PointSets) -> None:
        for part in sets:
            if not part.present.all():
                empty = int(np.argmin(part.present))
                raise DataError(f"{type(self).__name__}: set number {empty} has no points.")


@register(fields={"base": either(one_of(*BASES), instance(*BASE_CLASSES))})
class MeanEmbedding(SetKernel):
    """Compare sets by their mean features: k(X, X') = mean over i, j of k0(x_i, x_j').

    Sets may have any size; the order of their points does not matter. With the linear kernel, k is
    the inner product of the two means of points.

    Parameters
    ----------
    base : "gaussian", "linear", "laplace" or a kernel on coordinates
        k0, the kernel of two points.

    Examples
    --------
    >>> round(MeanEmbedding(GaussianKernel(2.0))([[0.0], [2.0]], [[0.0]]), 4)
    0.8033
    """

    def __init__(self, base: Literal["linear", "gaussian", "laplace"] | KernelObject = "gaussian"):
        self.base = base

    def gram(self, A: PointSets, B: PointSets) -> np.ndarray:
        """Return the kernel of T and U sets, as (T, U)."""
        self._check(A, B)
        k0 = self._base()
        out = np.empty((len(A), len(B)))
        for t, (lo, hi) in enumerate(pairwise(A.offsets)):
            edges = B.offsets
            step = max(1, _BLOCK_VALUES // (hi - lo) // max(1, int(B.sizes.max(initial=1))))
            for u in range(0, len(B), step):  # each pair of sets is summed in one piece
                v = min(u + step, len(B))
                values = k0.gram(A.X[lo:hi], B.X[edges[u] : edges[v]])
                out[t, u:v] = np.add.reduceat(values, edges[u:v] - edges[u], axis=1).sum(axis=0)
        return out / np.outer(A.sizes, B.sizes)

    def _base(self) -> Any:
        if isinstance(self.base, str) and self.base in BASES:
            return BASES[self.base]()
        if hasattr(self.base, "gram") and not getattr(self.base, "reads_points", False):
            return self.base
        valid = "'linear', 'gaussian', 'laplace' or a kernel on coordinates"
        raise bad_parameter("base of MeanEmbedding", valid, self.base)


@register(fields={"sigma": number(above=0)})
class AbelKernel(SetKernel):
    """Compare sets point by point, in their order: k(X, X') = exp(-sum_j ||x_j - x_j'|| / sigma).

    The kernel printed in the paper. It compares only sets of equal size, and depends on the order
    of their points. Because it sums over n points, choose sigma of the order of n. `MeanEmbedding`
    has none of these limits.

    Parameters
    ----------
    sigma : float in (0, inf)

    Examples
    --------
    >>> round(AbelKernel(sigma=2.0)([[0.0], [1.0]], [[1.0], [1.0]]), 4)
    0.6065
    """

    one_size = True

    def __init__(self, sigma: float = 1.0):
        self.sigma = sigma

    def gram(self, A: PointSets, B: PointSets) -> np.ndarray:
        """Return the kernel of T and U sets of one size, as (T, U)."""
        self._check(A, B)
        sizes = np.unique(np.concatenate([A.sizes, B.sizes]))
        if len(sizes) > 1:
            raise DataError(
                f"AbelKernel compares sets of one size, and these have {sizes[0]} and {sizes[-1]} "
                "points. Use MeanEmbedding, which takes sets of any size."
            )
        from scipy.spatial.distance import cdist  # slow to import

        n, total = int(sizes[0]), np.zeros((len(A), len(B)))
        for j in range(n):
            total += cdist(A.X[j::n], B.X[j::n])
        return np.exp(-total / self._positive("sigma"))
