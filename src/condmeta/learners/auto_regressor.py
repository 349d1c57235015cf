"""The learner to take when there is no telling which: numbers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from condmeta.learners.auto import Auto
from condmeta.learners.auto_candidates import Kinds
from condmeta.learners.auto_file import storable
from condmeta.learners.baselines import IndependentRegressor, PooledRegressor
from condmeta.learners.parameters import one_of
from condmeta.learners.ridge import ConditionalRidge
from condmeta.learners.targets import Regressor
from condmeta.meta.stacking import CRITERIA, Criterion


@storable
@dataclass(eq=False, repr=False)
class AutoRegressor(Regressor, Auto):
    """Choose among learners and simple alternatives, for each number of points that a task has.

    The candidates are: the task's own data alone, one pooled model, a learned prior without and
    with side information, the last two on top of gradient boosting, and boosting with a random
    intercept. Tasks are held out in folds. Each candidate is fitted to the other tasks, gets 0, 1,
    2, 5, ... points of every held-out task, and is judged by the remaining points. A task with n
    points uses the candidate, or the convex combination of candidates, that was best at the largest
    tested number of points <= n. With criterion="absolute" a line turns the means that candidates
    predict into medians, where that is better on held-out tasks.

    Parameters
    ----------
    feature_map : "auto", None, a map, a transformer, or a list of them
        Phi of the conditional candidates.
    base : "boosting", a scikit-learn regressor, or None
        The base of the candidates that have one (see `ConditionalRidge`).
    shots : sequence of int
        The numbers of points to compare at. Numbers that fewer than 10 tasks exceed are left out.
    criterion : "absolute" or "squared"
        The error that counts.
    order : "random" or "first"
        Which points of a held-out task the candidates get: a random sample, or the first rows.
    random_state : int, Generator, RandomState or None
        For the folds of tasks, and the points that they show.
    scale : "none", "standard" or "rows"
        How features are scaled: not at all, by mean and standard deviation over all rows, or every
        row to norm 1. Coefficients are given in the user's units.
    fit_intercept : bool
        Whether models have an intercept. It is one more coordinate of w, theta and the regulariser.
    missing_side : "error" or "mean"
        What to do for a task without a side row: say so, or take the mean training Phi.
    task_column : str or list of str, optional
        The column, or columns, of a frame X that hold the task ids.
    side_columns : str or list of str, optional
        Columns of a frame X that hold side information, constant within a task.
    side_key : str or list of str, optional
        Key columns of the side table, if they are not named like the task column.
    n_jobs : int, optional
        Threads over tasks, where tasks are independent; -1 uses all cores.

    Attributes
    ----------
    weights_ : (shots, candidates) array
        The convex combination for each number of points.
    lines_ : (shots, 2) array
        Shift and slope: where labels are skewed and criterion="absolute", predictions p of the
        combination become medians, shift + slope p. Elsewhere (0, 1).
    candidates_ : list of str
    errors_ : (shots, candidates) array
        Mean errors on held-out tasks; nan if there were too few tasks to hold any out.
    shots_ : (shots,) array
    task_errors_ : (shots, 2) array, or None
        Mean and variance over held-out tasks of the logarithm of a task's root mean square error;
        `check` compares new errors with them. None if there were too few tasks to hold any out.
    report_ : str
        What was chosen, where and why.
    n_tasks_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> rng = np.random.default_rng(0)
    >>> task = np.repeat(np.arange(40), 6)
    >>> X = rng.normal(size=(240, 1))
    >>> y = X[:, 0] * (2 + 0.1 * rng.normal(size=40))[task] + 0.1 * rng.normal(size=240)
    >>> model = cm.AutoRegressor(base=None, shots=(0, 3)).fit(X, y, task=task)
    >>> model.candidates_
    ['own data', 'pooled', 'unconditional']
    >>> bool(abs(model.predict([[1.0]], task=["new"]) - 2) < 0.1)
    True
    """

    _: KW_ONLY
    criterion: Any = "absolute"

    _rules = {"criterion": one_of(CRITERIA)}
    _kinds = Kinds(IndependentRegressor, PooledRegressor, ConditionalRidge)

    def _criterion(self) -> Criterion:
        return CRITERIA[self.criterion]

    def predict(self, X: Any, *, task: Any = None, side_info: Any = None) -> np.ndarray:
        """Predict rows, each task by what was chosen for its number of points.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The rows to predict.
        task : (N,) ids, optional
            The task of each row, or the name of a column of X. None with a row of side information
            is one new task; without, it is the one task of the fit.
        side_info : row or table, optional
            Side information of new tasks: a row for one task, a table keyed by task id for several.
            Known tasks do not need it.
        """
        return self._blended(X, task=task, side_info=side_info)
