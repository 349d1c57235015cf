"""The plain alternatives: a given bias, own data only, one model for all."""

from __future__ import annotations

import numpy as np

from condmeta.estimators.base import Prepared, TaskLearner
from condmeta.estimators.choose_lam import across_tasks, best_lam, within_tasks
from condmeta.estimators.defaults import with_defaults
from condmeta.estimators.parameters import POSITIVE, jobs_of
from condmeta.estimators.targets import RealTarget, TwoClasses
from condmeta.estimators.weighted import Weighted
from condmeta.inner.algorithms import get_inner, solve_tasks
from condmeta.inner.keep import Keep
from condmeta.losses import get_loss

_positive, _range = POSITIVE


def _is_cv(value) -> bool:
    return isinstance(value, str) and value == "cv"


LAM_OR_CV = {"lam": (lambda value: _positive(value) or _is_cv(value), f"{_range}, or 'cv'")}


class Baseline(Weighted, TaskLearner):
    """A learner whose map is one vector, the same for all tasks: k = 0."""

    missing_side = "mean"
    _special_rules = LAM_OR_CV

    def __init__(
        self,
        *,
        loss="squared",
        inner="batch",
        lam="cv",
        scale="standard",
        fit_intercept=True,
        task_column=None,
        side_columns=None,
        side_key=None,
        keep_tasks=True,
        tol=1e-6,
        n_jobs=None,
    ):
        self.loss = loss
        self.inner = inner
        self.lam = lam
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.task_column = task_column
        self.side_columns = side_columns
        self.side_key = side_key
        self.keep_tasks = keep_tasks
        self.tol = tol
        self.n_jobs = n_jobs

    @property
    def _weighs(self) -> bool:
        return isinstance(self.inner, str) and self.inner == "batch"

    def _make_inner(self, lam=None):
        lam = self.lam if lam is None else lam
        return get_inner(self.inner, 1.0 if _is_cv(lam) else lam, self.loss, self.tol)

    def _choose_lam(self, hold_out, data: Prepared, theta) -> None:
        """Set `lam_`, by cross-validation if it is to be chosen, and the inner algorithm."""
        self.lam_ = self.lam
        if _is_cv(self.lam):
            trial = hold_out(data.points)
            loss, jobs = self._inner.loss, jobs_of(self)
            self.lam_ = best_lam(trial, theta, self._make_inner, loss, jobs)
        self._use(self._make_inner(self.lam_))

    def _use(self, inner) -> None:
        self._inner = inner
        self._head = self._head._replace(inner=inner)

    def _restore_inner(self):
        return self._make_inner(self.lam_)

    def _set_bias(self, theta) -> None:
        self._weights, self._phi_mean = theta[None, :], np.zeros(0)


class FixedBias(Baseline):
    """A given bias for every task."""

    theta = 0.0

    def _learn(self, data: Prepared) -> None:
        theta = self._head.preparation.from_user(self.theta)
        self._choose_lam(within_tasks, data, theta)
        self._set_bias(theta)


