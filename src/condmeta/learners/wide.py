"""`ConditionalRidge` on a table of many columns: see `condmeta.meta.wide` for the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from condmeta.blas_threads import limit_threads
from condmeta.fitted.change_of_scale import in_units_of_y
from condmeta.fitted.prepared import user_points
from condmeta.fitted.scales import Scales
from condmeta.fitted.tau import LinearTau
from condmeta.inner.low_rank import LowRankGaussian
from condmeta.learners.shared_columns import PLAIN, differing_columns
from condmeta.learners.training import Learned, Training
from condmeta.meta.ridge_choice import COLD_STARTS
from condmeta.meta.ridge_judge import BY_SIDE
from condmeta.meta.rotation import Rotation
from condmeta.meta.task_statistics import TaskStatistics
from condmeta.meta.wide import learn_wide
from condmeta.tasks.points import Points
from condmeta.tasks.splits import fold_numbers
from condmeta.tasks.weights import masses


def learn_wide_tasks(learner: Any, data: Training) -> Learned:
    """Learn the prior of a `ConditionalRidge` from the rows of tasks.

    The prior in the directions in which tasks differ is that of the same learner, fitted to the
    rows in these directions, so that its settings mean the same.
    """
    state, order = data.statistics, data.statistics.order()
    points, Phi, ids = state.whole.take(order), data.Phi[order], state.ids[order]
    points, y_scale = user_points(points, data.scales), data.scales.y_scale
    overall = Scales.learn(
        points.X, points.y, "none" if learner.scale == "rows" else learner.scale,
        learner.fit_intercept, np.mean, weight=masses(points.weight),
    )  # fmt: skip
    overall = replace(overall, y_scale=y_scale)
    rotation, cold_start = Rotation.learn(Phi), learner.cold_start
    Z = rotation.apply(Phi) * (learner.kappa != np.inf)  # an infinite kappa: no side information
    heads = clone(learner).set_params(scale="none", random="all", feature_map=None, **PLAIN)

    features = None if state.Phi is None else Phi

    def learn_heads(rows: Points) -> Learned:
        zero = np.zeros(rows.X.shape[1])
        scales = Scales("none", learner.fit_intercept, zero, zero + 1.0, 0.0, len(zero))
        statistics = TaskStatistics.of(ids, rows, None, features)
        return heads._learn(Training.of_statistics(statistics, Phi, scales))

    rows = points._replace(X=overall.rescaled(points.X), y=overall.target(points.y))
    with limit_threads(1):
        folds = fold_numbers(len(ids))
        columns = differing_columns(learner.random, data.names, learner.fit_intercept)
        cold_starts = tuple(COLD_STARTS) if cold_start == "auto" else (cold_start,)
        found = learn_wide(rows, Z, folds, learner.fit_intercept, learn_heads, columns, cold_starts)
    P, (tau, inner, info, _) = found.P, found.heads
    r = P.shape[1]
    W = rotation.undo(found.B) + tau.weights[:, :r] @ P.T
    factor = P @ inner.factor[:r]
    if learner.fit_intercept:
        W = np.hstack([W, tau.weights[:, r:]])
        factor = np.vstack([factor, inner.factor[r:]])
    change = overall, data.scales
    share, factor = COLD_STARTS[found.cold_start], in_scale(factor.T, *change).T
    W, cold = (
        in_scale(one, *change) for one in (W, (1 - share) * W + share * rotation.undo(found.pooled))
    )
    for one in (W, cold):
        one[-1, -1] += learner.fit_intercept * (overall.y_offset - data.scales.y_offset) / y_scale
    info = {name: value for name, value in info.items() if name != "H_"}
    info |= in_units_of_y(info["s2_"], info["objective_"], points.count.sum(), y_scale)
    info |= {"constant": overall.constant, "cold_start_": found.cold_start}
    if info["noise_"] == BY_SIDE:  # the columns that the heads do not read have one noise
        info["noise_"] = "shared"
    inner = LowRankGaussian(np.ascontiguousarray(factor), inner.s2, inner.own_noise)
    return Learned(LinearTau(W, Phi.mean(axis=0), cold if share else None), inner, info)


def in_scale(W: np.ndarray, one: Scales, other: Scales) -> np.ndarray:
    """Return differences of weights (m, width) of rows in the scale `one` as those in `other`."""
    d = len(one.x_mean)
    W = W.copy()
    if one.fit_intercept:
        W[:, d] += W[:, :d] @ ((other.x_mean - one.x_mean) / one.x_scale)
    W[:, :d] *= other.x_scale / one.x_scale
    return W
