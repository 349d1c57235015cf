"""The learned prior over task weights for two classes, as a scikit-learn estimator."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from condmeta.errors import DataError
from condmeta.estimators.base import Prepared, TaskLearner
from condmeta.estimators.collected import half_of, task_keys
from condmeta.estimators.on_base import OnBase
from condmeta.estimators.parameters import NON_NEGATIVE, jobs_of, one_of, or_auto
from condmeta.estimators.rotation import Rotation
from condmeta.estimators.targets import TwoClasses
from condmeta.estimators.weighted import Weighted
from condmeta.inner.bernoulli import Bernoulli, Covariances
from condmeta.inner.posterior import lower_root
from condmeta.meta.ascent import End
from condmeta.meta.logistic import learn_prior
from condmeta.meta.logistic_choice import Choice, Halves, choose
from condmeta.meta.prior import METRICS
from condmeta.meta.ridge_choice import FOLDS, KAPPAS
from condmeta.tasks import TaskSet

SAMPLE = 400  # tasks to choose by


class ConditionalLogistic(TwoClasses, Weighted, OnBase, TaskLearner):
    r"""Learn the prior of a task's weights for two classes; nothing to tune, calibrated.

    With phi = (Phi(s), 1) and W = (M, b), the weights and labels of task t are

        w_t ~ N(W phi_t, H),   P(y_ti = second class) = 1 / (1 + exp(-<x_ti, w_t>)),

    and W and H are learned from all tasks, by a variational bound of their likelihood. A task's
    model is the mean of w given its points; with none it is W phi = tau(s). Probabilities average
    over what the points, or their absence, leave open about w, so that they are not overconfident.

    Parameters
    ----------
    feature_map : "auto", None, a map, a transformer, or a list of them
        Phi. "auto" encodes a raw side table; without side information there is none.
    metric : "auto", "identity", "diagonal" or "full"
        The shape of H.
    kappa : "auto" or float in [0, inf]
        Ridge on the map, which is kappa tasks worth; infinity leaves the side information out.
    base : None, "boosting" or a scikit-learn classifier with predict_proba
        A model of (x, side columns) for all tasks. Its log odds of the second class, in training
        those of fits that have not seen the task, are one more input x of the heads, the last; the
        prior learns how far to trust them. "boosting" is scikit-learn's histogram boosting, and the
        only base that `save` can store.
    conditioning, missing_side, task_column, side_columns, side_key, keep_tasks, n_jobs
        As for `ConditionalSGDClassifier`.
    scale : "none", "standard" or "rows"
    fit_intercept : bool
    tol : float
        The fit ends when its gradient is below tol standard errors of every parameter.
    max_iter : int
        The most passes over the tasks.

    Attributes
    ----------
    metric_, kappa_ : what was chosen
        By the log loss on held-out tasks, each judged by half of its points; by the evidence if
        fewer than 20 tasks have points to judge by.
    choice_ : list of dict
        The candidates that were compared to the end, with their scores; the best stands first.
    H_ : (width, width) array
        Covariance of task weights around tau, in the learner's units.
    n_iter_ : int
    objective_ : float
    classes_, M_, b_, theta_mean_, n_tasks_, n_features_in_, feature_names_in_, side_features_
        As for `ConditionalSGDClassifier`.

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

    loss = "logistic"

    _special_rules = {"metric": or_auto(one_of(METRICS)), "kappa": or_auto(NON_NEGATIVE)}

    def __init__(
        self,
        feature_map="auto",
        *,
        metric="auto",
        kappa="auto",
        base=None,
        conditioning="shared",
        scale="standard",
        fit_intercept=True,
        missing_side="error",
        task_column=None,
        side_columns=None,
        side_key=None,
        keep_tasks=True,
        tol=1e-2,
        max_iter=300,
        n_jobs=None,
    ):
        self.feature_map = feature_map
        self.metric = metric
        self.kappa = kappa
        self.base = base
        self.conditioning = conditioning
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.missing_side = missing_side
        self.task_column = task_column
        self.side_columns = side_columns
        self.side_key = side_key
        self.keep_tasks = keep_tasks
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def _make_inner(self):
        return None  # known once the prior is learned

    def _restore_inner(self) -> Bernoulli:
        return Bernoulli(lower_root(self.H_))

    def _read_side(self, side_info, fmap, task_name):
        table, points = super()._read_side(side_info, fmap, task_name)
        if points is not None and self.base is not None:
            raise DataError(
                "side_info holds conditioning points, for which a base has no log odds. Use "
                "base=None, or let the map read the task's own points."
            )
        return table, points

    def _learn_from(self, tasks: TaskSet, points: TaskSet | None) -> Prepared:
        """Choose on a sample of the tasks, then fit to all."""
        data = self._prepare(tasks, points)
        self._phi_mean = data.Phi.mean(axis=0)
        rotation = Rotation.learn(data.Phi)
        whole, Z = data.points, rotation.apply(data.Phi)
        jobs = jobs_of(self)
        with threadpool_limits(1):  # the matrices are small: threads of BLAS would only wait
            choice = self._choose(tasks, points, data, rotation)
            end = End(self.tol, self.max_iter)
            learned = learn_prior(whole, Z, *choice.chosen, choice.start, end=end, n_jobs=jobs)
        self.metric_, self.kappa_ = choice.chosen
        self.choice_ = [
            candidate._asdict() | {"score": score}
            for candidate, score in sorted(choice.scores.items(), key=lambda item: item[1])
        ]
        self.n_iter_, self.objective_ = learned.passes, learned.objective
        self.H_, self._weights = learned.prior.H, rotation.undo(learned.prior.W)
        self._inner = self._restore_inner()
        self._head = self._make_head(self._head.preparation, self._head.feature_names)
        return data

    def _choose(self, tasks: TaskSet, points, data: Prepared, rotation: Rotation) -> Choice:
        """Choose on tasks that do not depend on the order in which they came."""
        sample = np.argsort(task_keys(data.ids), kind="stable")[:SAMPLE]
        support, query = (half_of(data.points, sample, half) for half in (True, False))
        Z = rotation.apply(data.Phi[sample])
        shown = Z
        if self._map.reads_points and points is None and self.conditioning == "shared":
            prep = self._head.preparation
            X = support.X[:, : len(prep.x_mean)]
            own = *prep.for_maps(X, support.y), support.offsets, support.weight
            shown = rotation.apply(self._features(data.ids[sample], tasks.side, own))
        return choose(
            Halves(data.points.take(sample), support, query), Z, shown,
            np.arange(len(sample)) % FOLDS,
            tuple(METRICS) if self.metric == "auto" else (self.metric,),
            KAPPAS if self.kappa == "auto" else (float(self.kappa),),
            jobs_of(self),
        )  # fmt: skip

    def predict_proba(self, X, *, task=None, side_info=None) -> np.ndarray:
        """Return the probabilities of the two classes (N, 2), in the order of `classes_`.

        They average over the posterior of the task's weights; of a task without points, over
        N(tau, H). The class of the larger one is that of `predict`. They hold as far as the model
        does; `conditioning="shared"` with maps of points makes them too sure.
        """
        call = self._call_rows(X, task, side_info)
        state = self._covariances(self._whose(call)[0])
        return call.restore(self._head.probabilities(*self._models_of(call), state))

    def _covariances(self, ids) -> Covariances:
        """Return the covariances of the weights of tasks; H for those without points."""
        covariance = np.repeat(self.H_[None], len(ids), axis=0)
        if self._store is not None:
            at = self._store.positions(ids.tolist())
            covariance[at >= 0] = self._store.state.covariance[at[at >= 0]]
        return Covariances(covariance)
