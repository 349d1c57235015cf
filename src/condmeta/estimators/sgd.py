"""Algorithm 1 of the paper as scikit-learn estimators."""

from __future__ import annotations

import numpy as np

from condmeta.errors import DataError
from condmeta.estimators.base import Prepared, TaskLearner
from condmeta.estimators.defaults import with_defaults
from condmeta.estimators.meta_steps import MetaSteps
from condmeta.estimators.streaming import Streamed
from condmeta.estimators.targets import RealTarget, TwoClasses
from condmeta.inner.algorithms import Batch, Online
from condmeta.meta.sgd import SGDState, sgd_pass, sgd_steps


class ConditionalSGD(MetaSteps, TaskLearner):
    """Algorithm 1: shared by the regressor and the classifier."""

    def __init__(
        self,
        feature_map="auto",
        *,
        loss="absolute",
        inner="online",
        lam=1.0,
        meta_step=0.1,
        averaging="uniform",
        gradient_at="current",
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
        self.feature_map = feature_map
        self.loss = loss
        self.inner = inner
        self.lam = lam
        self.meta_step = meta_step
        self.averaging = averaging
        self.gradient_at = gradient_at
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

    def _start(self) -> None:
        super()._start()
        if self.gradient_at == "average" and self.averaging != "uniform":
            raise DataError(
                "gradient_at='average' goes with averaging='uniform'. "
                f"Got averaging={self.averaging!r} instead."
            )

    def _advance(self, state: SGDState | None, data: Prepared) -> None:
        """Run the tasks through Algorithm 1, from a copy of `state`, and set the map."""
        Phi, inner, step = data.Phi, self._inner, self._meta_step()
        state = SGDState.start(Phi.shape[1], data.X.shape[1]) if state is None else state.copy()
        linear, at_average = self.averaging == "linear", self.gradient_at == "average"
        rows = data.X, data.y, data.offsets, Phi
        before = state.map(step, "last")
        if isinstance(inner, (Online, Batch)):
            is_batch = isinstance(inner, Batch)
            tol = inner.tol if is_batch else 0.0
            bad = sgd_pass(
                *state, *rows, inner.lam, inner.loss, step, linear, at_average, is_batch, tol
            )
        else:
            bad = sgd_steps(
                state, *rows, lambda *task: inner.solve(*task)[1], step, linear, at_average
            )

        def theta(last):
            return lambda: Phi @ last[:-1] + last[-1]

        self._refuse_divergence(bad, data, theta(before), theta(state.map(step, "last")))
        self._weights = state.map(step, self.averaging, self.gradient_at)
        self._state, self._phi_mean = state, state.phi_mean


class ConditionalSGDRegressor(RealTarget, Streamed, ConditionalSGD):
    r"""Learn where a task's linear model starts from its side information, by Algorithm 1.

    Over the tasks t = 1, 2, ... with points Z_t and side information s_t,

        theta_t = M_t Phi(s_t) + b_t,   g_t = -lam (A(theta_t, Z_t) - theta_t),
        M_{t+1} = M_t - meta_step g_t Phi(s_t)^T,   b_{t+1} = b_t - meta_step g_t,

    and the map is the average of the iterates. A task's model is then A(tau(s), Z).

    Parameters
    ----------
    feature_map : "auto", None, a map, a transformer, or a list of them
        Phi. "auto" encodes a raw side table; None is unconditional meta-learning.
    loss : "absolute", "squared", "huber", "pinball", "epsilon_insensitive", or a loss object
    inner : "online", "batch" or an object with `solve(theta, X, y)`
        A(theta, Z): fine-tuning by one pass (one point alone then returns theta), or the exact
        biased regularised minimiser.
    lam : float in (0, inf)
        The paper's lambda: mean loss + lam/2 ||w - theta||^2.
    meta_step : float in (0, inf)
        The paper's gamma.
    averaging : "uniform" (mean of M_1..M_T), "linear" (weights t) or "last" (M_{T+1})
    gradient_at : "current" or "average"
        Where theta_t is taken; "average" is the mean of M_2..M_t, with "uniform" only.
    conditioning : "shared" or "split"
        Whether a task's points both condition and train, or its first half conditions and the rest
        trains. Only maps of points are concerned; the paper's guarantees need "split", or side
        information from elsewhere.
    scale : "none", "standard" or "rows"
    fit_intercept : bool
        The intercept is one more coordinate of w, theta and the regulariser.
    missing_side : "error" or "mean"
        What to do for a task without a side row: say so, or take the mean training Phi.
    task_column, side_columns : str or list of str, optional
        Columns of a frame X that hold the ids, and side information constant within a task.
    side_key : str or list of str, optional
        Key columns of the side table, if they are not named like the task column.
    keep_tasks : bool
        Whether `fit` keeps the models of its tasks.
    tol : float
        Batch inner: gap <= tol times the mean loss at theta.
    n_jobs : int, optional
        Threads over tasks, where tasks are independent.

    Attributes
    ----------
    M_, b_ : (width, k) and (width,) arrays in the learner's units
    theta_mean_ : tau at the mean training Phi, user's units
    n_tasks_, n_features_in_, feature_names_in_, side_features_, y_offset_, gap_

    References
    ----------
    Denevi, Pontil, Ciliberto: The Advantage of Conditional Meta-Learning for Biased Regularization
    and Fine-Tuning, Algorithm 1.

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> X = np.array([[1., 0], [0, 1], [1, 1], [1, -1], [2, 0], [0, 1]])
    >>> side = cm.TaskTable([[1., 0], [0, 2], [1, 1]], ids=["a", "b", "c"])
    >>> learner = cm.ConditionalSGDRegressor(cm.feature_maps.Identity(), lam=0.5, meta_step=0.25)
    >>> learner = learner.fit(X, [1, 2, 3, -1, 1, 4], task=list("aabbcc"), side_info=side)
    >>> learner.theta_for([1.0, 2.0]).round(4)
    array([0.1667, 0.5833])
    """


class ConditionalSGDClassifier(TwoClasses, Streamed, ConditionalSGD):
    """Learn where a task's linear classifier starts from its side information, by Algorithm 1.

    As `ConditionalSGDRegressor`, for two classes (coded -1 and +1 inside); a task may hold only one
    of them. `loss` is "hinge" or "logistic"; `predict_proba` needs the latter.

    Parameters
    ----------
    feature_map, inner, lam, meta_step, averaging, gradient_at, conditioning, scale, fit_intercept,
    missing_side, task_column, side_columns, side_key, keep_tasks, tol, n_jobs
        As for `ConditionalSGDRegressor`.
    loss : "hinge", "logistic", or a loss object for labels -1 and +1

    Attributes
    ----------
    classes_ : (2,) array
    M_, b_, theta_mean_, n_tasks_, n_features_in_, feature_names_in_, side_features_
        As for `ConditionalSGDRegressor`.

    Examples
    --------
    >>> import condmeta as cm
    >>> X = [[1.0, 0], [-1, 0], [0, 1], [0, -1]]
    >>> learner = cm.ConditionalSGDClassifier(feature_map=None)
    >>> learner = learner.fit(X, ["yes", "no", "yes", "no"], task=[1, 1, 2, 2])
    >>> learner.predict([[2.0, 0.0], [0.0, -3.0]], task=[1, 2])
    array(['yes', 'no'], dtype='<U3')
    """

    __init__ = with_defaults(ConditionalSGD.__init__, loss="hinge")

    def _classes_given(self, classes) -> None:
        if classes is not None:
            self._set_classes(np.asarray(classes))
