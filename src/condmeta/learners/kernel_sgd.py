"""Algorithm 1 by kernel evaluations as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, NoReturn, Self

import numpy as np

from condmeta import persistence
from condmeta.errors import DataError
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.starts import features
from condmeta.fitted.tau import KernelTau
from condmeta.inner.algorithms import Batch, Online, get_inner, solve_one
from condmeta.kernels import check_kernel
from condmeta.kernels.side_readers import has_side, join_sides
from condmeta.learners.divergence import refuse_divergence
from condmeta.learners.model_file import storable
from condmeta.learners.parameters import jobs_of
from condmeta.learners.side_inputs import read_sides
from condmeta.learners.streams import StreamLearner, partial_fit
from condmeta.learners.targets import Regressor
from condmeta.learners.training import Learned, Training
from condmeta.meta.kernel_sgd import (
    kernel_pass,
    kernel_steps,
    kernel_theta,
    learning_curve,
    task_weights,
)
from condmeta.typing import (
    Averaging,
    Conditioning,
    FeatureMapLike,
    InnerLike,
    KernelLike,
    LossLike,
    MissingSide,
    PathLike,
    Scale,
    SideInfo,
)


@storable
@dataclass(eq=False, repr=False)
class KernelConditionalSGDRegressor(Regressor, StreamLearner):
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
    loss : "absolute", "squared", "huber", "pinball", "epsilon_insensitive", or a loss object
        The loss that the model of a task minimises: see `condmeta.losses`. An object of your own
        needs `value` and `slope`.
    inner : "online", "batch" or an object with `solve(theta, X, y)`
        How a task with points Z is solved from its start theta, A(theta, Z): "online" makes one
        pass over the points (with one point the result is theta), "batch" finds the exact
        minimiser.
    lam : float in (0, inf)
        The paper's lambda: mean loss + lam/2 ||w - theta||^2.
    meta_step : float in (0, inf)
        The paper's gamma, the step of the map for each task.
    conditioning : "shared" or "split"
        For feature maps that read the points of a task. "shared": the same points give the features
        and train the task. "split": the first half gives the features, the rest trains. The paper's
        guarantees need "split", or side information from elsewhere.
    scale : "none", "standard" or "rows"
        How features are scaled: not at all, by mean and standard deviation over all rows, or every
        row to norm 1. Coefficients are given in the user's units.
    fit_intercept : bool
        Whether models have an intercept. It is one more entry of w and theta, regularised like the
        others.
    task_column : str or list of str, optional
        The column, or columns, of a frame X that hold the task ids.
    side_columns : str or list of str, optional
        Columns of a frame X that hold side information, constant within a task.
    side_key : str or list of str, optional
        Key columns of the side table, if they are not named like the task column.
    keep_tasks : bool
        Whether `fit` keeps the models of its tasks. If not, every task is new to `predict`.
    tol : float
        With inner="batch", the duality gap of a task is at most tol times its mean loss at theta.
    n_jobs : int, optional
        Number of threads that share the tasks; -1 uses all cores.
    averaging : "uniform" (mean of tau_1..tau_T), "linear" (weights t) or "last" (tau_{T+1})
        Which function is learned: an average of the iterates, or the last one.
    missing_side : "error" or "mean"
        What to do with a task that has no side row: raise an error, or start it at `theta_mean_`
        and learn the map from the other tasks. If the kernel reads points, a task without points
        always starts at `theta_mean_`.

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

    kernel: KernelLike = "gaussian"
    _: KW_ONLY
    feature_map: FeatureMapLike = "auto"
    loss: LossLike = "absolute"
    inner: InnerLike = "online"
    lam: float = 1.0
    meta_step: float = 0.1
    averaging: Averaging = "uniform"
    conditioning: Conditioning = "shared"
    scale: Scale = "none"
    fit_intercept: bool = False
    missing_side: MissingSide = "error"
    tol: float = 1e-6

    partial_fit = partial_fit

    def _learn(self, data: Training, before: Fitted | None = None) -> Learned:
        """Run the tasks through Algorithm 1, after those of the value before."""
        data = _with_sides(data)
        step, tau = float(self.meta_step), None if before is None else require_gradients(before)
        kernel = data.kernel if tau is None else tau.kernel
        inner = get_inner(self.inner, self.lam, self.loss, self.tol)
        X, y, offsets, _ = data.rows
        sides, start = data.Phi, 0
        if tau is None:
            _check_first(data, kernel)
        else:
            sides, start = join_sides(tau.sides, data.Phi), len(tau.sides)
        gradients = np.zeros((start + len(data.ids), X.shape[1]))
        if tau is not None:
            gradients[:start] = tau.gradients
        tasks = sides, gradients, start, X, y, offsets, kernel
        if isinstance(inner, (Online, Batch)):
            is_batch = isinstance(inner, Batch)
            tol = inner.tol if is_batch else 0.0
            bad = kernel_pass(*tasks, inner.lam, inner.loss, step, is_batch, tol)
        else:
            bad = kernel_steps(*tasks, lambda *task: solve_one(inner, *task)[1], step)

        def theta(count: int):
            c = task_weights(count, step, "last")[:, None]
            how = sides[:count], c * gradients[:count], kernel, jobs_of(self)
            return lambda: kernel_theta(data.Phi, *how)

        refuse_divergence(bad, data, inner, step, theta(start), theta(len(gradients)))
        c = task_weights(len(sides), step, self.averaging)
        return Learned(KernelTau(kernel, sides, c[:, None] * gradients, gradients), inner)

    @property
    def M_(self) -> NoReturn:  # noqa: N802
        """A kernel learner has no M: its features are never written out."""
        raise AttributeError(_no_matrix("M_"))

    @property
    def M_frame(self) -> NoReturn:  # noqa: N802
        """A kernel learner has no M: its features are never written out."""
        raise AttributeError(_no_matrix("M_frame"))

    @property
    def norm_(self) -> float:
        """||(M, b)||_F of the map in the learner's units, by kernel evaluations."""
        return self.fitted_.tau.norm(jobs_of(self))

    def learning_curve(self, side_info: SideInfo = None) -> Iterator[np.ndarray]:
        """Iterate over tau(s) as it was learned from the first 1, 2, ..., T training tasks.

        The whole curve costs one kernel evaluation for each pair of a training task and a task of
        `side_info`, and two vectors of memory for each of the latter.

        Parameters
        ----------
        side_info : row or table
            As for `theta_for`.

        Returns
        -------
        iterator of (d,) arrays for a row, of (V, d) arrays for a table, as `theta_for` gives them

        Examples
        --------
        >>> import condmeta as cm
        >>> model = cm.KernelConditionalSGDRegressor().fit(
        ...     [[1.0], [1.0]], [1.0, 2.0], task=["a", "b"], side_info={"a": 0, "b": 9})
        >>> [theta.round(3).tolist() for theta in model.learning_curve(4.5)]
        [[0.0], [0.08]]
        """
        fitted, tau = self.fitted_, require_gradients(self.fitted_)
        *sides, is_row = read_sides(self, fitted, side_info)
        rows = features(fitted, *sides)
        if not has_side(rows).all():
            raise DataError("A learning curve needs side information of every task.")
        how = tau.kernel, float(self.meta_step), self.averaging
        curve = learning_curve(rows, tau.sides, tau.gradients, *how)
        curve = map(fitted.scales.user_vector, curve)
        return (theta[0] for theta in curve) if is_row else curve

    def save(
        self,
        path: PathLike,
        *,
        tasks: bool = True,
        resume: bool = True,
        include_points: bool = False,
    ) -> None:
        """Write the model to a file of arrays and JSON, without any code.

        The map is a sum over training tasks. So the file holds their side information as the kernel
        reads it (encoded), whatever `tasks` is; their ids go with `tasks=True` alone, and with
        "precomputed". A kernel that is a function cannot be stored.

        Parameters
        ----------
        path : str or path
            The file is written atomically: after a crash there is the old file or the new one.
        tasks : bool
            Whether to write the models of the tasks too.
        resume : bool
            Whether to keep what `partial_fit`, `update` and `learning_curve` need.
        include_points : bool
            Kernels on sets only: agree that the conditioning points of the training tasks, which
            are data, go into the file.
        """
        slim = self.slim(tasks, resume, include_points)
        persistence.write_model(path, slim, card=slim.card())

    def slim(self, tasks: bool = True, resume: bool = True, include_points: bool = False) -> Self:
        """Return a copy that holds what `save` would write."""
        kernel = self.fitted_.tau.kernel
        if getattr(kernel, "reads_points", False) and not include_points:
            raise DataError(
                f"The map of {type(kernel).__name__} is a sum over points of the training tasks, "
                "which would be stored in the file. Call save(..., include_points=True) to allow "
                "this, or use a kernel on side information."
            )
        return super().slim(tasks, resume)


