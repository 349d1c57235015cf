"""The learner to take when there is no telling which: classes."""

from __future__ import annotations

import numpy as np
from scipy.special import logit

from condmeta.fitted.class_models import LEAST
from condmeta.fitted.label_codes import encode_labels
from condmeta.learners.auto import Auto
from condmeta.learners.auto_candidates import Kinds
from condmeta.learners.auto_file import storable
from condmeta.learners.baselines import IndependentClassifier, PooledClassifier
from condmeta.learners.blend import decided, probabilities
from condmeta.learners.held_out import FEWEST_TASKS
from condmeta.learners.inputs import Inputs
from condmeta.learners.logistic import ConditionalLogistic
from condmeta.learners.targets import Classifier
from condmeta.meta.criteria import LOG_LOSS, Criterion
from condmeta.tasks.messages import show_id
from condmeta.text import pluralize
from condmeta.typing import Ids, Matrix, SideInfo


@storable
class AutoClassifier(Classifier, Auto):
    """Choose among classifiers and simple alternatives, for each number of points of a task.

    Like `AutoRegressor`, by the log loss of the probabilities. The candidates are: the task's own
    data alone, one pooled model, a learned prior without and with side information, and the last
    two on top of gradient boosting. Their probabilities are combined with weights as there. With
    more than two classes there are no candidates on boosting, and `base` is not used.

    Parameters
    ----------
    feature_map : "auto", None, a map, a transformer, or a list of them
        Phi of the conditional candidates.
    base : "boosting", a scikit-learn classifier with predict_proba, or None
        The base of the candidates that have one (see `ConditionalLogistic`).
    shots : sequence of int
        The numbers of points to compare at. A number is left out if fewer than 10 tasks have more
        points.
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
    classes_ : (K,) array
    weights_ : (shots, candidates) array
        The convex combination for each number of points.
    candidates_ : list of str
    errors_ : (shots, candidates) array
        Mean log losses on held-out tasks; nan if none could be held out.
    shots_ : (shots,) array
    report_ : str
        What was chosen, where and why.
    n_tasks_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> rng = np.random.default_rng(0)
    >>> s, X = rng.normal(size=60), rng.normal(size=(60, 8, 1))
    >>> y = rng.random((60, 8)) < 1 / (1 + np.exp(-3 * s[:, None] * X[:, :, 0]))
    >>> model = cm.AutoClassifier(shots=(0, 3)).fit(
    ...     X.reshape(-1, 1), y.ravel(), task=np.repeat(np.arange(60), 8),
    ...     side_info=cm.TaskTable(s[:, None], ids=range(60)),
    ... )
    >>> model.candidates_[int(model.weights_[0].argmax())]
    'conditional'
    >>> model.adapt(side_info=[1.0]).predict([[2.0], [-2.0]])
    array([ True, False])
    """

    @property
    def classes_(self) -> np.ndarray:
        """The classes (K,)."""
        return self.chosen_.classes

    _many_classes = True
    _kinds = Kinds(IndependentClassifier, PooledClassifier, ConditionalLogistic)

    def _criterion(self) -> Criterion:
        return LOG_LOSS

    def _too_few(self, given: Inputs) -> str:
        few = super()._too_few(given)
        if few:
            return few
        tasks = given.tasks
        task = np.repeat(np.arange(len(tasks)), tasks.sizes)
        codes = encode_labels(given.classes, given.classes)
        for label, name in zip(codes, given.classes.tolist(), strict=True):
            count = len(np.unique(task[tasks.y == label]))
            if count < FEWEST_TASKS:  # folds without the class could not be learned from
                where = pluralize(count, "task")
                return f"the class {show_id(name)} is in {where}, too few to hold any out"
        return ""

    def predict(self, X: Matrix, *, task: Ids = None, side_info: SideInfo = None) -> np.ndarray:
        """Predict classes (N,), each task by what was chosen for its number of points.

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
        """
        return decided(self._blended(X, task=task, side_info=side_info), self.classes_)

    def predict_proba(
        self, X: Matrix, *, task: Ids = None, side_info: SideInfo = None
    ) -> np.ndarray:
        """Return the probabilities of the classes (N, K), in the order of `classes_`.

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
        """
        return probabilities(self._blended(X, task=task, side_info=side_info), self.classes_)

    def decision_function(
        self, X: Matrix, *, task: Ids = None, side_info: SideInfo = None
    ) -> np.ndarray:
        """Return the log odds of the second of two classes (N,), or log probabilities (N, K).

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
        """
        answers = self._blended(X, task=task, side_info=side_info)
        return logit(answers) if answers.ndim == 1 else np.log(np.maximum(answers, LEAST))
