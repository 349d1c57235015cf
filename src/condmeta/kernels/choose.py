"""The `kernel` parameter, and a check of the user's own kernels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.kernels.own import FunctionKernel, GramRows, PrecomputedKernel
from condmeta.kernels.set_kernels import BASES, PointSets
from condmeta.kernels.table_kernels import Kernel
from condmeta.tasks.messages import bad_parameter, show_id
from condmeta.typing import KernelLike, TaskId

TOLERANCE = 1e-6  # of the largest value or eigenvalue: kernel values may be rounded to six digits
SAMPLE = 50  # tasks in the check; all their pairs are evaluated


def get_kernel(kernel: KernelLike) -> Kernel:
    """Return the kernel for a name, a kernel object or a function of two rows.

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
    valid = "'linear', 'gaussian', 'laplace', 'precomputed', a kernel of condmeta.kernels or a"
    raise bad_parameter("kernel", f"{valid} function of two rows", kernel)


def check_kernel(
    kernel: KernelLike,
    sides: np.ndarray | PointSets | GramRows,
    ids: Sequence[TaskId] | np.ndarray | None = None,
) -> None:
    """Raise a DataError unless a kernel is finite, symmetric and positive semi-definite.

    Up to 50 of the given tasks, evenly spread, are checked. Symmetric: k(a, b) and k(b, a) differ
    by at most 1e-6 of the largest value. Positive semi-definite: no eigenvalue is below -1e-6 times
    the largest.

    Parameters
    ----------
    kernel : name, kernel or function of two rows
    sides : (T, p) array, `PointSets` or `GramRows`
    ids : (T,) array, optional
        Names of the tasks in errors; by default their positions.

    Examples
    --------
    >>> check_kernel(lambda a, b: float(a @ b), np.eye(3))
    >>> check_kernel(lambda a, b: -float(a @ b), np.eye(3))
    Traceback (most recent call last):
    condmeta.errors.DataError: The kernel is not positive semi-definite: on 3 tasks its smallest
    eigenvalue is -1, its largest -1.
    """
    kernel = get_kernel(kernel)

    def name(t: Any) -> str:
        return str(t) if ids is None else show_id(ids[t])

    spread = np.unique(np.linspace(0, len(sides) - 1, min(SAMPLE, len(sides))).astype(int))
    sample = sides[spread]
    K = np.asarray(kernel.gram(sample, sample), dtype=float)
    if K.shape != (len(spread), len(spread)):
        gave = f"The kernel gave values of shape {K.shape} for {len(spread)} tasks"
        raise DataError(f"{gave}, expected ({len(spread)}, {len(spread)}).")
    if not np.isfinite(K).all():
        i, j = np.argwhere(~np.isfinite(K))[0]
        pair = f"{name(spread[i])} and {name(spread[j])}"
        raise DataError(f"The kernel gave {K[i, j]} for the tasks {pair}.")
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