def require_gradients(fitted: Fitted) -> KernelTau:
    """Return the map with what learning needs to go on, or raise."""
    if fitted.tau.gradients is None:
        raise DataError(
            "This model was saved without the data that partial_fit and learning_curve need. "
            "Save it with resume=True."
        )
    return fitted.tau


def _check_first(data: Training, kernel: Any) -> None:
    """Raise if no task can teach the map, or if a kernel of the user's own is not one."""
    if not len(data.ids) and getattr(kernel, "reads_points", False):
        raise DataError(
            "The kernel reads the conditioning points of tasks, and no task has any. With "
            "conditioning='split' a task needs at least two points."
        )
    if getattr(kernel, "native", None) is None and len(data.ids):
        check_kernel(kernel, data.Phi, data.ids)


def _with_sides(data: Training) -> Training:
    """Return the tasks that have what the kernel reads: the others cannot teach the map."""
    here = has_side(data.Phi)
    if here.all():
        return data
    at = np.flatnonzero(here)
    return data._replace(ids=data.ids[here], rows=data.rows.take(at), Phi=data.Phi[here])


def _no_matrix(name: str) -> str:
    return (
        f"KernelConditionalSGDRegressor has no {name}: it learns by kernel evaluations and never "
        "forms M. theta_for gives tau(s), norm_ the size of (M, b); ConditionalSGDRegressor with "
        "a feature map has an M."
    )
