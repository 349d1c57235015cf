"""The learned prior over task weights, as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from condmeta.errors import DataError
from condmeta.fitted.change_of_scale import ChangeOfScale
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.scales import Scales
from condmeta.fitted.target import TRANSFORMS
from condmeta.fitted.tau import LinearTau
from condmeta.inner.context import Context
from condmeta.inner.posterior import Gaussian, lower_root
from condmeta.learners.inputs import (
    is_nameless,
    minus_offset,
    read_offset,
    read_tasks,
    read_training,
)
from condmeta.learners.learn import Learned, Training, begin, on_target_scale
from condmeta.learners.learner import Learner, found
from condmeta.learners.model_file import storable
from condmeta.learners.parameters import NON_NEGATIVE, check_learner, jobs_of, one_of, or_word
from condmeta.learners.targets import Regressor
from condmeta.meta.ascent import Stopping
from condmeta.meta.context import learn_context
from condmeta.meta.pooled_map import pooled_map
from condmeta.meta.prior import METRICS, LearnedPrior
from condmeta.meta.ridge import learn_prior
from condmeta.meta.ridge_choice import COLD_STARTS, NOISES, Options, RidgeChoice, choose
from condmeta.meta.ridge_judge import ROUGH, HeldOutFeatures, SplitStatistics
from condmeta.meta.rotation import Rotation
from condmeta.meta.task_statistics import scaled_statistics


@storable
@dataclass(eq=False, repr=False)
class ConditionalRidge(Regressor, Learner):
    r"""Learn the prior of a task's weights from its side information; all settings are automatic.

    With phi = (Phi(s), 1) and W = (M, b), the weights and labels of task t are

        w_t ~ N(W phi_t, H),   y_ti ~ N(<x_ti, w_t>, s2_t),

    and W, H and the noise maximise the likelihood of all tasks. A task's model is the posterior
    mean of w given its points. Without points it is W phi = tau(s), or a pooled regression where
    that is better (`cold_start`). The paper's biased regularisation is the case H = s2/(n lam) I.

    Parameters
    ----------
    feature_map : "auto", None, a map, a transformer, or a list of them
        Phi, the features of the side information. "auto" encodes a raw side table; None, or no side
        table, means no features.
    metric : "auto", "identity", "diagonal" or "full"
        The form of the covariance H: a multiple of the identity, diagonal, or any.
    noise : "auto", "shared" or "per_task"
        Whether all tasks share one noise variance s2, or each task has its own.
    kappa : "auto" or float in [0, inf]
        Ridge penalty on the map M; it counts as much as kappa tasks. With infinity M is zero, and
        the side information is not used.
    base : None, "boosting" or a scikit-learn regressor
        A shared model of x and the side columns, fitted to all tasks. The prior is learned from its
        residuals, and predictions are the sum of both; `coef_` is then the task's own part. In
        training, the residuals of a task come from fits without this task. "boosting" is
        scikit-learn's histogram boosting, and the only base that `save` can store.
    x_transform : transformer, optional
        A scikit-learn transformer of X (splines, interactions, one-hot), fitted by `fit`. It lets a
        task's model be non-linear in x; `coef_` has one entry for each column that it returns.
    context : "auto" or bool
        Whether the level of a task may go with the means of its inputs, beside its side
        information. With few points the coefficients of a task are then close to those of a pooled
        regression, and with more points they pass to those within tasks.
    cold_start : "auto", "prior", "pooled" or "mixture"
        The model of a task without points: tau(s); a least-squares map of x and the side features,
        fitted to the rows of all tasks; or the mean of both.
    y_transform : None, "log" or "yeo-johnson"
        The scale on which y is modelled. Predictions are labels again, medians instead of means;
        coefficients are on the scale.
    conditioning, missing_side, task_column, side_columns, side_key, keep_tasks, n_jobs
        As for `ConditionalSGDRegressor`.
    scale : "none", "standard" or "rows"
    fit_intercept : bool
    tol : float
        The fit stops when a step would change no parameter by more than tol standard errors.
    max_iter : int
        The largest number of passes over the tasks.

    Attributes
    ----------
    metric_, noise_, kappa_, context_, cold_start_ : the chosen settings
        Chosen on held-out tasks. Half of the points of such a task are predicted from none, 1, 2, 5
        and all points of the other half. If fewer than 20 tasks have points to predict, the
        evidence (marginal likelihood) decides on metric and kappa instead, and there is no context.
    choice_ : list of dict
        The candidates that were compared to the end, with their scores, the best first.
    H_ : (width, width) array
        Covariance of task weights around tau, in the learner's units.
    s2_ : float
        Variance of the noise.
    n_iter_ : int
    objective_ : float
        The log likelihood of all labels, less the penalty on the map.
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

    feature_map: Any = "auto"
    _: KW_ONLY
    metric: Any = "auto"
    noise: Any = "auto"
    kappa: Any = "auto"
    base: Any = None
    x_transform: Any = None
    context: Any = "auto"
    cold_start: str = "auto"
    y_transform: str | None = None
    conditioning: str = "shared"
    missing_side: str = "error"
    tol: float = 1e-2
    max_iter: int = 300

    _rules = {
        "metric": or_word("auto", one_of(METRICS)),
        "noise": or_word("auto", one_of(NOISES)),
        "kappa": or_word("auto", NON_NEGATIVE),
        "context": one_of(("auto", False, True)),
        "cold_start": one_of(("auto", *COLD_STARTS)),
        "y_transform": one_of((None, *TRANSFORMS)),
    }
    _by_statistics = True
    metric_, noise_, kappa_, context_ = found(), found(), found(), found()
    cold_start_, choice_ = found(), found()
    H_, s2_, n_iter_, objective_ = found(), found(), found(), found()

    def fit(self, X, y=None, *, task=None, side_info=None, offset=None, sample_weight=None):
        """Learn the prior from many tasks, then every task's model from it.

        Parameters
        ----------
        X, y, task, side_info : as for `ConditionalSGDRegressor.fit`
        offset : (N,) array, optional
            Predictions of a model of the user's own for the rows: the prior is learned from y -
            offset. That model must not have seen the row's task. Give the offset to `adapt`,
            `update` and `predict` as well.
        sample_weight : (N,) array, optional
            How often each row counts: 2 is the row twice, 0 is no row.

        Returns
        -------
        self
        """
        call = {"task": task, "side_info": side_info, "sample_weight": sample_weight}
        return super().fit(X, minus_offset(y, offset), **call)

    def adapt(self, X=None, y=None, *, task=None, side_info=None, offset=None, sample_weight=None):
        """Solve new tasks (see `ConditionalSGDRegressor.adapt`); offset and weights as in `fit`.

        The models that it returns predict without the offset: add it to their predictions.
        """
        call = {"task": task, "side_info": side_info, "sample_weight": sample_weight}
        return super().adapt(X, minus_offset(y, offset), **call)

    def update(self, X, y=None, *, task=None, side_info=None, offset=None, sample_weight=None):
        """Add points to known tasks, enrol new ones; tau stays. Offset and weights as in `fit`."""
        call = {"task": task, "side_info": side_info, "sample_weight": sample_weight}
        return super().update(X, minus_offset(y, offset), **call)

    def partial_fit(self, X, y=None, *, task=None, side_info=None, sample_weight=None):
        """Take in further tasks, each seen once and whole; the prior is learned at its first use.

        Chunks only add statistics, so that any chunks give what one `fit` gives, to rounding; maps
        of points read the scale of the first call. A task that is known already is an error that
        names `update`. `sample_weight` (N,) as in `fit`.

        Returns
        -------
        self
        """
        self._model = collect_more(self, X, y, task, side_info, sample_weight)
        return self

    def predict(self, X, *, task=None, side_info=None, offset=None, return_std=False):
        """Predict rows, each by the model of its task (see `ConditionalSGDRegressor.predict`).

        Parameters
        ----------
        offset : (N,) array, optional
            Added to the predictions (see `fit`).
        return_std : bool
            Whether to return also the standard deviation (N,) of a new label: the noise, and the
            uncertainty about the task's weights given its points. It is valid as far as the model
            is; `conditioning="shared"` with maps of points makes it too small.
        """
        rows = self._read_rows(X, task, side_info)
        predicted = self.fitted_.predict(rows, jobs_of(self))
        if offset is not None:
            predicted = predicted + read_offset(offset, len(predicted))
        return (predicted, self.fitted_.std(rows)) if return_std else predicted

    def _learn(self, data: Training) -> Learned:
        """Choose settings and learn the prior, in the scales of all rows.

        The scales that `data` has are those of the first call; the result is in these.
        """
        state, Phi = data.statistics, data.Phi
        order = state.order()
        rotation = Rotation.learn(Phi[order])
        moments = state.whole.overall(order)
        overall = Scales.of_moments(*moments, self.scale, self.fit_intercept)
        with threadpool_limits(1):  # the matrices are small: threads of BLAS would only wait
            found = self._learn_prior(state, order, rotation, overall, Phi)
        choice, learned, context, cold = found
        change = ChangeOfScale.between(overall, data.scales)
        prior, (metric, noise, kappa) = learned.prior, choice.selection.chosen
        H = change.covariance(prior.H)
        info = {
            "metric_": metric,
            "noise_": noise,
            "kappa_": kappa,
            "context_": context is not None,
            "cold_start_": choice.cold_start,
            "choice_": choice.selection.rows(),
            "H_": H,
            "s2_": prior.s2,
            "n_iter_": learned.passes,
            "objective_": learned.objective,
        }
        W, cold = (None if w is None else change.map(rotation.undo(w)) for w in (prior.W, cold))
        context = None if context is None else change.context(context)
        inner = Gaussian(lower_root(H), prior.s2, noise == "per_task", context)
        return Learned(LinearTau(W, Phi[order].mean(axis=0), cold), inner, info)

    def _learn_prior(self, state, order, rotation, overall, Phi) -> LearnedMaps:
        """Choose on the sample, then fit to all tasks."""
        jobs, m = jobs_of(self), len(state.sample)  # the first tasks of `order`
        whole, Z = scaled_statistics(state.whole, overall, order), rotation.apply(Phi[order])
        *few, support, query = (
            scaled_statistics(part, overall) for part in (*state.few, state.support, state.query)
        )
        shown = HeldOutFeatures(Z[:m], Z[:m])
        if state.Phi is not None:  # a task without points has the mean features, which are zero
            shown = HeldOutFeatures(rotation.apply(state.Phi_support), np.zeros_like(Z[:m]))
        given = self.metric, self.noise, self.kappa, self.context, self.cold_start
        options = Options(*(
            every if value == "auto" else (value,)
            for value, every in zip(given, Options(), strict=True)
        ))  # fmt: skip
        parts = SplitStatistics(whole.take(slice(m)), (*few, support), query)
        choice = choose(parts, Z[:m], shown, state.folds(), options, self.fit_intercept, jobs)
        metric, _, kappa = choice.selection.chosen
        start, some = choice.selection.start, m
        while some < len(order):  # fit ever more tasks, each time from the fit before
            part = whole.take(slice(some)), Z[:some]
            start = learn_prior(*part, metric, kappa, start, stopping=ROUGH, n_jobs=jobs).prior
            some *= 10
        stopping = Stopping(self.tol, self.max_iter)
        learned = learn_prior(whole, Z, metric, kappa, start, stopping=stopping, n_jobs=jobs)
        context, cold = None, None
        if choice.context:

            def refit(stats, prior):
                return learn_prior(
                    stats, Z, metric, kappa, prior, stopping=ROUGH, n_jobs=jobs
                ).prior

            prior, context = learn_context(whole, learned.prior, Z, refit, jobs)
            learned = learned._replace(prior=prior)
        if context is not None:
            cold = learned.prior.W.copy()
            cold[-1] += context.start()
        if choice.pooled is not None:
            share = COLD_STARTS[choice.cold_start]
            start = learned.prior.W if cold is None else cold
            cold = (1 - share) * start + share * pooled_map(whole, Z, choice.pooled)
        return LearnedMaps(choice, learned, context, cold)


