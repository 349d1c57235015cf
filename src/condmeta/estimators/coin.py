"""Coin betting as a scikit-learn estimator: streams of tasks, nothing to tune."""

from __future__ import annotations

import warnings

import numpy as np

from condmeta.errors import DivergenceError, FewTasksWarning
from condmeta.estimators.base import Prepared, TaskLearner
from condmeta.estimators.preparation import Preparation
from condmeta.estimators.streaming import Streamed
from condmeta.estimators.targets import RealTarget
from condmeta.inner.coin import Coin, row_norms
from condmeta.meta.coin import CoinState, coin_pass
from condmeta.tasks import TaskSet

ENOUGH_TASKS = 30


class ConditionalCoinRegressor(RealTarget, Streamed, TaskLearner):
    r"""Learn where a task's linear model starts from its side information, with nothing to tune.

    Every entry of the map is a gambler of its own, and so is every task (`condmeta.meta.coin`,
    `condmeta.inner.coin`): there is no lam, no meta_step, and no need of validation tasks. The loss
    is the absolute one, the map is the average of the iterates with weights t.

    The scales of the bets are those of the first tasks: of `fit`, or of the first call of
    `partial_fit`, which later calls go on with. Below 30 of them a `FewTasksWarning` says that
    little can be expected. x -> a x, y -> b y takes predictions to b times what they were, with
    scale="none" and without an intercept; for this, maps of points read rows divided by the longest
    and targets divided by their mean absolute value. All-zero X or y gives the map 0.

    Parameters
    ----------
    feature_map, conditioning, scale, fit_intercept, missing_side, task_column, side_columns,
    side_key, keep_tasks, n_jobs
        As for `ConditionalSGDRegressor`.

    Attributes
    ----------
    M_, b_ : (width, k) and (width,) arrays in the learner's units
    theta_mean_ : tau at the mean training Phi, user's units
    n_cut_rows_ : int
        Rows of later `partial_fit` calls that were longer than all rows of the first call. Inside
        the bets their norm was cut to that length; many of them ask for a new fit.
    n_tasks_, n_features_in_, feature_names_in_, side_features_, y_offset_

    Notes
    -----
    A pass over T tasks of n points costs O(T d (n + k)). No regret bound is claimed: the one of
    coin betting by coordinates needs the largest gradient beforehand, which is learned here.

    References
    ----------
    Orabona, Tommasi: Training Deep Networks without Learning Rates Through Coin Betting.
    Orabona, Pal: Coin Betting and Parameter-Free Online Learning.

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> rng = np.random.default_rng(0)
    >>> ids, s = np.repeat(np.arange(60), 5), rng.choice([-1.0, 1.0], size=60)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X @ [1.0, 0.0] + s[ids] * (X @ [0.0, 2.0])
    >>> side = cm.TaskTable(s[:, None], ids=np.arange(60))
    >>> learner = cm.ConditionalCoinRegressor().fit(X, y, task=ids, side_info=side)
    >>> learner.theta_for([1.0]).round(), learner.theta_for([-1.0]).round()
    (array([1., 2.]), array([ 1., -2.]))
    """

    loss = "absolute"

    def __init__(
        self,
        feature_map="auto",
        *,
        conditioning="shared",
        scale="none",
        fit_intercept=False,
        missing_side="error",
        task_column=None,
        side_columns=None,
        side_key=None,
        keep_tasks=True,
        n_jobs=None,
    ):
        self.feature_map = feature_map
        self.conditioning = conditioning
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.missing_side = missing_side
        self.task_column = task_column
        self.side_columns = side_columns
        self.side_key = side_key
        self.keep_tasks = keep_tasks
        self.n_jobs = n_jobs

    def _make_inner(self) -> Coin:
        state = self.__dict__.get("_state")
        return Coin(0.0, 0.0) if state is None else Coin(state.radius, state.stake)

    def _learn_preparation(self, tasks: TaskSet) -> Preparation:
        prep = super()._learn_preparation(tasks)
        prep.x_unit = float(row_norms(prep.scaled(tasks.X)).max(initial=0.0)) or 1.0
        prep.y_unit = float(np.abs(prep.target(tasks.y)).mean()) or 1.0
        return prep

    def _start_state(self, data: Prepared) -> CoinState:
        if len(data.ids) < ENOUGH_TASKS:
            warnings.warn(
                f"ConditionalCoinRegressor takes its scales from {len(data.ids)} tasks, and is "
                f"weak below {ENOUGH_TASKS}. Give fit, or the first call of partial_fit, more "
                "tasks, or use ConditionalSGDRegressorCV.",
                FewTasksWarning,
                stacklevel=4,
            )
        self.n_cut_rows_ = 0
        return CoinState.start(data.X, data.y, data.Phi)

    def _advance(self, state: CoinState | None, data: Prepared) -> None:
        """Run the tasks through the bets, from a copy of `state`, and set the map."""
        state = self._start_state(data) if state is None else state.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            coin_pass(*state, data.X, data.y, data.offsets, data.Phi)
            weights = state.map()
        if not (np.isfinite(weights).all() and np.isfinite(state.scales).all()):
            raise DivergenceError(
                "The bets leave the range of floating-point numbers. Divide X and y by their "
                "sizes, or use scale='standard'."
            )
        self.n_cut_rows_ += state.count_longer(data.X)
        self._state, self._weights, self._phi_mean = state, weights, state.phi_mean
        self._inner = self._make_inner()
        self._head = self._head._replace(inner=self._inner)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # one task is one pass of bets, and says so
        return tags
