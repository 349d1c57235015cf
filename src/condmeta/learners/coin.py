"""Coin betting as a scikit-learn estimator: streams of tasks, nothing to tune."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from condmeta.errors import DivergenceError, FewTasksWarning
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.tau import LinearTau
from condmeta.inner.coin import Coin
from condmeta.learners.attributes import from_info
from condmeta.learners.model_file import storable
from condmeta.learners.streams import StreamLearner, partial_fit
from condmeta.learners.targets import Regressor
from condmeta.learners.training import Learned, Training
from condmeta.meta.coin import CoinState, coin_pass
from condmeta.meta.coin_stake import STAKES, stake_errors
from condmeta.persistence.fields import number
from condmeta.text import pluralize
from condmeta.typing import Conditioning, FeatureMapLike, MissingSide, Scale
from condmeta.warn import warn

ENOUGH_TASKS = 30


@storable(inner=Coin, state=CoinState, info={"n_cut_rows_": number(low=0, whole=True)})
@dataclass(eq=False, repr=False)
class ConditionalCoinRegressor(Regressor, StreamLearner):
    r"""Learn where a task's linear model starts from its side information, with nothing to tune.

    The map is learned by coin betting: each of its entries is a gambler, and each task runs bets of
    its own (`condmeta.meta.coin`, `condmeta.inner.coin`). There is no lam, no meta_step, and no
    need for validation tasks; how much a task bets is learned from the training tasks. The loss is
    the absolute loss; the map is the average of the iterates with weights t.

    The scales of the bets come from the tasks of `fit`, or of the first call of `partial_fit`;
    later calls keep them. With fewer than 30 such tasks a `FewTasksWarning` is issued. Without an
    intercept and with scale="none", x -> a x and y -> b y multiplies predictions by b. For this
    property maps of points read rows divided by the longest row, and targets divided by their mean
    absolute value. If X or y is all zero, the map is 0.

    Parameters
    ----------
    feature_map : "auto", None, a map, a transformer, or a list of them
        Phi: how side information becomes features. "auto" encodes the columns of the side table.
        With None, or without a side table, all tasks start from the same coefficients.
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
    n_jobs : int, optional
        Number of threads that share the tasks; -1 uses all cores.

    Attributes
    ----------
    M_, b_ : (width, k) and (width,) arrays in the learner's units
    theta_mean_ : tau at the mean training Phi, user's units
    stake_ : float
        What the first bets of a task are multiplied by. It is chosen among 1/2, 1, 2, ..., 64: with
        it the training tasks, adapted to the first half of their points, have the smallest error on
        the second half.
    stake_errors_ : (8,) array
        These errors, summed over tasks, for the stakes 1, 1/2, 2, 4, ..., 64.
    n_cut_rows_ : int
        Rows of later `partial_fit` calls that were longer than all rows of the first call. The bets
        cut their norm to that length; if there are many, fit again.
    n_tasks_, n_features_in_, feature_names_in_, side_features_, y_offset_

    Notes
    -----
    A pass over T tasks of n points costs O(T d (n + k)). No regret bound is claimed: the bound for
    coin betting by coordinates assumes that the largest gradient is known; here it is learned.

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

    feature_map: FeatureMapLike = "auto"
    _: KW_ONLY
    conditioning: Conditioning = "shared"
    scale: Scale = "none"
    fit_intercept: bool = False
    missing_side: MissingSide = "error"

    loss = "absolute"
    _unit_free = True
    n_cut_rows_, stake_, stake_errors_ = from_info(), from_info(), from_info()
    partial_fit = partial_fit

    def _learn(self, data: Training, before: Fitted | None = None) -> Learned:
        """Run the tasks through the bets, from a copy of the state before."""
        X, y, offsets, _ = data.rows
        if before is None:
            state, cut = _start(data), 0
        else:
            state, cut = before.state.copy(), before.info["n_cut_rows_"]
        with np.errstate(over="ignore", invalid="ignore"):
            coin_pass(*state, X, y, offsets, data.Phi)
            weights = state.map()
        if not (np.isfinite(weights).all() and np.isfinite(state.scales).all()):
            raise DivergenceError(
                "The bets leave the range of floating-point numbers. Divide X and y by their "
                "sizes, or use scale='standard'."
            )
        tau = LinearTau(weights, state.phi_mean)
        info = {} if before is None else before.info
        errors = info.get("stake_errors_", 0.0) + stake_errors(
            tau.theta(data.Phi), X, y, offsets, state.radius, state.stake
        )
        stake = STAKES[int(np.argmin(errors))]
        info = {"stake_": stake, "stake_errors_": errors}
        info["n_cut_rows_"] = cut + state.count_longer(X)
        return Learned(tau, Coin(state.radius, stake * state.stake), info, state)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # one task is one pass of bets, which learns little
        return tags


def _start(data: Training) -> CoinState:
    if len(data.ids) < ENOUGH_TASKS:
        warn(
            "ConditionalCoinRegressor takes the scales of X and y from its first "
            f"{pluralize(len(data.ids), 'task')}, and predicts badly if there are fewer than "
            f"{ENOUGH_TASKS}. Give fit, or the first call of partial_fit, more tasks, or use "
            "ConditionalSGDRegressorCV.",
            FewTasksWarning,
        )
    return CoinState.start(data.rows.X, data.rows.y, data.Phi)
