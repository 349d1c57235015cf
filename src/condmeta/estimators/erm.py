"""The convex surrogate to optimality, as a scikit-learn estimator."""

from __future__ import annotations

import warnings

import numpy as np
from threadpoolctl import threadpool_limits

from condmeta.errors import ConvergenceWarning
from condmeta.estimators.base import Prepared, TaskLearner
from condmeta.estimators.collected import task_keys
from condmeta.estimators.parameters import POSITIVE, POSITIVE_OR_INF, jobs_of, or_auto
from condmeta.estimators.rotation import Rotation
from condmeta.estimators.targets import RealTarget
from condmeta.estimators.weighted import Weighted
from condmeta.inner.algorithms import Batch
from condmeta.meta.erm import learn_map
from condmeta.meta.erm_choice import KAPPAS, Candidate, View, choose, fifths, lam_grid
from condmeta.meta.points import WeightedPoints
from condmeta.meta.ridge_choice import FOLDS
from condmeta.tasks import TaskSet

SAMPLE = 300  # tasks that lam and kappa are chosen on


class ConditionalERMRegressor(RealTarget, Weighted, TaskLearner):
    r"""Learn where a task's linear model starts, by the exact minimum over all tasks at once.

    With phi = (Phi(s), 1), Phi in units of its root mean square, and W = (M, b), the map minimises

        F(W) = (1/T) sum_t min_v [(1/n_t) sum_i l(<x_ti, W phi_t + v>, y_ti) + lam/2 ||v||^2]
               + lam / (2 T) (kappa ||M||^2 + min(kappa, 10) ||b||^2),

    the objective that Algorithm 1 follows by single steps, with a ridge on the map. The losses
    grow at most linearly, so that heavy tails and outliers do little harm; "pinball" gives
    quantiles. A task's model is the exact biased regularised minimiser around tau(s) = W phi.

    Parameters
    ----------
    feature_map : "auto", None, a map, a transformer, or a list of them
        Phi. "auto" encodes a raw side table; without side information there is none.
    loss : "absolute", "huber", "pinball", "epsilon_insensitive", or a loss object
        The squared loss works too; `ConditionalRidge` learns more from it.
    lam : "auto" or float in (0, inf)
        Strength of the pull of a task towards tau.
    kappa : "auto" or float in (0, inf]
        Ridge on M, which is kappa tasks worth; infinity leaves the side information out.
    conditioning, missing_side, task_column, side_columns, side_key, keep_tasks, n_jobs
        As for `ConditionalSGDRegressor`.
    scale : "none", "standard" or "rows"
    fit_intercept : bool
    tol : float
        The map is within tol F of the minimum of F, certified by duality; a task's gap is at most
        tol times its mean loss at theta.
    max_iter : int
        The most evaluations of F, each a solve of all tasks.

    Attributes
    ----------
    lam_, kappa_ : float
        Given, or chosen on held-out tasks (at most 300 of the training tasks, in five folds), each
        adapted to four fifths of its points and judged by the loss on the rest, in turn: the
        largest lam that is as good as the best up to a standard error.
    choice_ : list of dict
        The pairs that were compared to the end with their mean losses, the best first.
    objective_ : float
        F at the map, in the learner's units.
    dual_gap_ : float
        A certified bound on F - min F.
    n_iter_ : int
        Evaluations of F.
    M_, b_, theta_mean_, n_tasks_, n_features_in_, feature_names_in_, side_features_, y_offset_,
    gap_
        As for `ConditionalSGDRegressor`.

    Notes
    -----
    An evaluation of F costs a batch solve for each task and O(T k d). With more side features than
    tasks, k becomes the number of tasks.

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> rng = np.random.default_rng(0)
    >>> ids, s = np.repeat(np.arange(40), 6), rng.normal(size=40)
    >>> X = rng.normal(size=(240, 1))
    >>> y = 3 * s[ids] * X[:, 0] + 0.1 * rng.standard_t(1.5, size=240)  # heavy tails
    >>> side = cm.TaskTable(s[:, None], ids=range(40))
    >>> model = cm.ConditionalERMRegressor().fit(X, y, task=ids, side_info=side)
    >>> bool(abs(model.adapt(side_info=[1.0]).coef_[0] - 3) < 0.1)  # no points: tau(s)
    True
    >>> model.dual_gap_ <= 1e-6 * model.objective_
    True
    """

    _special_rules = {"lam": or_auto(POSITIVE), "kappa": or_auto(POSITIVE_OR_INF)}

    def __init__(
        self,
        feature_map="auto",
        *,
        loss="absolute",
        lam="auto",
        kappa="auto",
        conditioning="shared",
        scale="standard",
        fit_intercept=True,
        missing_side="error",
        task_column=None,
        side_columns=None,
        side_key=None,
        keep_tasks=True,
        tol=1e-6,
        max_iter=1000,
        n_jobs=None,
    ):
        self.feature_map = feature_map
        self.loss = loss
        self.lam = lam
        self.kappa = kappa
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

    def _make_inner(self) -> Batch:
        """Return the inner algorithm; until lam is chosen it only stands for the loss."""
        return Batch(self.__dict__.get("lam_", 1.0), self.loss, self.tol)

    def _learn_from(self, tasks: TaskSet, points: TaskSet | None) -> Prepared:
        data = self._prepare(tasks, points)
        self._phi_mean = data.Phi.mean(axis=0)
        rotation = Rotation.learn(data.Phi, centre=False)
        loss, rows = self._inner.loss, data.points
        with threadpool_limits(1):  # the matrices are small: threads of BLAS would only wait
            chosen = self._choose(data, rows, rotation, tasks, points)
            learned = learn_map(
                rows, rotation.apply(data.Phi), loss, *chosen, tol=self.tol, most=self.max_iter,
                n_jobs=jobs_of(self),
            )  # fmt: skip
        self.lam_, self.kappa_ = chosen
        self.objective_, self.dual_gap_ = learned.objective, learned.gap
        self.n_iter_ = learned.passes
        self._warn_if_open()
        self._weights = rotation.undo(learned.W)
        self._inner = self._make_inner()
        self._head = self._make_head(self._head.preparation, self._head.feature_names)
        return data

    def _choose(self, data: Prepared, rows: WeightedPoints, rotation, tasks, given) -> Candidate:
        """Choose lam and kappa on a sample of the tasks that depends on their ids alone."""
        loss = self._inner.loss
        own = self._map.reads_points and given is None and self.conditioning == "shared"
        sample = np.argsort(task_keys(data.ids), kind="stable")[:SAMPLE]
        points, Z = rows.take(sample), rotation.apply(data.Phi[sample])
        views = []
        for support, query in fifths(points):
            shown = self._shown(data.ids[sample], tasks, support) if own else None
            views.append(View(support, query, Z if shown is None else rotation.apply(shown)))
        chosen, scores = choose(
            points, Z, views, np.arange(len(sample)) % FOLDS,
            lam_grid(rows, loss) if self.lam == "auto" else (float(self.lam),),
            KAPPAS if self.kappa == "auto" else (float(self.kappa),),
            loss, jobs_of(self),
        )  # fmt: skip
        self.choice_ = [
            candidate._asdict() | {"score": score}
            for candidate, score in sorted(scores.items(), key=lambda item: item[1])
        ]
        return chosen

    def _shown(self, ids, tasks: TaskSet, support: WeightedPoints) -> np.ndarray:
        """Return Phi of tasks that show these points alone."""
        rows = self._head.preparation.for_maps(support.X[:, : self.n_features_in_], support.y)
        return self._features(ids, tasks.side, (*rows, support.offsets, support.weight))

    def _warn_if_open(self) -> None:
        if self.dual_gap_ > self.tol * self.objective_:
            warnings.warn(
                f"ConditionalERMRegressor stopped after {self.n_iter_} evaluations with dual_gap_="
                f"{self.dual_gap_:.3g}, above tol times objective_={self.objective_:.3g}. Use a "
                "larger max_iter, tol or kappa.",
                ConvergenceWarning,
                stacklevel=5,
            )
