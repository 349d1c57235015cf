"""R and K of the bounds: the norms of inputs and features."""

from typing import Any, Literal, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.paper.theory.kernel_oracle import is_kernel, kernel_diagonal
from condmeta.paper.theory.sources import features_of
from condmeta.tasks import TaskSet
from condmeta.typing import FeatureMapLike, KernelLike, Numbers


class Radii(NamedTuple):
    """Hold R, the norm of the inputs, and K, the norm of the features.

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.TaskSet.from_arrays([[3.0, 4.0], [0.0, 1.0]], [0, 0], task=["a", "b"])
    >>> cm.theory.radii(tasks, how="max")
    Radii(R=5.0, K=0.0)
    """

    R: float
    K: float


def radii(
    tasks: TaskSet,
    Phi: FeatureMapLike | KernelLike | Numbers = None,
    *,
    how: Literal["rms", "max"] = "rms",
) -> Radii:
    """Return R and K of some tasks.

    Parameters
    ----------
    tasks : TaskSet
        Tasks without points are ignored.
    Phi : array (T, k), feature map, kernel or None
        As in `best_linear`; ||Phi(s)||^2 of a kernel is k(s, s).
    how : {"rms", "max"}
        "max" returns the largest norms, as in the paper's assumptions. "rms" returns root mean
        squares: R^2 = E||x||^2 and R^2 (K^2 + 1) = E[||x||^2 (||Phi||^2 + 1)], where E is the mean
        over tasks of the mean over their points. The bounds hold with both, because they are on
        expectations; Gaussian inputs have a root mean square but no largest norm.

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.TaskSet.from_arrays([[3.0, 4.0], [0.0, 1.0]], [0, 0], task=["a", "b"])
    >>> [round(float(radius), 6) for radius in cm.theory.radii(tasks, [[1.0], [0.0]])]
    [3.605551, 0.980581]
    """
    if how not in ("rms", "max"):
        raise DataError(f"how must be 'rms' or 'max'. Got {how!r} instead.")
    busy = tasks.sizes > 0
    if not busy.any():
        raise DataError("radii needs at least one task with points.")
    squares = np.einsum("ij,ij->i", tasks.X, tasks.X)
    of_phi = _squared_norms(tasks, Phi)[busy]
    if how == "max":
        return Radii(float(np.sqrt(squares.max())), float(np.sqrt(of_phi.max())))
    means = np.add.reduceat(squares, tasks.offsets[:-1][busy]) / tasks.sizes[busy]
    R2 = float(means.mean())
    if R2 == 0:
        return Radii(0.0, float(np.sqrt(of_phi.max())))
    return Radii(float(np.sqrt(R2)), float(np.sqrt((means * of_phi).mean() / R2)))


def _squared_norms(tasks: TaskSet, Phi: Any) -> np.ndarray:
    """Return ||Phi(s)||^2 of each task, (T,)."""
    if is_kernel(Phi):
        return kernel_diagonal(tasks, Phi)
    features = features_of(tasks, Phi, len(tasks))
    return np.einsum("tk,tk->t", features, features)
