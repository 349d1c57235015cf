"""The learned prior over task weights for two classes, as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal, Self

import numpy as np

from condmeta.fitted.kept_rows import KeptRows
from condmeta.fitted.task_model import TaskModel, TaskModels
from condmeta.inner.likelihoods import Binomial
from condmeta.inner.row_posterior import Bernoulli
from condmeta.learners.attributes import from_info
from condmeta.learners.gathered import gather_more
from condmeta.learners.labels import some_classes
from condmeta.learners.learner import Learner
from condmeta.learners.model_file import storable
from condmeta.learners.parameters import NON_NEGATIVE, one_of, or_word
from condmeta.learners.row_prior import learn_row_prior
from condmeta.learners.row_summary import summary
from condmeta.learners.shared_columns import is_random
from condmeta.learners.targets import Classifier
from condmeta.learners.training import Learned, Training
from condmeta.learners.writing import writing
from condmeta.meta.prior import METRICS
from condmeta.persistence.fields import floats
from condmeta.tasks.weights import weighted_by
from condmeta.typing import (
    Base,
    Conditioning,
    FeatureMapLike,
    Ids,
    Labels,
    Matrix,
    Metric,
    MissingSide,
    RandomColumns,
    SideInfo,
    Values,
)


@storable(inner=Bernoulli, state=KeptRows, info={"H_": floats("w w")})
@dataclass(eq=False, repr=False)
class ConditionalLogistic(Classifier, Learner):
    r"""Fit a logistic regression to each task, from all tasks together and their side information.

    With phi = (Phi(s), 1) and W = (M, b), the weights and labels of task t are

        w_t ~ N(W phi_t, H),   P(y_ti = second class) = 1 / (1 + exp(-<x_ti, w_t>)),

    and W and H maximise a variational bound of the likelihood of all tasks. A task's model is the
    posterior mean of w given its points; without points it is W phi = tau(s). Probabilities average
    over the posterior of w, so they are not overconfident for tasks with few points. The prior of a
    new task is N(tau, H + C), with C the covariance of tau because W was estimated. Settings that
    are about equally good on held-out tasks are averaged, W and H by their weights.

    The constant b has a weak prior, so that few tasks do not make probabilities too extreme. With
    a_j = sd(x_j) b_j for the q slopes, and the intercept b_0,

        -log p(b) = (q + 1) / 2 log(1 + a^T a) + log(1 + b_0^2).

    More than two classes are learned one against the rest, each with its own prior; their
    probabilities are divided by their sum. For classes with an order use `ConditionalOrdinal`.

    Parameters
    ----------
    feature_map : "auto", None, a map, a transformer, or a list of them
        Phi: how side information becomes features. "auto" encodes the columns of the side table.
        With None, or without a side table, all tasks start from the same coefficients.
    metric : "auto", "identity", "diagonal" or "full"
        The shape of the covariance H: a multiple of the identity, diagonal, or unrestricted.
    kappa : "auto" or float in [0, inf]
        Ridge penalty on the map M, which weighs as much as kappa tasks. With infinity, M is zero
        and side information is not used; 0 is maximum likelihood, without a prior of b.
    random : "all", "intercept" or list of columns
        Which coefficients may differ between tasks. "intercept": the intercept alone, (1 | g) of
        lme4; a list of names or positions: these columns, and the intercept if there is one. All
        other coefficients are the same for all tasks, do not depend on side information, and are
        not penalised. Settings are then not averaged.
    base : None, "boosting" or a scikit-learn classifier with predict_proba
        A shared model of x and the side columns, fitted to all tasks. Its log odds of the second
        class become the last feature of the models of tasks; its coefficient shows how far to trust
        the base. In training, the log odds of a task come from a base that was fitted without this
        task. "boosting" is scikit-learn's histogram boosting, and the only base that `save` can
        store.
    conditioning : "shared" or "split"
        For feature maps that read the points of a task. "shared": the same points give the features
        and train the task. "split": the first half gives the features, the rest trains. The paper's
        guarantees need "split", or side information from elsewhere.
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
    n_jobs : int, optional
        Number of threads that share the tasks; -1 uses all cores.
    scale : "none", "standard" or "rows"
        How features are scaled: not at all, by mean and standard deviation over all rows, or every
        row to norm 1. Coefficients are given in the user's units.
    fit_intercept : bool
        Whether models have an intercept. It is one more entry of w and theta, regularised like the
        others.
    tol : float
        The fit stops when a step would change no parameter by more than tol standard errors.
    max_iter : int
        The largest number of passes over the tasks.

    Attributes
    ----------
    metric_, kappa_ : the settings of largest weight
        With more than two classes these, and `choice_`, `n_iter_` and `objective_`, are lists with
        an entry for each class; `H_`, `M_`, `b_` and `theta_mean_` have a first axis of classes.
        Chosen by the log loss on held-out tasks: each half of the points of such a task is
        predicted without points, and after adapting to 1, 3 and all points of the other half. If
        fewer than 30 tasks have points to predict, the evidence (marginal likelihood) decides
        instead.
    choice_ : list of dict
        The candidates that were compared to the end, with their scores, the best first, and their
        weights in the average.
    H_ : (width, width) array
        Covariance of task weights around tau, in the learner's units.
    n_iter_ : int
    objective_ : float
        The bound of the log likelihood, less the penalty on the map, plus log p(b).
    classes_ : (K,) array
        The classes, sorted.
    M_, b_ : (width, k) and (width,) arrays
        The map tau = M Phi + b, in the learner's units.
    theta_mean_ : array
        Tau at the mean training Phi, in the user's units, the intercept last.
    n_tasks_, n_features_in_ : int
        Tasks with points that the map was learned from, and features of X.
    feature_names_in_, side_features_ : names of the features of X (if it was a table), and of Phi

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> rng = np.random.default_rng(0)
    >>> s, X = rng.normal(size=80), rng.normal(size=(80, 8, 1))
    >>> y = rng.random((80, 8)) < 1 / (1 + np.exp(-3 * s[:, None] * X[:, :, 0]))
    >>> model = cm.ConditionalLogistic().fit(
    ...     X.reshape(-1, 1), y.ravel(), task=np.repeat(np.arange(80), 8),
    ...     side_info=cm.TaskTable(s[:, None], ids=range(80)),
    ... )
    >>> new = model.adapt(side_info=[1.0])  # no points: tau(s)
    >>> new.predict([[2.0], [-2.0]]), bool(new.predict_proba([[2.0]])[0, 1] > 0.95)
    (array([ True, False]), True)
    """

    feature_map: FeatureMapLike = "auto"
    _: KW_ONLY
    metric: Metric = "auto"
    kappa: float | Literal["auto"] = "auto"
    random: RandomColumns = "all"
    base: Base = None
    conditioning: Conditioning = "shared"
    missing_side: MissingSide = "error"
    tol: float = 1e-2
    max_iter: int = 300

    loss = "logistic"
    _many_classes = True

    _rules = {
        "metric": or_word("auto", one_of(METRICS)),
        "kappa": or_word("auto", NON_NEGATIVE),
        "random": (is_random, "'all', 'intercept' or a list of columns"),
    }
    metric_, kappa_, choice_ = from_info(), from_info(), from_info()
    H_, n_iter_, objective_ = from_info(), from_info(), from_info()

    def fit(
        self, X: Matrix, y: Values = None, *, task: Ids = None, side_info: SideInfo = None,
        trials: Values = None, sample_weight: Values = None,
    ) -> Self:  # fmt: skip
        """Learn what tasks share, and then the model of each task.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The points of all tasks, with rows in any order. A TaskSet is passed alone, because it
            holds y and the task ids.
        y : (N,) array
            The class of each row; with `trials`, its number of successes.
        task : (N,) ids, optional
            The task of each row: strings, integers, dates, tuples; the name of a column of X; None
            means one task.
        side_info : table keyed by task id, optional
            One raw row for each task (see `TaskTable`), or a `TaskSet` of conditioning points. Ids
            without rows in X are kept as tasks without points.
        trials : (N,) array, optional
            For shares: how many trials each row has, y of which were successes. The row equals
            that many rows of the classes 0 and 1.
        sample_weight : (N,) array, optional
            How often each row counts: 2 counts as two equal rows, 0 as no row.

        Returns
        -------
        self
        """
        weight = weighted_by(sample_weight, trials, "trials")
        return super().fit(X, y, task=task, side_info=side_info, sample_weight=weight)

    def adapt(
        self, X: Matrix | None = None, y: Values = None, *, task: Ids = None,
        side_info: SideInfo = None,
        trials: Values = None, sample_weight: Values = None,
    ) -> TaskModel | TaskModels:  # fmt: skip
        """Return models of new tasks from a few points, or from none. The learner does not change.

        Parameters
        ----------
        X : (n, d) array, DataFrame or TaskSet, optional
            The points. Without any, the model has the starting coefficients tau(s).
        y : (n,) array, optional
            Their classes; with `trials`, their numbers of successes.
        task : (n,) ids, optional
            The task of each point. None means that all points belong to one task.
        side_info : row or table, optional
            For one task its row (a dict of columns, a Series, a sequence); with `task` a table
            keyed by task id, as in `fit`.
        trials : (n,) array, optional
            As in `fit`: how many trials each row has.
        sample_weight : (n,) array, optional
            How often each point counts: 2 is the point twice, 0 is no point.
        """
        weight = weighted_by(sample_weight, trials, "trials")
        return super().adapt(X, y, task=task, side_info=side_info, sample_weight=weight)

    def update(
        self, X: Matrix, y: Values = None, *, task: Ids = None, side_info: SideInfo = None,
        trials: Values = None, sample_weight: Values = None,
    ) -> Self:  # fmt: skip
        """Add points to known tasks and enrol new ones; the map tau stays as it is.

        The result equals adapting on all points at once: the model keeps the rows of its tasks.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            Further points of known tasks, and points of new ones.
        y : (N,) array
            The class of each row; with `trials`, its number of successes.
        task : (N,) ids, optional
            The task of each row: strings, integers, dates, tuples; the name of a column of X; None
            means one task.
        side_info : table keyed by task id, optional
            One raw row for each new task, as in `fit`.
        trials : (N,) array, optional
            As in `fit`: how many trials each row has.
        sample_weight : (N,) array, optional
            How often each row counts: 2 counts as two equal rows, 0 as no row.
        """
        weight = weighted_by(sample_weight, trials, "trials")
        return super().update(X, y, task=task, side_info=side_info, sample_weight=weight)

    def partial_fit(
        self, X: Matrix, y: Values = None, *, task: Ids = None, side_info: SideInfo = None,
        trials: Values = None, sample_weight: Values = None, classes: Labels = None,
    ) -> Self:  # fmt: skip
        """Add further tasks, each once and with all its rows; the prior is learned when first used.

        Calls only gather rows, so that any chunks give what one `fit` gives, to rounding. A task
        that is known already is an error that names `update`.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The points of all tasks, with rows in any order. A TaskSet is passed alone, because it
            holds y and the task ids.
        y : (N,) array
            The class of each row; with `trials`, its number of successes.
        task : (N,) ids, optional
            The task of each row: strings, integers, dates, tuples; the name of a column of X; None
            means one task.
        side_info : table keyed by task id, optional
            One raw row for each task (see `TaskTable`), or a `TaskSet` of conditioning points. Ids
            without rows in X are kept as tasks without points.
        trials : (N,) array, optional
            As in `fit`: how many trials each row has.
        sample_weight : (N,) array, optional
            How often each row counts: 2 counts as two equal rows, 0 as no row.
        classes : (K,) array, optional
            In the first call, all classes, if its rows may not hold them.

        Returns
        -------
        self
        """
        weight = weighted_by(sample_weight, trials, "trials")
        with writing(self):
            self._model = gather_more(
                self, self._model, X, y, task, side_info, weight,
                None if classes is None else some_classes(classes),
            )  # fmt: skip
        return self

    summary = summary

    def _learn(self, data: Training) -> Learned:
        tau, factor, _, info, spread, _ = learn_row_prior(self, data, Binomial)
        return Learned(tau, Bernoulli(factor, spread), info)

    def predict_proba(
        self, X: Matrix, *, task: Ids = None, side_info: SideInfo = None
    ) -> np.ndarray:
        """Return the probabilities of the classes (N, K), in the order of `classes_`.

        They average over the posterior of the task's weights; for a task without points, over
        N(tau, H + C). The most probable class is the one that `predict` returns. They are valid as
        far as the model is; `conditioning="shared"` with maps of points makes them overconfident.

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
        return super().predict_proba(X, task=task, side_info=side_info)