class LearnedMaps(NamedTuple):
    """What `ConditionalRidge` learns, in the scales of all rows and the coordinates of Phi.

    `cold` (k+1, width) is the map for tasks without points, None for the map of the prior.
    """

    choice: RidgeChoice
    learned: LearnedPrior
    context: Context | None
    cold: np.ndarray | None


def collect_more(learner: ConditionalRidge, X, y, task, side_info, weight) -> Fitted:
    """Return the value with the statistics of further tasks; tau is None until it is needed."""
    if learner.base is not None:
        raise DataError("A base needs the rows of all tasks at once: use fit, or base=None.")
    before = learner._model
    if before is None:
        check_learner(learner)
        given = on_target_scale(learner, read_training(learner, X, y, task, side_info, weight))
        start = begin(learner, given, validate=True)
        return start._replace(state=start.collect(given.tasks, given.points))
    if before.state is None:
        raise DataError(
            "This model was saved without the statistics that partial_fit needs. Save it with "
            "tasks=True and resume=True, or fit it again with all tasks."
        )
    if is_nameless(learner, X, task):  # one more task without an id: a number that is free
        taken = set(before.state.ids.tolist())
        task = np.full(len(X), next(i for i in count(len(taken)) if i not in taken))
    tasks, points = read_tasks(learner, before, X, y, task, side_info, weight)
    known = "Use update to add points to tasks that are known."
    before.state.refuse_known(tasks.ids, known)
    more = before.collect(before.past_shared_model(tasks), points)
    return before._replace(state=before.state.join(more), tau=None)
