"""Algorithm 1 by kernel evaluations as a scikit-learn estimator."""

from __future__ import annotations

import numpy as np

from condmeta.errors import DataError
from condmeta.estimators.base import Learner, Prepared
from condmeta.estimators.kernel_map import KernelTau
from condmeta.estimators.kernel_sides import GramReader, SetReader, has_side, join_sides
from condmeta.estimators.meta_steps import MetaSteps
from condmeta.estimators.streaming import Streamed
from condmeta.estimators.targets import RealTarget
from condmeta.feature_maps import ComposedMap
from condmeta.inner.algorithms import Batch, Online
from condmeta.kernels import PrecomputedKernel, check_kernel, get_kernel
from condmeta.meta.kernel_sgd import (
    KernelMap,
    KernelState,
    kernel_pass,
    kernel_steps,
    task_weights,
)


class KernelConditionalSGDRegressor(RealTarget, KernelTau, Streamed, MetaSteps, Learner):
    r"""Learn where a task's linear model starts, by Algorithm 1 in its kernel form.

    Over the tasks t = 1, 2, ... with points Z_t and side information s_t,

        theta_t = -meta_step sum_{j<t} (k(s_j, s_t) + 1) g_j,
        g_t     = -lam (A(theta_t, Z_t) - theta_t),
        tau(s)  = sum_j c_j (k(s_j, s) + 1) g_j,    c_j = -meta_step (T - j) / T.

    It is `ConditionalSGDRegressor` on the features of the kernel, which are never written out and
    may be infinitely many. T tasks cost T^2 / 2 kernel evaluations, a prediction T.

    Parameters
    ----------
    kernel : "gaussian", "linear", "laplace", "precomputed", a kernel, or a function k(a, b)
        See `condmeta.kernels`. A function reads two rows of the encoded side table, and is checked
        to be symmetric and positive semi-definite on up to 50 tasks (to 1e-6). With "precomputed"
        side_info holds the kernel values: a row for each task, a column for each training task,
        named like it. Kernels on sets (`MeanEmbedding`, `AbelKernel`) read a task's points.
    feature_map : "auto", a map, a transformer, or a list of them
        How the side table becomes the coordinates that the kernel reads. Without any side
        information tau is b, the same for all tasks.
    loss, inner, lam, meta_step, conditioning, scale, fit_intercept, task_column, side_columns,
    side_key, keep_tasks, tol, n_jobs
        As for `ConditionalSGDRegressor`.
    averaging : "uniform" (mean of tau_1..tau_T), "linear" (weights t) or "last" (tau_{T+1})
    missing_side : "error" or "mean"
        What to do for a task without a side row: say so, or start it at `theta_mean_`; the map is
        then learned from the other tasks. The same holds, always, for a task without points where
        the kernel reads points.

    Attributes
    ----------
    b_ : (width,) array in the learner's units
    norm_ : float, ||(M, b)||_F in the learner's units
    theta_mean_ : mean of tau over the training tasks, user's units
    n_tasks_, n_features_in_, feature_names_in_, side_features_, y_offset_, gap_

    References
    ----------
    Denevi, Pontil, Ciliberto: The Advantage of Conditional Meta-Learning for Biased Regularization
    and Fine-Tuning, Algorithm 1 and its kernel form.

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> X = np.array([[1., 0], [0, 1], [1, 1], [1, -1], [2, 0], [0, 1]])
    >>> side = cm.TaskTable([[1., 0], [0, 2], [1, 1]], ids=["a", "b", "c"])
    >>> learner = cm.KernelConditionalSGDRegressor(
    ...     "linear", feature_map=cm.feature_maps.Identity(), lam=0.5, meta_step=0.25)
    >>> learner = learner.fit(X, [1, 2, 3, -1, 1, 4], task=list("aabbcc"), side_info=side)
    >>> learner.theta_for([1.0, 2.0]).round(4)
    array([0.1667, 0.5833])
    """

    def __init__(
        self,
        kernel="gaussian",
        *,
        feature_map="auto",
        loss="absolute",
        inner="online",
        lam=1.0,
        meta_step=0.1,
        averaging="uniform",
        conditioning="shared",
        scale="none",
        fit_intercept=False,
        missing_side="error",
        task_column=None,
        side_columns=None,
        side_key=None,
        keep_tasks=True,
        tol=1e-6,
        n_jobs=None,
    ):
        self.kernel = kernel
        self.feature_map = feature_map
        self.loss = loss
        self.inner = inner
        self.lam = lam
        self.meta_step = meta_step
        self.averaging = averaging
        self.conditioning = conditioning
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.missing_side = missing_side
        self.task_column = task_column
        self.side_columns = side_columns
        self.side_key = side_key
        self.keep_tasks = keep_tasks
        self.tol = tol
        self.n_jobs = n_jobs

    def _make_map(self):
        kernel = get_kernel(self.kernel)
        if getattr(kernel, "reads_points", False):
            reader = SetReader()
        elif isinstance(kernel, PrecomputedKernel):
            reader = GramReader()
        else:
            return ComposedMap(self.feature_map)
        if self.feature_map not in ("auto", None):
            raise DataError(
                f"The kernel {self.kernel!r} does not read the features of 'feature_map'. Leave it "
                "at 'auto'."
            )
        return reader

    def _freeze(self, tasks, points) -> None:
        super()._freeze(tasks, points)
        self._choose_kernel()
        if isinstance(self._map, GramReader):
            self._map.require_square(tasks)

    def _advance(self, state: KernelState | None, data: Prepared) -> None:
        """Run the tasks through Algorithm 1, after those of `state`, and set the map."""
        data = _with_sides(data)
        if state is None and not len(data.ids) and self._map.reads_points:
            raise DataError(
                "No task has points to condition on, which the kernel reads. With "
                "conditioning='split' a task needs two."
            )
        inner, kernel, step = self._inner, self._kernel, self._meta_step()
        if state is None and getattr(kernel, "native", None) is None and len(data.ids):
            check_kernel(kernel, data.Phi, data.ids)
        start = 0 if state is None else len(state.sides)
        sides = data.Phi if state is None else join_sides(state.sides, data.Phi)
        gradients = np.zeros((start + len(data.ids), data.X.shape[1]))
        if state is not None:
            gradients[:start] = state.gradients
        tasks = sides, gradients, start, data.X, data.y, data.offsets, kernel
        if isinstance(inner, (Online, Batch)):
            is_batch = isinstance(inner, Batch)
            tol = inner.tol if is_batch else 0.0
            bad = kernel_pass(*tasks, inner.lam, inner.loss, step, is_batch, tol)
        else:
            bad = kernel_steps(*tasks, lambda *task: inner.solve(*task)[1], step)

        def theta(count):
            c = task_weights(count, step, "last")[:, None]
            return lambda: self._tau(data.Phi, KernelMap(sides[:count], c * gradients[:count]))

        self._refuse_divergence(bad, data, theta(start), theta(len(gradients)))
        self._set_state(KernelState(sides, gradients))
        self.__dict__.pop("_theta_mean", None)


def _with_sides(data: Prepared) -> Prepared:
    """Return the tasks that have what the kernel reads: the others cannot teach the map."""
    here = has_side(data.Phi)
    if here.all():
        return data
    sizes = np.diff(data.offsets)
    rows = np.repeat(here, sizes)
    return Prepared(
        data.ids[here], data.X[rows], data.y[rows],
        np.concatenate([[0], np.cumsum(sizes[here])]), data.Phi[here],
    )  # fmt: skip
