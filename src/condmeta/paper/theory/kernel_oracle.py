r"""The best conditioning function in the space of a kernel k(s, s') = <Phi(s), Phi(s')>.

Functions are tau(s) = M Phi(s) + b = sum_j c_j (k(s_j, s) + 1): with kk = k + 1 the pair (M, b) has
the squared norm sum_ij <c_i, c_j> kk(s_i, s_j), the norm of Theorem 2. Over tasks (w_t, s_t) with
probabilities p the functions

    tau_eta = argmin  sum_t p_t ||w_t - tau(s_t)||^2 + eta ||(M, b)||^2,
    c = D (D KK D + eta I)^+ D W,   D = diag(sqrt(p)),  KK_ij = kk(s_i, s_j),

trade variance for norm as well as any function of the space. With eta = 0 it is the best linear
function of the sample, of the least norm. A kernel with many features then reproduces the weights
of every task, so that for an environment eta is chosen, and the variance estimated, on other tasks.
"""

from typing import Any, NamedTuple

import numpy as np

from condmeta.blas_threads import limit_threads
from condmeta.errors import DataError
from condmeta.kernels import PointSets, get_kernel
from condmeta.paper.environments import own
from condmeta.paper.theory.sources import draw, probabilities, weights_of
from condmeta.paper.theory.variance import Estimate, variance
from condmeta.tasks import TaskSet
from condmeta.tasks.splits import make_generator
from condmeta.typing import KernelLike

MAX_TASKS = 1000  # tasks of an environment that a function is a sum over
PENALTIES = np.geomspace(1e-9, 1e1, 21)  # eta, in units of the mean kk(s, s)


class BestKernelMap(NamedTuple):
    """Hold a function tau(s) = sum_j c_j (k(s_j, s) + 1); calling it with tasks returns (T, d).

    Attributes
    ----------
    kernel : kernel
    sides : what the kernel reads of the tasks s_j
    c : (T, d) array
    norm : float
        ||(M, b)||_F, which enters the bound of Theorem 2.
    """

    kernel: KernelLike
    sides: Any
    c: np.ndarray
    norm: float

    def __call__(self, tasks: TaskSet) -> np.ndarray:
        return (self.kernel.gram(kernel_sides(tasks, self.kernel), self.sides) + 1.0) @ self.c

    @property
    def b(self) -> np.ndarray:
        """b (d,): the part that does not depend on s."""
        return self.c.sum(axis=0)


class BestKernel(NamedTuple):
    """Hold the best function in the space of a kernel, and its variance.

    Attributes
    ----------
    map : BestKernelMap
    mean, variance : float
        V(w_rho)^2, and V^2 of the function.
    gap : float
        Their difference.
    error : float
        Standard error of `variance` if tasks were drawn from an environment; otherwise 0.
    penalty : float
        eta, the price of the norm; 0 for a sample.
    w_rho : (d,) array

    Examples
    --------
    >>> import condmeta as cm
    >>> env = cm.environments.Circle(radius=2.0, d=3)
    >>> best = cm.theory.best_linear(env, cm.kernels.GaussianKernel(0.2))
    >>> best.mean, round(best.variance, 1)                    # tau_rho has 3
    (7.0, 3.0)
    """

    map: BestKernelMap
    mean: float
    variance: float
    gap: float
    error: float
    penalty: float
    w_rho: np.ndarray

    @property
    def min_norm(self) -> BestKernelMap:
        """The same function: among equal ones it has the smallest norm."""
        return self.map


def is_kernel(Phi: Any) -> bool:
    """Return whether the argument of a theory function is a kernel and not a feature map."""
    return not isinstance(Phi, type) and hasattr(Phi, "gram")


def kernel_sides(tasks: Any, kernel: Any) -> Any:
    """Return what a kernel reads of tasks: the numbers of their side table, or their points."""
    if not isinstance(tasks, TaskSet):
        raise DataError("A kernel reads the side information of tasks: give a SampledTaskSet.")
    if getattr(kernel, "reads_points", False):
        return PointSets(tasks.X, tasks.offsets)
    if tasks.side is None:
        raise DataError(
            f"{type(kernel).__name__} reads a side table, which these tasks do not have. Kernels "
            "on sets of points are MeanEmbedding and AbelKernel."
        )
    return tasks.side.take(tasks.ids).numeric()


