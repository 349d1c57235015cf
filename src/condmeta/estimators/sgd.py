"""Algorithm 1 of the paper as scikit-learn estimators."""

from __future__ import annotations

import numpy as np

from condmeta.errors import DataError, DivergenceError
from condmeta.estimators.base import Prepared
from condmeta.estimators.defaults import with_defaults
from condmeta.estimators.streaming import Incremental, Streamed
from condmeta.estimators.targets import RealTarget, TwoClasses
from condmeta.estimators.task_store import naming_task
from condmeta.inner.algorithms import Batch, Online, diverged
from condmeta.inner.online import HUGE, loss_is_unbounded
from condmeta.inner.scores import row_scores
from condmeta.meta.sgd import SGDState, sgd_pass, sgd_steps


class ConditionalSGD(Incremental):
    """Algorithm 1: shared by the regressor and the classifier."""

    _state_type = SGDState

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

    def _meta_step(self) -> float:
        return float(self.meta_step)

    def _is_huge(self, before, after, data: Prepared) -> bool:
        """Tell whether the map left the scale of the targets, which bounded slopes cannot do.

        The scale is also that of the map before: the tasks of one call may have targets of zero.
        """
        if not loss_is_unbounded(getattr(self._inner, "loss", None)):
            return False
        task = np.repeat(np.arange(len(data.ids)), np.diff(data.offsets))
        reach = []
        with np.errstate(over="ignore", invalid="ignore"):
            for last in (before, after):
                z = row_scores(data.X, data.Phi @ last[:-1] + last[-1], task, 1)
                reach.append(np.abs(z).max(initial=0.0))
        return not reach[1] <= HUGE * max(np.abs(data.y).max(initial=0.0), reach[0])

    def _start_state(self, data: Prepared) -> SGDState:
        return SGDState.start(data.Phi.shape[1], data.X.shape[1])

    def _advance(self, state: SGDState, data: Prepared) -> None:
        """Run the tasks through Algorithm 1, in place on `state`, and set the map."""
        inner, linear = self._inner, self.averaging == "linear"
        at_average = self.gradient_at == "average"
        rows = data.X, data.y, data.offsets, data.Phi
        before = state.map(self._meta_step(), "last")
        if isinstance(inner, (Online, Batch)):
            is_batch = isinstance(inner, Batch)
            tol = inner.tol if is_batch else 0.0
            bad = sgd_pass(
                *state, *rows, inner.lam, inner.loss, self._meta_step(), linear, at_average,
                is_batch, tol,
            )  # fmt: skip
        else:
            bad = sgd_steps(
                state, *rows, lambda *task: inner.solve(*task)[1], self._meta_step(), linear,
                at_average,
            )  # fmt: skip
        weights = state.map(self._meta_step(), self.averaging, self.gradient_at)
        if bad >= 0 and isinstance(inner, Online):
            with naming_task(data.ids):
                raise diverged(bad, inner.lam)
        if bad >= 0 or self._is_huge(before, state.map(self._meta_step(), "last"), data):
            raise DivergenceError(
                f"The meta-steps diverge at meta_step={self._meta_step():g}. Use a smaller "
                "meta_step, a loss with bounded slopes, or scale='standard'."
            )
        self._state, self._weights, self._phi_mean = state, weights, state.phi_mean

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # One pass of online steps at a fixed lam learns little from one task, and says so.
        if tags.regressor_tags is not None:
            tags.regressor_tags.poor_score = True
        if tags.classifier_tags is not None:
            tags.classifier_tags.poor_score = True
        return tags


class StreamedSGD(Streamed, ConditionalSGD):
    """Algorithm 1 task by task."""


class ConditionalSGDRegressor(RealTarget, StreamedSGD):
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


class ConditionalSGDClassifier(TwoClasses, StreamedSGD):
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
