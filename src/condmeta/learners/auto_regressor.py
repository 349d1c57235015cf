"""The learner to take when there is no telling which: numbers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from condmeta.learners.auto import Auto
from condmeta.learners.auto_candidates import Kinds, count_candidates, refuse_negative
from condmeta.learners.auto_file import storable
from condmeta.learners.baselines import IndependentRegressor, PooledRegressor
from condmeta.learners.blend import BlendedModel, BlendedModels
from condmeta.learners.held_out import are_whole
from condmeta.learners.inputs import Inputs
from condmeta.learners.offsets import is_zero, minus_offset, read_offset, refuse_forgotten
from condmeta.learners.parameters import one_of
from condmeta.learners.ridge import ConditionalRidge
from condmeta.learners.targets import Regressor
from condmeta.learners.writing import writing
from condmeta.meta.criteria import CRITERIA, OF_COUNTS, Criterion
from condmeta.tasks.splits import FOLDS
from condmeta.typing import CriterionName, Ids, Matrix, SideInfo, Values, XTransform


@storable
@dataclass(eq=False, repr=False)
class AutoRegressor(Regressor, Auto):
    """Choose among learners and simple alternatives, for each number of points that a task has.

    The candidates are: the task's own data alone, one pooled model, a learned prior without and
    with side information, the last two on top of gradient boosting, boosting with a random
    intercept, and boosting alone. If splines of x or another scale of y reduce the absolute error
    on held-out tasks, a learned prior with them is a further candidate (`x_transform` and
    `y_transform` of `ConditionalRidge`); it predicts medians or means, depending on `criterion`.
    Tasks are held out in folds; up to 50 tasks are held out two to five times, in other folds each
    time. Each candidate is fitted to the other tasks, gets 0, 1, 2, 5, ... points of every held-out
    task, and is judged by the remaining points. A task with n points uses the convex combination of
    candidates that was best at the largest tested number of points <= n. Its weights are the mean
    over 50 draws of the importance of the held-out tasks. They are shrunken towards equal weights
    of the learned priors without and with side information, alone and on boosting, as two more
    tasks would do, and candidates with a weight below 5 % are left out. With criterion="absolute" a
    line turns the predicted means into medians, if that reduces the error on held-out tasks.

    Parameters
    ----------
    feature_map : "auto", None, a map, a transformer, or a list of them
        Phi of the conditional candidates.
    base : "boosting", a scikit-learn regressor, or None
        The base of the candidates that have one (see `ConditionalRidge`).
    x_transform : transformer, optional
        A scikit-learn transformer of X for the candidates with a learned prior, with and without a
        base (see `ConditionalRidge`). Own data, the pooled model and the base read X as it is.
    shots : sequence of int
        The numbers of points to compare at. A number is left out if fewer than 10 tasks have more
        points; with fewer than 10 tasks, if not all have. With fewer than 5 nothing is compared.
    criterion : "absolute", "squared", "deviance" or "log density"
        The error by which candidates are compared. "deviance": that of Poisson counts; "log
        density": the logarithm of the density, or of the probability of a count, that a candidate
        gives to the label; own data, the pooled model and candidates on a base have none. With
        both, `ConditionalCount` is a candidate if y holds whole numbers of at least 0.
    order : "random" or "first"
        Which points of a held-out task the candidates get: a random sample, or the first rows.
    random_state : int, Generator, RandomState or None
        Seed of the folds of tasks, and of their random points.
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
    n_jobs : int, optional
        Number of threads that share the tasks; -1 uses all cores.

    Attributes
    ----------
    weights_ : (shots, candidates) array
        The convex combination for each number of points.
    lines_ : (shots, 2) array
        Shift and slope. If labels are skewed and criterion="absolute", predictions p of the
        combination become medians, shift + slope p. Otherwise (0, 1).
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
    x_transform: XTransform = None
    criterion: CriterionName = "absolute"

    _rules = {"criterion": one_of(CRITERIA)}
    _kinds = Kinds(IndependentRegressor, PooledRegressor, ConditionalRidge)
    _fewest = FOLDS

    def _criterion(self) -> Criterion:
        return CRITERIA[self.criterion]

    def _by_criterion(self, learners: dict[str, Any], given: Inputs) -> dict[str, Any]:
        y, side = given.tasks.y, given.tasks.side
        refuse_negative(self.criterion, y)
        if self.criterion == "log density":
            learners = {name: one for name, one in learners.items() if "conditional" in name}
        if self.criterion in OF_COUNTS and are_whole(y):
            learners = learners | count_candidates(self, side is not None)
        return learners

    def fit(
        self, X: Matrix, y: Values = None, *, task: Ids = None, side_info: SideInfo = None,
        offset: Values = None, sample_weight: Values = None,
    ) -> Self:  # fmt: skip
        """Choose on held-out tasks, then fit what was chosen to all.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The points of all tasks, with rows in any order. A TaskSet is passed alone, because it
            holds y and the task ids.
        y : (N,) array
            The target of each row.
        task : (N,) ids, optional
            The task of each row: strings, integers, dates, tuples; the name of a column of X; None
            means one task.
        side_info : table keyed by task id, optional
            One raw row for each task (see `TaskTable`), or a `TaskSet` of conditioning points. Ids
            without rows in X are kept as tasks without points.
        offset : (N,) array, optional
            Predictions of a model of the user's own for the rows: all candidates are fitted to
            y - offset. That model must not have seen the row's task. Give the offset to `adapt`,
            `update` and `predict` as well: to leave it out there is an error.
        sample_weight : (N,) array, optional
            How often each row counts, also where it judges: 2 is the row twice, 0 is no row.

        Returns
        -------
        self
        """
        call = {"task": task, "side_info": side_info, "sample_weight": sample_weight}
        with writing(self):
            super().fit(X, minus_offset(y, offset), **call)
            self._model = self.chosen_._replace(offset=not is_zero(offset))
        return self

    def adapt(
        self, X: Matrix | None = None, y: Values = None, *, task: Ids = None,
        side_info: SideInfo = None,
        offset: Values = None, sample_weight: Values = None,
    ) -> BlendedModel | BlendedModels:  # fmt: skip
        """Return models of new tasks by the candidate that was chosen for their number of points.

        The models that it returns predict without the offset: add it to their predictions.

        Parameters
        ----------
        X : (n, d) array, DataFrame or TaskSet, optional
            The points. Without any, the model has the starting coefficients tau(s).
        y : (n,) array, optional
            Their targets.
        task : (n,) ids, optional
            The task of each point. None means that all points belong to one task.
        side_info : row or table, optional
            For one task its row (a dict of columns, a Series, a sequence); with `task` a table
            keyed by task id, as in `fit`.
        offset : (n,) array, optional
            Taken off y (see `fit`). A model that was fitted with an offset needs one; `offset=0`
            leaves it out.
        sample_weight : (N,) array, optional
            How often each row counts: 2 counts as two equal rows, 0 as no row.

        Returns
        -------
        BlendedModel, or BlendedModels if `task` is given or X is a TaskSet
        """
        call = {"task": task, "side_info": side_info, "sample_weight": sample_weight}
        if X is not None:
            refuse_forgotten(self.chosen_.offset, offset)
        return super().adapt(X, minus_offset(y, offset), **call)

    def update(
        self, X: Matrix, y: Values = None, *, task: Ids = None, side_info: SideInfo = None,
        offset: Values = None, sample_weight: Values = None,
    ) -> Self:  # fmt: skip
        """Add points to known tasks and enrol new ones; what was chosen stays. Weights as in `fit`.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            Further points of known tasks, and points of new ones.
        y : (N,) array
            The target of each row.
        task : (N,) ids, optional
            The task of each row: strings, integers, dates, tuples; the name of a column of X; None
            means one task.
        side_info : table keyed by task id, optional
            One raw row for each new task, as in `fit`.
        offset : (N,) array, optional
            Taken off y (see `fit`). A model that was fitted with an offset needs one; `offset=0`
            leaves it out.
        sample_weight : (N,) array, optional
            How often each row counts: 2 counts as two equal rows, 0 as no row.

        Returns
        -------
        self
        """
        refuse_forgotten(self.chosen_.offset, offset)
        call = {"task": task, "side_info": side_info, "sample_weight": sample_weight}
        return super().update(X, minus_offset(y, offset), **call)

    def predict(
        self, X: Matrix, *, task: Ids = None, side_info: SideInfo = None, offset: Values = None
    ) -> np.ndarray:
        """Predict rows, each task by what was chosen for its number of points.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The rows to predict.
        task : (N,) ids, optional
            The task of each row, or the name of a column of X. If None, all rows belong to one
            task: with `side_info`, a new task; without, the only task of the fit.
        side_info : row or table, optional
            Side information of new tasks: a row for one task, a table keyed by task id for several.
            Known tasks do not need it.
        offset : (N,) array, optional
            Added to the predictions (see `fit`). A model that was fitted with an offset needs one;
            `offset=0` leaves it out.
        """
        refuse_forgotten(self.chosen_.offset, offset)
        predicted = self._blended(X, task=task, side_info=side_info)
        return predicted if is_zero(offset) else predicted + read_offset(offset, len(predicted))
