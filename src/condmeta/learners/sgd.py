"""Algorithm 1 of the paper as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.task_store import naming_task
from condmeta.fitted.tau import LinearTau
from condmeta.inner.algorithms import Batch, Online, get_inner, solve_one
from condmeta.learners.divergence import refuse_divergence, refuse_huge_map
from condmeta.learners.model_file import storable
from condmeta.learners.streams import StreamLearner, partial_fit
from condmeta.learners.targets import Classifier, Regressor
from condmeta.learners.training import Learned, Training
from condmeta.meta.sgd import SGDState, sgd_pass, sgd_steps
from condmeta.meta.sgd_outer import OuterState, outer_steps
from condmeta.outer_steps import (
    VALID_STEP,
    Adam,
    Decay,
    Momentum,
    get_outer_step,
    is_outer_step,
    is_plain,
)
from condmeta.persistence.fields import InvalidFieldError
from condmeta.typing import (
    Averaging,
    Conditioning,
    FeatureMapLike,
    GradientAt,
    InnerLike,
    LossLike,
    MetaStep,
    MissingSide,
    Scale,
)


@dataclass(eq=False, repr=False)
class ConditionalSGD(StreamLearner):
    """Algorithm 1: shared by the regressor and the classifier."""

    feature_map: FeatureMapLike = "auto"
    _: KW_ONLY
    loss: LossLike = "absolute"
    inner: InnerLike = "online"
    averaging: Averaging = "uniform"
    gradient_at: GradientAt = "current"
    conditioning: Conditioning = "shared"
    scale: Scale = "none"
    fit_intercept: bool = False
    missing_side: MissingSide = "error"
    tol: float = 1e-6

    _rules = {"meta_step": (is_outer_step, VALID_STEP)}

    def _learn(self, data: Training, before: Fitted | None = None) -> Learned:
        inner = get_inner(self.inner, self.lam, self.loss, self.tol)
        state = None if before is None else before.state
        run = self._run if is_plain(self.meta_step) else self._run_outer
        return run(data, inner, self.meta_step, state)

    def _run(self, data: Training, inner: Any, step: float, state: SGDState | None) -> Learned:
        """Run the tasks through Algorithm 1, from a copy of `state`."""
        X, y, offsets, _ = data.rows
        Phi, step = data.Phi, float(step)
        _check_kind(state, SGDState)
        state = SGDState.start(Phi.shape[1], X.shape[1]) if state is None else state.copy()
        linear, at_average = self.averaging == "linear", self.gradient_at == "average"
        before = state.map(step, "last")
        if isinstance(inner, (Online, Batch)):
            is_batch = isinstance(inner, Batch)
            tol = inner.tol if is_batch else 0.0
            bad = sgd_pass(
                *state, X, y, offsets, Phi, inner.lam, inner.loss, step, linear, at_average,
                is_batch, tol,
            )  # fmt: skip
        else:
            bad = sgd_steps(
                state, X, y, offsets, Phi, lambda *task: solve_one(inner, *task)[1], step, linear,
                at_average,
            )  # fmt: skip
        refuse_divergence(bad, data, inner, step, *_thetas(Phi, before, state.map(step, "last")))
        weights = state.map(step, self.averaging, self.gradient_at)
        return Learned(LinearTau(weights, state.phi_mean), inner, state=state)

    def _run_outer(
        self, data: Training, inner: Any, step: Any, state: OuterState | None
    ) -> Learned:
        """Run the tasks through Algorithm 1 with an outer step of another kind."""
        X, y, offsets, _ = data.rows
        Phi, outer = data.Phi, get_outer_step(step)
        _check_kind(state, OuterState)
        before = OuterState.start(Phi.shape[1], X.shape[1], outer) if state is None else state
        how = self.averaging, self.gradient_at
        with naming_task(data.ids):
            after, bad = outer_steps(
                before, X, y, offsets, Phi, lambda *task: solve_one(inner, *task)[1], outer, *how
            )
        refuse_huge_map(bad >= 0, data, inner, step, *_thetas(Phi, before.W, after.W))
        return Learned(LinearTau(after.map(*how), after.phi_mean), inner, state=after)


def _thetas(Phi: np.ndarray, *maps: np.ndarray) -> list[Callable[[], np.ndarray]]:
    """Return functions that compute theta (T, d) of the tasks at each map."""
    return [lambda W=W: Phi @ W[:-1] + W[-1] for W in maps]


def _check_memory(learner: ConditionalSGD, fitted: Fitted) -> None:
    """Refuse a stored state that the outer step does not go on from."""
    state, plain = fitted.state, is_plain(learner.meta_step)
    if state is None:
        return
    if plain != isinstance(state, SGDState):
        raise InvalidFieldError("fitted.state", "must be that of the meta_step")
    if not plain and type(learner.meta_step) in (Adam, Decay, Momentum):
        first = learner.meta_step.start(np.zeros_like(state.W))
        if not _is_alike(first, state.memory):
            raise InvalidFieldError("fitted.state.memory", "must be that of the meta_step")


def _is_alike(first: Any, value: Any) -> bool:
    if isinstance(first, tuple):
        same = isinstance(value, tuple) and len(value) == len(first)
        return same and all(map(_is_alike, first, value))
    if not isinstance(first, np.ndarray):
        return type(value) is type(first)
    right = isinstance(value, np.ndarray) and value.dtype == first.dtype
    return right and value.shape == first.shape and bool(np.isfinite(value).all())


def _check_kind(state: Any, kind: type) -> None:
    if state is not None and not isinstance(state, kind):
        raise DataError(
            "meta_step has changed its kind (a number; a function or an outer step) since the "
            "first call of partial_fit. Change it back, or fit again."
        )


@storable(state=(SGDState, OuterState), also=_check_memory)
@dataclass(eq=False, repr=False)
class ConditionalSGDRegressor(Regressor, ConditionalSGD):
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
        The loss that the model of a task minimises: see `condmeta.losses`. An object of your own
        needs `value` and `slope`.
    inner : "online", "batch" or an object with `solve(theta, X, y)`
        How a task with points Z is solved from its start theta, A(theta, Z): "online" makes one
        pass over the points (with one point the result is theta), "batch" finds the exact
        minimiser.
    lam : float in (0, inf)
        The paper's lambda: mean loss + lam/2 ||w - theta||^2.
    meta_step : float in (0, inf), a function of t, or an outer step
        The paper's gamma. A function returns the step of task t = 1, 2, ...; an object with
        `start(W)` and `step(W, G, t, state)` may do anything (see `condmeta.outer_steps`, which has
        `Decay`, `Momentum` and `Adam`).
    averaging : "uniform" (mean of M_1..M_T), "linear" (weights t) or "last" (M_{T+1})
        Which map is learned: an average of the iterates, or the last one.
    gradient_at : "current" or "average"
        Where theta_t is taken; "average" is the mean of M_2..M_t, with "uniform" only.
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
    missing_side : "error" or "mean"
        What to do with a task that has no side row: raise an error, or use the mean Phi of the
        training tasks.
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

    _: KW_ONLY
    lam: float = 1.0
    meta_step: MetaStep = 0.1

    partial_fit = partial_fit


@storable(state=(SGDState, OuterState), also=_check_memory)
@dataclass(eq=False, repr=False)
class ConditionalSGDClassifier(Classifier, ConditionalSGD):
    """Learn where a task's linear classifier starts from its side information, by Algorithm 1.

    Like `ConditionalSGDRegressor`, for two classes (coded -1 and +1 inside). A task may have only
    one of them. `loss` is "hinge" or "logistic"; `predict_proba` needs the latter.

    Parameters
    ----------
    feature_map : "auto", None, a map, a transformer, or a list of them
        Phi: how side information becomes features. "auto" encodes the columns of the side table.
        With None, or without a side table, all tasks start from the same coefficients.
    inner : "online", "batch" or an object with `solve(theta, X, y)`
        How a task with points Z is solved from its start theta, A(theta, Z): "online" makes one
        pass over the points (with one point the result is theta), "batch" finds the exact
        minimiser.
    lam : float in (0, inf)
        The paper's lambda: mean loss + lam/2 ||w - theta||^2.
    meta_step : float in (0, inf), a function of t, or an outer step
        The paper's gamma. A function returns the step of task t = 1, 2, ...; an object with
        `start(W)` and `step(W, G, t, state)` may do anything (see `condmeta.outer_steps`, which has
        `Decay`, `Momentum` and `Adam`).
    averaging : "uniform" (mean of M_1..M_T), "linear" (weights t) or "last" (M_{T+1})
        Which map is learned: an average of the iterates, or the last one.
    gradient_at : "current" or "average"
        Where theta_t is taken; "average" is the mean of M_2..M_t, with "uniform" only.
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
    missing_side : "error" or "mean"
        What to do with a task that has no side row: raise an error, or use the mean Phi of the
        training tasks.
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
    loss : "hinge", "logistic", or a loss object for labels -1 and +1
        What a task's model minimises; `predict_proba` needs "logistic".

    Attributes
    ----------
    classes_ : (2,) array
    M_, b_ : (width, k) and (width,) arrays
        The map tau = M Phi + b, in the learner's units.
    theta_mean_ : array
        Tau at the mean training Phi, in the user's units, the intercept last.
    n_tasks_, n_features_in_ : int
        Tasks with points that the map was learned from, and features of X.
    feature_names_in_, side_features_ : names of the features of X (if it was a table), and of Phi

    Examples
    --------
    >>> import condmeta as cm
    >>> X = [[1.0, 0], [-1, 0], [0, 1], [0, -1]]
    >>> learner = cm.ConditionalSGDClassifier(feature_map=None)
    >>> learner = learner.fit(X, ["yes", "no", "yes", "no"], task=[1, 1, 2, 2])
    >>> learner.predict([[2.0, 0.0], [0.0, -3.0]], task=[1, 2])
    array(['yes', 'no'], dtype='<U3')
    """

    _: KW_ONLY
    loss: LossLike = "hinge"
    lam: float = 1.0
    meta_step: MetaStep = 0.1

    partial_fit = partial_fit
