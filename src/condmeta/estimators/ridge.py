"""The learned prior over task weights, as a scikit-learn estimator."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from condmeta.errors import DataError
from condmeta.estimators.base import Prepared
from condmeta.estimators.collecting import Collecting
from condmeta.estimators.inputs import METADATA
from condmeta.estimators.offsets import read_offset, take_off
from condmeta.estimators.on_base import OnBase
from condmeta.estimators.parameters import NON_NEGATIVE, jobs_of, one_of, or_auto
from condmeta.estimators.preparation import Preparation
from condmeta.estimators.rotation import Rotation
from condmeta.estimators.targets import RealTarget
from condmeta.estimators.task_store import TaskStore
from condmeta.estimators.units import Exchange
from condmeta.inner.posterior import Gaussian, lower_root
from condmeta.inner.scatter import Scatter
from condmeta.inner.squared import SquaredState
from condmeta.meta.ascent import End
from condmeta.meta.prior import METRICS, Learned
from condmeta.meta.ridge import learn_prior
from condmeta.meta.ridge_choice import KAPPAS, LOOSE, NOISES, Choice, Halves, Shown, choose


class ConditionalRidge(RealTarget, OnBase, Collecting):
    r"""Learn the prior of a task's weights from its side information; nothing to tune.

    With phi = (Phi(s), 1) and W = (M, b), the weights and labels of task t are

        w_t ~ N(W phi_t, H),   y_ti ~ N(<x_ti, w_t>, s2_t),

    and W, H and the noise are learned from all tasks by EM. A task's model is the mean of w given
    its points; with none it is W phi = tau(s). The paper's biased regularisation is the case
    H = s2/(n lam) I.

    Parameters
    ----------
    feature_map : "auto", None, a map, a transformer, or a list of them
        Phi. "auto" encodes a raw side table; without side information there is none.
    metric : "auto", "identity", "diagonal" or "full"
        The shape of H.
    noise : "auto", "shared" or "per_task"
        Whether s2 is one number, or is settled with each task's own weights.
    kappa : "auto" or float in [0, inf]
        Ridge on the map, which is kappa tasks worth; infinity leaves the side information out.
    base : None, "boosting" or a scikit-learn regressor
        A model of (x, side columns) for all tasks, whose out-of-task residuals the prior is learned
        from; predictions add it again. "boosting" is scikit-learn's histogram boosting, and the
        only base that `save` can store. `coef_` is then what a task adds to the base.
    x_transform : transformer, optional
        A scikit-learn transformer of X (splines, interactions, one-hot), fitted by `fit`, so that
        heads may bend in x; `coef_` has one entry for each of its columns.
    conditioning, missing_side, task_column, side_columns, side_key, keep_tasks, n_jobs
        As for `ConditionalSGDRegressor`.
    scale : "none", "standard" or "rows"
    fit_intercept : bool
    tol : float
        The fit ends when the gradient is below tol standard errors of a parameter.
    max_iter : int
        The most passes over the tasks.

    Attributes
    ----------
    metric_, noise_, kappa_ : what was chosen
        On held-out tasks, each judged by half of its points, without and after adapting to the
        other half; by the evidence if fewer than 20 tasks have points.
    choice_ : list of dict
        The candidates that were compared to the end, with their scores; the best stands first.
    H_ : (width, width) array
        Covariance of task weights around tau, in the learner's units.
    s2_ : float
        Variance of the noise.
    n_iter_ : int
    objective_ : float
    M_, b_, theta_mean_, n_tasks_, n_features_in_, feature_names_in_, side_features_, y_offset_
        As for `ConditionalSGDRegressor`.

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> rng = np.random.default_rng(0)
    >>> s = rng.normal(size=60)
    >>> X = rng.normal(size=(60, 5, 1))
    >>> y = (3 * s[:, None] + 0.1 * rng.normal(size=(60, 5))) * X[:, :, 0]
    >>> model = cm.ConditionalRidge().fit(
    ...     X.reshape(-1, 1), y.ravel(), task=np.repeat(np.arange(60), 5),
    ...     side_info=cm.TaskTable(s[:, None], ids=range(60)),
    ... )
    >>> bool(abs(model.adapt(side_info=[1.0]).coef_[0] - 3) < 0.1)  # no points: tau(s)
    True
    """

    __metadata_request__predict = METADATA

    _special_rules = {
        "metric": or_auto(one_of(METRICS)),
        "noise": or_auto(one_of(NOISES)),
        "kappa": or_auto(NON_NEGATIVE),
    }

    def __init__(
        self,
        feature_map="auto",
        *,
        metric="auto",
        noise="auto",
        kappa="auto",
        base=None,
        x_transform=None,
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
        self.noise = noise
        self.kappa = kappa
        self.base = base
        self.x_transform = x_transform
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

    def fit(self, X, y=None, *, task=None, side_info=None, offset=None, sample_weight=None):
        """Learn the prior from many tasks, then every task's model from it.

        Parameters
        ----------
        X, y, task, side_info : as for `ConditionalSGDRegressor.fit`
        offset : (N,) array, optional
            What a model of the user's own predicts for the rows: the prior is learned from y -
            offset. It must not have seen the row's task, and goes with `adapt`, `update` and
            `predict` as well.
        sample_weight : (N,) array, optional
            How often each row counts: 2 is the row twice, 0 is no row.

        Returns
        -------
        self
        """
        call = {"task": task, "side_info": side_info, "sample_weight": sample_weight}
        return super().fit(X, take_off(y, offset), **call)

    def adapt(self, X=None, y=None, *, task=None, side_info=None, offset=None, sample_weight=None):
        """Solve new tasks (see `ConditionalSGDRegressor.adapt`); offset and weights as in `fit`.

        The models that it returns predict without the offset: add it to what they say.
        """
        call = {"task": task, "side_info": side_info, "sample_weight": sample_weight}
        return super().adapt(X, take_off(y, offset), **call)

    def update(self, X, y=None, *, task=None, side_info=None, offset=None, sample_weight=None):
        """Add points to known tasks, enrol new ones; tau stays. Offset and weights as in `fit`."""
        call = {"task": task, "side_info": side_info, "sample_weight": sample_weight}
        return super().update(X, take_off(y, offset), **call)

    def partial_fit(self, X, y=None, *, task=None, side_info=None, sample_weight=None):
        if self.base is not None:
            raise DataError("A base needs the rows of all tasks at once: use fit, or base=None.")
        return super().partial_fit(
            X, y, task=task, side_info=side_info, sample_weight=sample_weight
        )

    def _conclude(self) -> None:
        """Learn the prior from what was collected, and every task's model from it."""
        state, Phi = self._state, self._collected_features()
        order = state.order()
        rotation = Rotation.learn(Phi[order])
        overall, frozen = self._overall(order), self._head.preparation
        with threadpool_limits(1):  # the matrices are small: threads of BLAS would only wait
            choice, learned = self._learn_prior(order, rotation, overall, Phi)
        self.metric_, self.noise_, self.kappa_ = choice.chosen
        self.choice_ = [
            candidate._asdict() | {"score": score}
            for candidate, score in sorted(choice.scores.items(), key=lambda item: item[1])
        ]
        self.n_iter_, self.objective_ = learned.passes, learned.objective
        self.n_tasks_ = len(order)
        exchange = Exchange.between(overall, frozen)
        self.H_ = exchange.covariance(learned.prior.H)
        self.s2_ = learned.prior.s2
        self._weights = exchange.map(rotation.undo(learned.prior.W))
        self._phi_mean = Phi[order].mean(axis=0)
        self._inner = self._restore_inner()
        self._head = self._head._replace(inner=self._inner, resumable=not self._map.reads_points)
        self._store = None
        if self.keep_tasks:
            self._store = self._stored(state.ids, _in(frozen, state.whole), Phi)

    def _learn_prior(self, order, rotation, overall, Phi) -> tuple[Choice, Learned]:
        """Choose on the sample, then fit to all tasks."""
        state, jobs = self._state, jobs_of(self)
        m = len(state.sample)  # the first tasks of `order`
        whole, Z = _in(overall, state.whole, order), rotation.apply(Phi[order])
        halves = Halves(
            whole.take(slice(m)), _in(overall, state.support), _in(overall, state.query)
        )
        shown = Shown(Z[:m], Z[:m])
        if state.Phi is not None:  # without points a task has the mean features, zero here
            shown = Shown(rotation.apply(state.Phi_support), np.zeros_like(Z[:m]))
        choice = choose(
            halves, Z[:m], shown, state.folds(),
            tuple(METRICS) if self.metric == "auto" else (self.metric,),
            NOISES if self.noise == "auto" else (self.noise,),
            KAPPAS if self.kappa == "auto" else (float(self.kappa),),
            jobs,
        )  # fmt: skip
        metric, _, kappa = choice.chosen
        start, some = choice.start, m
        while some < len(order):  # ten times as many tasks, from where the fewer lead
            part = whole.take(slice(some)), Z[:some]
            start = learn_prior(*part, metric, kappa, start, end=LOOSE, n_jobs=jobs).prior
            some *= 10
        end = End(self.tol, self.max_iter)
        learned = learn_prior(whole, Z, metric, kappa, start, end=end, n_jobs=jobs)
        return choice, learned

    def _restore_inner(self) -> Gaussian:
        return Gaussian(lower_root(self.H_), self.s2_, self.noise_ == "per_task")

    def _solve(self, data: Prepared) -> TaskStore:
        return self._stored(data.ids, SquaredState.of(*data.points), data.Phi)

    def _stored(self, ids, stats: SquaredState, Phi) -> TaskStore:
        """Return the models of tasks, from their statistics."""
        theta, jobs = self._theta(Phi), jobs_of(self)
        coef = self._inner.posterior(stats, theta, jobs).mean
        own = self._inner.posterior(stats, np.zeros_like(theta), jobs).mean
        return TaskStore(ids, stats.count, theta, coef, own, None, stats, Phi=Phi)

    def predict(self, X, *, task=None, side_info=None, offset=None, return_std=False):
        """Predict rows, each by the model of its task (see `ConditionalSGDRegressor.predict`).

        Parameters
        ----------
        offset : (N,) array, optional
            Added to the predictions (see `fit`).
        return_std : bool
            Whether to return also the standard deviation (N,) of a new label: of the noise, and of
            what the task's points, or their absence, leave open about its weights. It holds as far
            as the model does; `conditioning="shared"` with maps of points makes it too small.
        """
        predicted = super().predict(X, task=task, side_info=side_info)
        if offset is not None:
            predicted = predicted + read_offset(offset, len(predicted))
        if not return_std:
            return predicted
        call = self._call_rows(X, task, side_info)
        ids, codes = self._whose(call)
        return predicted, call.restore(self._head.spread(call.X, codes, *self._behind(ids)))


def _in(preparation: Preparation, part: Scatter, at=None) -> SquaredState:
    """Return the statistics of prepared rows, of the tasks at positions `at`."""
    mean = np.append(preparation.x_mean, preparation.y_offset)
    return part.statistics(mean, preparation.x_scale, preparation.fit_intercept, at)
