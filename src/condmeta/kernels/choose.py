"""Resolve the `kernel` parameter, and check kernels that users bring."""

from __future__ import annotations

from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.kernels.own import FunctionKernel, PrecomputedKernel
from condmeta.kernels.set_kernels import BASES
from condmeta.tasks.ids import show_id

TOLERANCE = 1e-6  # of the largest value, or eigenvalue: room for tables written with six digits
SAMPLE = 50  # tasks whose pairs are looked at


def get_kernel(kernel: Any) -> Any:
    """Return the kernel of a name, a kernel itself, or a function of two rows as a kernel.

    Examples
    --------
    >>> get_kernel("gaussian")
    GaussianKernel(lengthscale=1.0)
    """
    if isinstance(kernel, str) and kernel in BASES:
        return BASES[kernel]()
    if isinstance(kernel, str) and kernel == "precomputed":
        return PrecomputedKernel()
    if not isinstance(kernel, (str, type)) and hasattr(kernel, "gram"):
        return kernel
    if callable(kernel) and not isinstance(kernel, type):
        return FunctionKernel(kernel)
    raise DataError(
        "The 'kernel' parameter must be 'linear', 'gaussian', 'laplace', 'precomputed', a kernel "
        f"of condmeta.kernels or a function of two rows. Got {kernel!r} instead."
    )


def check_kernel(kernel: Any, sides: Any, ids: Any = None) -> None:
    """Say so when a kernel is not finite, symmetric and positive semi-definite on given tasks.

    Up to 50 tasks, evenly spread, are looked at. Symmetric: differences of at most 1e-6 of the
    largest value. Positive semi-definite: no eigenvalue below -1e-6 of the largest.

    Parameters
    ----------
    kernel : name, kernel or function of two rows
    sides : (T, p) array, `PointSets` or `GramRows`
    ids : (T,) array, optional
        What errors call the tasks; by default their positions.

    Examples
    --------
    >>> check_kernel(lambda a, b: float(a @ b), np.eye(3))
    >>> check_kernel(lambda a, b: -float(a @ b), np.eye(3))
    Traceback (most recent call last):
    condmeta.errors.DataError: The kernel is not positive semi-definite: on 3 tasks its smallest
    eigenvalue is -1, its largest -1.
    """
    kernel = get_kernel(kernel)

    def name(t) -> str:
        return str(t) if ids is None else show_id(ids[t])

    spread = np.unique(np.linspace(0, len(sides) - 1, min(SAMPLE, len(sides))).astype(int))
    sample = sides[spread]
    K = np.asarray(kernel.gram(sample, sample), dtype=float)
    if K.shape != (len(spread), len(spread)):
        raise DataError(
            f"The kernel gave values of shape {K.shape} for {len(spread)} tasks, expected "
            f"({len(spread)}, {len(spread)})."
        )
    if not np.isfinite(K).all():
        i, j = np.argwhere(~np.isfinite(K))[0]
        raise DataError(
            f"The kernel gave {K[i, j]} for the tasks {name(spread[i])} and {name(spread[j])}."
        )
    skew = np.abs(K - K.T)
    if skew.max(initial=0.0) > TOLERANCE * np.abs(K).max(initial=0.0):
        i, j = np.unravel_index(np.argmax(skew), skew.shape)
        raise DataError(
            f"The kernel is not symmetric: tasks {name(spread[i])} and {name(spread[j])} give "
            f"{K[i, j]:g} and, in the other order, {K[j, i]:g}."
        )
    eigenvalues = np.linalg.eigvalsh((K + K.T) / 2)
    if eigenvalues[0] < -TOLERANCE * np.abs(eigenvalues).max():
        raise DataError(
            f"The kernel is not positive semi-definite: on {len(spread)} tasks its smallest "
            f"eigenvalue is {eigenvalues[0]:g}, its largest {eigenvalues[-1]:g}."
        )
