"""The plain alternatives: a given bias, own data only, one model for all."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np

from condmeta.fitted.tau import LinearTau
from condmeta.inner.algorithms import get_inner, solve_tasks
from condmeta.inner.no_adaptation import NoAdaptation
from condmeta.learners.attributes import from_info
from condmeta.learners.learner import Learner
from condmeta.learners.model_file import storable
from condmeta.learners.parameters import POSITIVE, jobs_of, or_word
from condmeta.learners.targets import Classifier, Regressor
from condmeta.learners.training import Learned, Training
from condmeta.losses import get_loss
from condmeta.meta.lam_choice import choose_lam
from condmeta.tasks.splits import across_tasks, within_tasks
from condmeta.typing import InnerLike, LossLike, Numbers, Scale


@dataclass(eq=False, repr=False)
class Baseline(Learner):
    """A learner with the same theta for all tasks: a map without features (k = 0)."""

    _: KW_ONLY
    loss: LossLike = "squared"
    inner: InnerLike = "batch"
    lam: float | Literal["cv"] = "cv"
    tol: float = 1e-6

    missing_side = "mean"
    _learns_across_tasks = False
    _rules = {"lam": or_word("cv", POSITIVE)}
    lam_ = from_info()

    @property
    def _weighs(self) -> bool:
        return isinstance(self.inner, str) and self.inner == "batch"

    def _make_inner(self, lam: float):
        return get_inner(self.inner, lam, self.loss, self.tol)

    def _choose_lam(self, hold_out: Any, data: Training, theta: np.ndarray) -> float:
        """Return lam, by cross-validation if it is to be chosen."""
        if not isinstance(self.lam, str):
            return self.lam
        loss = self._make_inner(1.0).loss
        rows = data.by_content()[1]
        return choose_lam(rows, hold_out, theta, self._make_inner, loss, jobs_of(self))


class FixedBias(Baseline):
    """A given bias for every task."""

    theta = 0.0

    def _learn(self, data: Training) -> Learned:
        theta = data.scales.from_user(self.theta)
        lam = self._choose_lam(within_tasks, data, theta)
        return Learned(constant(theta), self._make_inner(lam), {"lam_": lam})


def constant(theta: np.ndarray) -> LinearTau:
    """Return the map that gives every task the same theta."""
    return LinearTau(theta[None, :], np.zeros(0))


@storable
@dataclass(eq=False, repr=False)
class FixedBiasRegressor(Regressor, FixedBias):
    """Shrink each task towards given coefficients, as the oracle of the paper does.

    Parameters
    ----------
    theta : float, (d,) array, or (d+1,) array with the intercept last
        The coefficients towards which tasks are shrunk, in the units of X and y. A number applies
        to all coefficients.
    loss : "absolute", "squared", "huber", "pinball", "epsilon_insensitive", or a loss object
        The loss that the model of a task minimises: see `condmeta.losses`. An object of your own
        needs `value` and `slope`.
    inner : "online", "batch" or an object with `solve(theta, X, y)`
        How a task with points Z is solved from its start theta, A(theta, Z): "online" makes one
        pass over the points (with one point the result is theta), "batch" finds the exact
        minimiser.
    lam : "cv" or float in (0, inf)
        The regulariser: mean loss + lam/2 ||w - theta||^2. "cv" chooses one lam for all tasks, by
        cross-validation within tasks.
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

    Attributes
    ----------
    lam_ : float

    Examples
    --------
    >>> import condmeta as cm
    >>> oracle = cm.FixedBiasRegressor(theta=[1.0, 2.0], inner="batch")
    >>> oracle = oracle.fit([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0], task=["a", "b"])
    >>> oracle.predict([[1.0, 1.0]], task=["a"])
    array([3.])
    """

    theta: Numbers = 0.0
    _: KW_ONLY
    loss: LossLike = "absolute"
    inner: InnerLike = "online"
    lam: float | Literal["cv"] = 1.0
    scale: Scale = "none"
    fit_intercept: bool = False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # a bias of zero and one online pass, by default
        return tags


@storable
@dataclass(eq=False, repr=False)
class FixedBiasClassifier(Classifier, FixedBias):
    """Shrink each task towards given coefficients, for two classes.

    Parameters
    ----------
    theta : float, (d,) array, or (d+1,) array with the intercept last
        The coefficients towards which tasks are shrunk, in the units of X and y. A number applies
        to all coefficients.
    inner : "online", "batch" or an object with `solve(theta, X, y)`
        How a task with points Z is solved from its start theta, A(theta, Z): "online" makes one
        pass over the points (with one point the result is theta), "batch" finds the exact
        minimiser.
    lam : "cv" or float in (0, inf)
        The regulariser: mean loss + lam/2 ||w - theta||^2. "cv" chooses one lam for all tasks, by
        cross-validation within tasks.
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
    loss : "hinge", "logistic", or a loss object for labels -1 and +1
        What a task's model minimises; `predict_proba` needs "logistic".

    Examples
    --------
    >>> import condmeta as cm
    >>> oracle = cm.FixedBiasClassifier(theta=[1.0, -1.0])
    >>> oracle.fit([[1.0, 0.0], [0.0, 1.0]], [1, 0], task=[7, 7]).predict([[3.0, 1.0]])
    array([1])
    """

    theta: Numbers = 0.0
    _: KW_ONLY
    loss: LossLike = "hinge"
    inner: InnerLike = "online"
    lam: float | Literal["cv"] = 1.0
    scale: Scale = "none"
    fit_intercept: bool = False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


@storable
class IndependentRegressor(Regressor, FixedBias):
    """Fit a separate model to each task, from its own points alone, shrunk towards the offset of y.

    Parameters
    ----------
    loss : "absolute", "squared", "huber", "pinball", "epsilon_insensitive", or a loss object
        The loss that the model of a task minimises: see `condmeta.losses`. An object of your own
        needs `value` and `slope`.
    inner : "online", "batch" or an object with `solve(theta, X, y)`
        How a task with points Z is solved from its start theta, A(theta, Z): "online" makes one
        pass over the points (with one point the result is theta), "batch" finds the exact
        minimiser.
    lam : "cv" or float in (0, inf)
        The regulariser: mean loss + lam/2 ||w - theta||^2. "cv" chooses one lam for all tasks, by
        cross-validation within tasks. A task without points is predicted at `y_offset_`.
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

    Attributes
    ----------
    lam_ : float

    Examples
    --------
    >>> import condmeta as cm
    >>> own = cm.IndependentRegressor(lam=0.01).fit(
    ...     [[0.0], [1.0], [0.0], [1.0]], [0.0, 1.0, 5.0, 3.0], task=["a", "a", "b", "b"])
    >>> own.predict([[2.0], [2.0]], task=["a", "b"]).round(1)
    array([2., 1.])
    """


@storable
@dataclass(eq=False, repr=False)
class IndependentClassifier(Classifier, FixedBias):
    """Fit a separate classifier to each task, from its own points alone.

    Parameters
    ----------
    inner : "online", "batch" or an object with `solve(theta, X, y)`
        How a task with points Z is solved from its start theta, A(theta, Z): "online" makes one
        pass over the points (with one point the result is theta), "batch" finds the exact
        minimiser.
    lam : "cv" or float in (0, inf)
        The regulariser: mean loss + lam/2 ||w - theta||^2. "cv" chooses one lam for all tasks, by
        cross-validation within tasks.
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
    loss : "logistic", "hinge", or a loss object for labels -1 and +1
        What a task's model minimises; `predict_proba` needs "logistic".

    Examples
    --------
    >>> import condmeta as cm
    >>> own = cm.IndependentClassifier(lam=0.1).fit([[-1.0], [1.0]], [0, 1])
    >>> own.predict([[2.0]])
    array([1])
    """

    _: KW_ONLY
    loss: LossLike = "logistic"

    _many_classes = True


class Pooled(Baseline):
    """One model for all tasks."""

    def _learn(self, data: Training) -> Learned:
        X, y, _, weight = data.rows
        zero = np.zeros(X.shape[1])
        lam = self._choose_lam(across_tasks, data, zero)
        whole = np.array([0, len(y)])
        solved = solve_tasks(self._make_inner(lam), zero[None], X, y, whole, weight=weight)
        tau, loss = constant(solved.coef[0]), get_loss(self.loss)
        return Learned(tau, NoAdaptation(loss), {"lam_": lam})


@storable
class PooledRegressor(Regressor, Pooled):
    """Fit one linear model to the rows of all tasks.

    Parameters
    ----------
    loss : "absolute", "squared", "huber", "pinball", "epsilon_insensitive", or a loss object
        The loss that the model of a task minimises: see `condmeta.losses`. An object of your own
        needs `value` and `slope`.
    inner : "online", "batch" or an object with `solve(theta, X, y)`
        How a task with points Z is solved from its start theta, A(theta, Z): "online" makes one
        pass over the points (with one point the result is theta), "batch" finds the exact
        minimiser.
    lam : "cv" or float in (0, inf)
        The regulariser: mean loss + lam/2 ||w||^2. "cv" chooses it by cross-validation over tasks.
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

    Attributes
    ----------
    lam_ : float

    Examples
    --------
    >>> import condmeta as cm
    >>> pooled = cm.PooledRegressor(lam=1e-6).fit(
    ...     [[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0], task=["a", "b", "b"])
    >>> pooled.predict([[3.0]], task=["new"]).round(3)
    array([7.])
    """


@storable
@dataclass(eq=False, repr=False)
class PooledClassifier(Classifier, Pooled):
    """Fit one linear classifier to the rows of all tasks.

    Parameters
    ----------
    inner : "online", "batch" or an object with `solve(theta, X, y)`
        How a task with points Z is solved from its start theta, A(theta, Z): "online" makes one
        pass over the points (with one point the result is theta), "batch" finds the exact
        minimiser.
    lam : "cv" or float in (0, inf)
        The regulariser: mean loss + lam/2 ||w||^2. "cv" chooses it by cross-validation over tasks.
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
    loss : "logistic", "hinge", or a loss object for labels -1 and +1
        What a task's model minimises; `predict_proba` needs "logistic".

    Examples
    --------
    >>> import condmeta as cm
    >>> pooled = cm.PooledClassifier(lam=0.1).fit([[-1.0], [1.0]], ["no", "yes"], task=[1, 2])
    >>> pooled.predict([[2.0]], task=[3])
    array(['yes'], dtype='<U3')
    """

    _: KW_ONLY
    loss: LossLike = "logistic"

    _many_classes = True
