"""Algorithm 1 with the paper's choice of (lam, meta_step) on held-out tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np

from condmeta.errors import DataError
from condmeta.inner.algorithms import get_inner
from condmeta.learners.attributes import from_info
from condmeta.learners.grid_trial import GridState, GridTrial, best_pair
from condmeta.learners.model_file import storable
from condmeta.learners.parameters import POSITIVES, one_of
from condmeta.learners.sgd import ConditionalSGD, ConditionalSGDRegressor
from condmeta.learners.targets import Regressor
from condmeta.learners.training import Learned, Training
from condmeta.meta.sgd import SGDState
from condmeta.tasks import TaskSet
from condmeta.tasks.splits import TaskSplit, as_split
from condmeta.typing import Ids, Matrix, RandomState, Search, SideInfo, Splitter, Values

GRID = tuple(np.logspace(-5, 5, 14))
ETA = 3  # halving keeps one pair in three from rung to rung
RUNGS = 3  # rungs before the last one


@storable(state=SGDState)
@dataclass(eq=False, repr=False)
class ConditionalSGDRegressorCV(Regressor, ConditionalSGD):
    """Choose lam and meta_step on held-out tasks, then learn the map from all of them.

    For each split whole tasks are held out, and their points are cut into support and query.
    Algorithm 1 runs over the other tasks for every pair of the grid. The chosen pair has the least
    mean query loss after its average map was adapted on the support points (in a tie the larger
    lam, then the smaller step). This is the validation procedure of the paper.

    Parameters
    ----------
    feature_map : "auto", None, a map, a transformer, or a list of them
        Phi: how side information becomes features. "auto" encodes the columns of the side table.
        With None, or without a side table, all tasks start from the same coefficients.
    loss : "absolute", "squared", "huber", "pinball", "epsilon_insensitive", or a loss object
        The loss that the model of a task minimises: see `condmeta.losses`. An object of your own
        needs `value` and `slope`.
    inner : "online" or "batch"
        How a task with points Z is solved from its start theta, A(theta, Z): "online" makes one
        pass over the points (with one point the result is theta), "batch" finds the exact
        minimiser.
    averaging : "uniform" (mean of M_1..M_T), "linear" (weights t) or "last" (M_{T+1})
        Which map is learned: an average of the iterates, or the last one.
    gradient_at : "current" or "average"
        Where theta_t is taken; "average" is the mean of M_2..M_t, with "uniform" only.
    conditioning : "shared" or "split"
        For feature maps that read the points of a task. "shared": the same points give the features
        and train the task. "split": the first half gives the features, the rest trains. The paper's
        guarantees need "split", or side information from elsewhere.
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
    keep_tasks : bool
        Whether `fit` keeps the models of its tasks. If not, every task is new to `predict`.
    tol : float
        With inner="batch", the duality gap of a task is at most tol times its mean loss at theta.
    n_jobs : int, optional
        Number of threads that share the tasks; -1 uses all cores.
    lams, meta_steps : sequences of float
        The grid; 14 values each, 1e-5 to 1e5, by default.
    search : "grid" or "halving"
        All pairs to the end, or successive halving: every pair on the first tasks, then the best
        third of them on three times as many, and so on; about a ninth of the work.
    split : TaskSplit, int or None
        How tasks are held out; None holds out a quarter of them once, half of the points support.
    random_state : int, Generator, RandomState or None
        For the default split.

    Attributes
    ----------
    lam_, meta_step_ : float
        The chosen pair.
    cv_results_ : dict of arrays
        "param_lam", "param_meta_step", "split<i>_test_error", "mean_test_error", "std_test_error",
        "rank_test_error", "n_tasks" (the training tasks that the pair has seen; fewer than the rest
        where halving dropped it).
    learning_curve_ : (T,) array
        Mean query loss of the chosen pair after each training task, averaged over the splits.
    best_index_, best_error_

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(400, 2)), np.repeat(np.arange(40), 10)
    >>> learner = cm.ConditionalSGDRegressorCV(feature_map=None, random_state=0)
    >>> learner = learner.fit(X, X @ [3.0, -2.0], task=task)
    >>> len(learner.cv_results_["param_lam"]), len(learner.learning_curve_)
    (196, 30)
    """

    _: KW_ONLY
    lams: Sequence[float] | np.ndarray = GRID
    meta_steps: Sequence[float] | np.ndarray = GRID
    search: Search = "grid"
    split: Splitter | int | None = None
    random_state: RandomState = 0

    _rules = {"search": one_of(("grid", "halving")), "lams": POSITIVES, "meta_steps": POSITIVES}
    lam_, meta_step_, cv_results_ = from_info(), from_info(), from_info()
    learning_curve_, best_index_, best_error_ = from_info(), from_info(), from_info()

    def fit(
        self,
        X: Matrix,
        y: Values = None,
        *,
        task: Ids = None,
        side_info: SideInfo = None,
        **unknown: Any,
    ) -> Self:
        """Choose the pair on held-out tasks, then fit all tasks with it.

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

        Returns
        -------
        self
        """
        if not isinstance(self.inner, str):
            raise DataError("ConditionalSGDRegressorCV needs inner='online' or inner='batch'.")
        return super().fit(X, y, task=task, side_info=side_info, **unknown)

    def _learn(self, data: Training) -> Learned:
        if data.given_points is not None:
            raise DataError(
                "ConditionalSGDRegressorCV conditions on the points of the tasks themselves, or on "
                "a side table. Use ConditionalSGDRegressor for separate conditioning points."
            )
        info: dict[str, Any] = {"lam_": 1.0, "meta_step_": 0.1}
        if len(data.ids) > 1:  # with one task there is nothing to hold out
            info = self._choose(data.tasks)
        inner = get_inner(self.inner, info["lam_"], self.loss, self.tol)
        return self._run(data, inner, info["meta_step_"], None)._replace(info=info)

    def _choose(self, tasks: TaskSet) -> dict[str, Any]:
        """Return the chosen pair and the record of the search."""
        lam, meta_step = (grid.ravel() for grid in np.meshgrid(self.lams, self.meta_steps))
        lam, meta_step = lam.astype(float), meta_step.astype(float)
        split = self.split
        if split is None:
            split = TaskSplit(1, held_out=0.25, random_state=self.random_state)
        template = self._template()
        trials = [
            GridTrial.of(template, fold.train, [(fold.support, fold.query)])
            for fold in as_split(split).split(tasks)
        ]
        search = search_grid if self.search == "grid" else search_halving
        runs = [search(trial, lam, meta_step, self.n_jobs) for trial in trials]
        errors, seen = (np.array(part) for part in zip(*runs, strict=True))
        mean = errors.mean(axis=0)
        with np.errstate(invalid="ignore"):  # a pair that diverges has no standard deviation
            std = errors.std(axis=0)
        # A pair that halving dropped in some split was judged on fewer tasks: not a candidate.
        finished = (seen == seen.max(axis=1, keepdims=True)).all(axis=0)
        if not finished.any():
            finished = seen.sum(axis=0) == seen.sum(axis=0).max()
        best = best_pair(np.where(finished, mean, np.inf), lam, meta_step)
        pair = lam[best : best + 1], meta_step[best : best + 1]
        curves = [trial.curves(*pair, self.n_jobs)[0, :, 0] for trial in trials]
        shortest = min(map(len, curves))
        return {
            "lam_": float(lam[best]),
            "meta_step_": float(meta_step[best]),
            "best_index_": best,
            "best_error_": float(mean[best]),
            "cv_results_": {
                "param_lam": lam,
                "param_meta_step": meta_step,
                **{f"split{i}_test_error": row for i, row in enumerate(errors)},
                "mean_test_error": mean,
                "std_test_error": std,
                "rank_test_error": np.argsort(np.argsort(mean, kind="stable")) + 1,
                "n_tasks": seen.min(axis=0),
            },
            "learning_curve_": np.mean([curve[:shortest] for curve in curves], axis=0),
        }

    def _template(self) -> ConditionalSGDRegressor:
        """Return the learner that the trials prepare tasks with: the same, for any pair."""
        given = self.get_params(deep=False)
        names = ConditionalSGDRegressor().get_params(deep=False)
        shared = {name: given[name] for name in names if name in given}
        return ConditionalSGDRegressor(**(shared | {"task_column": None, "side_columns": None}))


def search_grid(
    trial: GridTrial, lam: Any, meta_step: Any, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the error of every pair after all tasks, and the tasks that it has seen."""
    return trial.finals(lam, meta_step, n_jobs)[0], np.full(len(lam), len(trial.Phi))


def search_halving(
    trial: GridTrial, lam: Any, meta_step: Any, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Run pairs on more and more tasks, going on with the best third at each rung."""
    T = len(trial.Phi)
    rungs = sorted({max(1, T // ETA**i) for i in range(RUNGS, -1, -1)})
    errors, seen = np.full(len(lam), np.inf), np.zeros(len(lam), int)
    alive = np.arange(len(lam))
    state = GridState.start(trial.Phi.shape[1], trial.train.X.shape[1], len(lam))
    for start, stop in pairwise([0, *rungs]):
        errors[alive] = trial.advance(
            state, slice(start, stop), lam[alive], meta_step[alive], n_jobs
        )[0]
        seen[alive] = stop
        if stop < T:
            keep = np.sort(np.argsort(errors[alive], kind="stable")[: max(1, len(alive) // ETA)])
            alive, state = alive[keep], state.lanes(keep)
    return errors, seen