def kernel_diagonal(tasks: TaskSet, kernel: Any) -> np.ndarray:
    """Return k(s, s) of each task, (T,)."""
    sides = kernel_sides(tasks, kernel)
    return np.array(
        [kernel.gram(one, one)[0, 0] for one in (sides[[t]] for t in range(len(tasks)))]
    )


class KernelPath:
    """The functions tau_eta of a sample of tasks, from one eigendecomposition."""

    def __init__(self, tasks: TaskSet, kernel: Any, p: Any = None):
        self.kernel, self.sides = kernel, kernel_sides(tasks, kernel)
        W = weights_of(tasks)
        self.root = np.sqrt(probabilities(p, len(W)))[:, None]
        K = kernel.gram(self.sides, self.sides) + 1.0
        self.size = float(self.root[:, 0] ** 2 @ np.diag(K))
        with limit_threads(1):  # on a busy machine threads of BLAS would wait for each other
            values, self.vectors = np.linalg.eigh(self.root * ((K + K.T) / 2) * self.root.T)
        self.values = np.where(values > 1e-12 * max(values.max(), 1e-300), values, 0.0)
        self.projected = self.vectors.T @ (self.root * W)

    def at(self, penalty: float) -> BestKernelMap:
        """Return tau_eta."""
        total = self.values + penalty
        scaled = np.divide(1.0, total, out=np.zeros_like(total), where=self.values > 0)
        along = scaled[:, None] * self.projected
        norm = float(np.sqrt((self.values[:, None] * along**2).sum()))
        return BestKernelMap(self.kernel, self.sides, self.root * (self.vectors @ along), norm)


def best_of_sample(tasks: Any, kernel: Any, p: Any) -> BestKernel:
    """Return the best function of a sample of tasks with known weights."""
    kernel = get_kernel(kernel)
    best = KernelPath(tasks, kernel, p).at(0.0)
    mean = variance(tasks, "mean", p=p).value
    least = variance(tasks, best, p=p).value
    w_rho = probabilities(p, len(tasks)) @ weights_of(tasks)
    return BestKernel(best, mean, least, mean - least, 0.0, 0.0, w_rho)


def environment_path(
    environment: Any, kernel: Any, n_tasks: int, random_state: Any
) -> list[tuple[BestKernelMap, Estimate, float]]:
    """Return functions of an environment, each with its variance on other tasks and its eta."""
    kernel, rng = get_kernel(kernel), make_generator(random_state)
    count, seeds = min(n_tasks, MAX_TASKS), rng.integers(2**31, size=2)
    path = KernelPath(draw(environment, count, seeds[0]), kernel)
    etas = path.size * PENALTIES
    functions = [path.at(eta) for eta in etas]
    shared = {"n_tasks": count, "random_state": int(seeds[1])}  # the same tasks for all
    found = [variance(environment, one, **shared) for one in functions]
    return list(zip(functions, found, etas.tolist(), strict=True))


def best_of_environment(
    environment: Any, kernel: Any, n_tasks: int, random_state: Any
) -> BestKernel:
    """Return the best function of an environment: a sum over drawn tasks, judged on others."""
    path = environment_path(environment, kernel, n_tasks, random_state)
    best, _, eta = min(path, key=lambda step: step[1].value)
    # The one of least variance was chosen on these tasks: its variance comes from further ones.
    seed = int(make_generator(random_state).integers(2**31, size=3)[2])
    least = variance(environment, best, n_tasks=min(n_tasks, MAX_TASKS), random_state=seed)
    mean = variance(environment, "mean", n_tasks=n_tasks, random_state=random_state).value
    w_rho = np.asarray(_mean_weights(environment, n_tasks, random_state))
    return BestKernel(best, mean, least.value, mean - least.value, least.error, eta, w_rho)


def _mean_weights(environment: Any, n_tasks: int, random_state: Any) -> np.ndarray:
    if hasattr(environment, "w_rho"):
        return own.mean_weights(environment)
    return weights_of(draw(environment, n_tasks, random_state)).mean(axis=0)
