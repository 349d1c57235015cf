"""The convex surrogate to optimality, as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from condmeta.blas_threads import limit_threads
from condmeta.errors import ConvergenceWarning
from condmeta.fitted.tau import LinearTau
from condmeta.inner.algorithms import Batch
from condmeta.inner.batch import require_conjugate
from condmeta.learners.attributes import from_info
from condmeta.learners.learner import Learner
from condmeta.learners.model_file import storable
from condmeta.learners.parameters import POSITIVE, POSITIVE_OR_INF, jobs_of, or_word
from condmeta.learners.targets import Regressor
from condmeta.learners.training import Learned, Training
from condmeta.losses import get_loss
from condmeta.meta.erm import learn_map
from condmeta.meta.erm_choice import KAPPAS, PointSplit, choose, lam_grid
from condmeta.meta.rotation import Rotation
from condmeta.meta.selection import Selection
from condmeta.tasks.splits import fifths, fold_numbers
from condmeta.typing import Conditioning, FeatureMapLike, LossLike, MissingSide
from condmeta.warn import warn

SAMPLE = 300  # tasks that lam and kappa are chosen on


@storable(inner=Batch)
@dataclass(eq=False, repr=False)
class ConditionalERMRegressor(Regressor, Learner):
    r"""Learn where a task's linear model starts, by the exact minimum over all tasks at once.

    With phi = (Phi(s), 1), Phi in units of its root mean square, and W = (M, b), the map minimises

        F(W) = (1/T) sum_t min_v [(1/n_t) sum_i l(<x_ti, W phi_t + v>, y_ti) + lam/2 ||v||^2]
               + lam / (2 T) (kappa ||M||^2 + min(kappa, 10) ||b||^2),

    the objective that Algorithm 1 follows task by task, plus a ridge penalty on the map. The losses
    grow at most linearly, so heavy tails and outliers do little harm; "pinball" gives quantiles. A
    task's model is the exact biased regularised minimiser around tau(s) = W phi.

    Parameters
    ----------
    feature_map : "auto", None, a map, a transformer, or a list of them
        Phi: how side information becomes features. "auto" encodes the columns of the side table.
        With None, or without a side table, all tasks start from the same coefficients.
    loss : "absolute", "huber", "pinball", "epsilon_insensitive", or a loss object
        The squared loss works too; `ConditionalRidge` learns more from it.
    lam : "auto" or float in (0, inf)
        How strongly a task's model is pulled towards tau.
    kappa : "auto" or float in (0, inf]
        Ridge penalty on M, which weighs as much as kappa tasks. With infinity, M is zero and side
        information is not used.
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
        The map is within tol F of the minimum of F, certified by duality; a task's gap is at most
        tol times its mean loss at theta.
    max_iter : int
        The largest number of evaluations of F; each solves all tasks.

    Attributes
    ----------
    lam_, kappa_ : float
        As given, or chosen on held-out tasks: at most 300 tasks in five folds, each adapted to four
        fifths of its points and judged by the loss on the rest, for each fifth in turn. The largest
        lam within one standard error of the best is taken.
    choice_ : list of dict
        The pairs that were compared to the end with their mean losses, the best first.
    objective_ : float
        F at the map, in the learner's units.
    dual_gap_ : float
        A certified bound on F - min F.
    n_iter_ : int
        Evaluations of F.
    M_, b_ : (width, k) and (width,) arrays
        The map tau = M Phi + b, in the learner's units.
    theta_mean_ : array
        Tau at the mean training Phi, in the user's units, the intercept last.
    n_tasks_, n_features_in_ : int
        Tasks with points that the map was learned from, and features of X.
    feature_names_in_, side_features_ : names of the features of X (if it was a table), and of Phi
    y_offset_ : float
        What is subtracted from y.
    gap_ : (T,) array
        Duality gaps of the kept tasks.

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

    feature_map: FeatureMapLike = "auto"
    _: KW_ONLY
    loss: LossLike = "absolute"
    lam: float | Literal["auto"] = "auto"
    kappa: float | Literal["auto"] = "auto"
    conditioning: Conditioning = "shared"
    missing_side: MissingSide = "error"
    tol: float = 1e-6
    max_iter: int = 1000

    _rules = {"lam": or_word("auto", POSITIVE), "kappa": or_word("auto", POSITIVE_OR_INF)}
    lam_, kappa_, choice_ = from_info(), from_info(), from_info()
    objective_, dual_gap_, n_iter_ = from_info(), from_info(), from_info()

    def _learn(self, data: Training) -> Learned:
        loss, jobs = require_conjugate(get_loss(self.loss)), jobs_of(self)
        rotation = Rotation.learn(data.Phi, centre=False)
        with limit_threads(1):  # the matrices are small: threads of BLAS would only wait
            choice = self._choose(data, rotation, loss, jobs)
            learned = learn_map(
                data.rows, rotation.apply(data.Phi), loss, *choice.chosen, tol=self.tol,
                max_evaluations=self.max_iter, n_jobs=jobs,
            )  # fmt: skip
        if learned.gap > self.tol * learned.objective:
            warn(
                f"ConditionalERMRegressor stopped after {learned.passes} evaluations with "
                f"dual_gap_={learned.gap:.3g}, above tol times objective_={learned.objective:.3g}. "
                "Use a larger max_iter, tol or kappa.",
                ConvergenceWarning,
            )
        lam, kappa = choice.chosen
        info = {
            "lam_": lam,
            "kappa_": kappa,
            "choice_": choice.rows(),
            "objective_": learned.objective,
            "dual_gap_": learned.gap,
            "n_iter_": learned.passes,
        }
        tau = LinearTau(rotation.undo(learned.W), data.Phi.mean(axis=0))
        return Learned(tau, Batch(lam, self.loss, self.tol), info)

    def _choose(self, data: Training, rotation: Rotation, loss: Any, jobs: Any) -> Selection:
        """Choose lam and kappa on a sample of the tasks that does not depend on ids or orders."""
        sample, points = data.by_content(SAMPLE)
        Z = rotation.apply(data.Phi[sample])
        views = []
        for support, query in fifths(points):
            shown = Z
            if data.features is not None:
                shown = rotation.apply(data.features(sample, support))
            views.append(PointSplit(support, query, shown))
        return choose(
            points, Z, views, fold_numbers(len(sample)),
            lam_grid(data.rows, loss) if self.lam == "auto" else (float(self.lam),),
            KAPPAS if self.kappa == "auto" else (float(self.kappa),),
            loss, jobs,
        )  # fmt: skip