class FixedBiasRegressor(RealTarget, FixedBias):
    """Solve every task around one given vector: the paper's oracle, if it is the tasks' mean.

    Parameters
    ----------
    theta : float, (d,) array, or (d+1,) array with the intercept last
        The bias, in the user's units; a number broadcasts.
    loss, inner, lam, scale, fit_intercept, task_column, side_columns, side_key, keep_tasks, tol,
    n_jobs
        As for `ConditionalSGDRegressor`; `lam="cv"` chooses it by cross-validation within tasks.

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

    def __init__(
        self,
        theta=0.0,
        *,
        loss="absolute",
        inner="online",
        lam=1.0,
        scale="none",
        fit_intercept=False,
        task_column=None,
        side_columns=None,
        side_key=None,
        keep_tasks=True,
        tol=1e-6,
        n_jobs=None,
    ):
        self.theta = theta
        Baseline.__init__(
            self, loss=loss, inner=inner, lam=lam, scale=scale, fit_intercept=fit_intercept,
            task_column=task_column, side_columns=side_columns, side_key=side_key,
            keep_tasks=keep_tasks, tol=tol, n_jobs=n_jobs,
        )  # fmt: skip

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # a bias of zero and one online pass, by default
        return tags


class FixedBiasClassifier(TwoClasses, FixedBias):
    """Solve every task around one given vector, for two classes.

    Parameters
    ----------
    theta, inner, lam, scale, fit_intercept, task_column, side_columns, side_key, keep_tasks, tol,
    n_jobs
        As for `FixedBiasRegressor`.
    loss : "hinge", "logistic", or a loss object for labels -1 and +1

    Examples
    --------
    >>> import condmeta as cm
    >>> oracle = cm.FixedBiasClassifier(theta=[1.0, -1.0])
    >>> oracle.fit([[1.0, 0.0], [0.0, 1.0]], [1, 0], task=[7, 7]).predict([[3.0, 1.0]])
    array([1])
    """

    __init__ = with_defaults(FixedBiasRegressor.__init__, loss="hinge")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


class IndependentRegressor(RealTarget, FixedBias):
    """Solve every task from its own points alone, shrunk towards the offset of y.

    Parameters
    ----------
    loss, inner, lam, scale, fit_intercept, task_column, side_columns, side_key, keep_tasks, tol,
    n_jobs
        As for `ConditionalSGDRegressor`; `lam="cv"` chooses one lam for all tasks, by
        cross-validation within tasks. A task without points is predicted at `y_offset_`.

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


class IndependentClassifier(TwoClasses, FixedBias):
    """Solve every task from its own points alone, for two classes.

    Parameters
    ----------
    inner, lam, scale, fit_intercept, task_column, side_columns, side_key, keep_tasks, tol, n_jobs
        As for `IndependentRegressor`.
    loss : "logistic", "hinge", or a loss object for labels -1 and +1

    Examples
    --------
    >>> import condmeta as cm
    >>> own = cm.IndependentClassifier(lam=0.1).fit([[-1.0], [1.0]], [0, 1])
    >>> own.predict([[2.0]])
    array([1])
    """

    __init__ = with_defaults(Baseline.__init__, loss="logistic")


class Pooled(Baseline):
    """One model for all tasks."""

    def _learn(self, data: Prepared) -> None:
        zero = np.zeros(data.X.shape[1])
        self._choose_lam(across_tasks, data, zero)
        whole = np.array([0, len(data.y)])
        solved = solve_tasks(self._inner, zero[None], data.X, data.y, whole, weight=data.weight)
        self._use(self._restore_inner())
        self._set_bias(solved.coef[0])

    def _restore_inner(self):
        return Keep(get_loss(self.loss))


class PooledRegressor(RealTarget, Pooled):
    """Fit one linear model to the rows of all tasks.

    Parameters
    ----------
    loss, inner, lam, scale, fit_intercept, task_column, side_columns, side_key, keep_tasks, tol,
    n_jobs
        As for `ConditionalSGDRegressor`; `lam="cv"` chooses it by cross-validation over tasks.

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


class PooledClassifier(TwoClasses, Pooled):
    """Fit one linear classifier to the rows of all tasks.

    Parameters
    ----------
    inner, lam, scale, fit_intercept, task_column, side_columns, side_key, keep_tasks, tol, n_jobs
        As for `PooledRegressor`.
    loss : "logistic", "hinge", or a loss object for labels -1 and +1

    Examples
    --------
    >>> import condmeta as cm
    >>> pooled = cm.PooledClassifier(lam=0.1).fit([[-1.0], [1.0]], ["no", "yes"], task=[1, 2])
    >>> pooled.predict([[2.0]], task=[3])
    array(['yes'], dtype='<U3')
    """

    __init__ = with_defaults(Baseline.__init__, loss="logistic")
