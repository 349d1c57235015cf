"""The parameter `random`: some coefficients differ between tasks, the others are shared."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from condmeta.blas_threads import limit_threads
from condmeta.errors import DataError
from condmeta.fitted.change_of_scale import ChangeOfScale, in_units_of_y
from condmeta.fitted.scales import Scales
from condmeta.fitted.tau import LinearTau
from condmeta.inner.posterior import Gaussian, lower_root
from condmeta.learners.parameters import jobs_of
from condmeta.learners.training import Learned, Training
from condmeta.meta.ascent import Stopping
from condmeta.meta.prior import LearnedPrior
from condmeta.meta.ridge_judge import BY_SIDE, ROUGH
from condmeta.meta.rotation import Rotation
from condmeta.meta.shared_columns import SharedColumns, learn_shared
from condmeta.meta.task_statistics import scaled_statistics
from condmeta.text import pluralize

WORDS = "auto", "all", "intercept"
PLAIN = {"context": False, "cold_start": "prior"}  # these need the coefficients of all columns


def is_random(value: Any) -> bool:
    """Return whether a value can be the parameter `random`: a word, or columns."""
    if isinstance(value, str):
        return value in WORDS
    names = isinstance(value, (list, tuple)) and all(isinstance(v, str | Integral) for v in value)
    return names and len(value) > 0 and not any(isinstance(v, bool) for v in value)


def differing_columns(random: Any, names: list[str], intercept: bool) -> np.ndarray | None:
    """Return the positions of the columns that `random` names; None if all may differ."""
    if random in ("auto", "all"):
        return None
    if random == "intercept":
        if not intercept:
            raise DataError("random='intercept' needs fit_intercept=True: there is no intercept.")
        return np.empty(0, np.int64)
    return np.unique(np.concatenate([_positions(column, names) for column in random]))


def _positions(column: Any, names: list[str]) -> list[int]:
    """Return the positions of one column, or of all levels of an encoded one."""
    if isinstance(column, Integral):
        found = [int(column)] if 0 <= column < len(names) else []
    else:
        found = [j for j, name in enumerate(names) if name == column]
        found = found or [j for j, name in enumerate(names) if name.startswith(f"{column}=")]
    if not found:
        few = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
        raise DataError(
            f"random names {column!r}, which is not among the {pluralize(len(names), 'column')} "
            f"of X: {few}."
        )
    return found


def divide_columns(columns: np.ndarray, scales: Scales) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of coefficients that differ between tasks, and of those they share.

    The intercept, if there is one, is last among those that differ; constant columns are in
    neither.
    """
    kept, d = np.flatnonzero(scales.kept), len(scales.x_mean)
    own = np.intersect1d(np.append(columns, d), kept)
    if not len(own):
        raise DataError(
            "The columns that random names are constant, so no coefficient can differ between "
            "tasks: name others, or set fit_intercept=True."
        )
    return own, np.setdiff1d(kept, own)


class SomeColumns(NamedTuple):
    """What is learned if only some coefficients differ between tasks, in the scales of all rows.

    parts : SharedColumns, its `own` with the intercept; Z : (T, k) features of the tasks at `order`
    choice : what the learner finds for the labels less a first shared part
    beta, learned : the shared weights, and the prior of the others
    """

    order: np.ndarray
    rotation: Rotation
    overall: Scales
    parts: SharedColumns
    Z: np.ndarray
    choice: Learned
    beta: np.ndarray
    learned: LearnedPrior

    @classmethod
    def learn(cls, learner: Any, data: Training, columns: np.ndarray) -> SomeColumns:
        """Learn it; the settings are those that the learner chooses for y less the shared part."""
        state, order, Phi = data.statistics, data.statistics.order(), data.Phi
        overall = Scales.of_moments(*state.whole.overall(state.leaves(order)), data.scales)
        d, rotation = len(overall.x_mean), Rotation.learn(Phi[order])
        own, shared = divide_columns(columns, overall)
        parts = SharedColumns(scaled_statistics(state.whole, overall, order), shared, own)
        Z, jobs = rotation.apply(Phi[order]), jobs_of(learner)
        with limit_threads(1):
            kappa = 1.0 if Z.shape[1] else np.inf
            first = learn_shared(parts, Z, "diagonal", kappa, stopping=ROUGH, n_jobs=jobs)
            choice = _choose(learner, data, overall, own[own < d], shared, first.beta)
            if choice.info["noise_"] == BY_SIDE:  # it is shared in what follows
                choice.info["noise_"] = "shared"
            settings = choice.info["metric_"], choice.info["kappa_"]
            stopping = Stopping(learner.tol, learner.max_iter)
            found = learn_shared(parts, Z, *settings, first, stopping=stopping, n_jobs=jobs)
        return cls(order, rotation, overall, parts, Z, choice, *found)

    def tau_and_info(
        self, data: Training, W: np.ndarray, H: np.ndarray, s2: float, objective: float, passes: int
    ):
        """Return tau and the learner's attributes, from W (k+1, width) and H (width, width)."""
        whole, overall = data.statistics.whole, self.overall
        change = ChangeOfScale.between(overall, data.scales)
        objective = objective + whole.log_precisions.sum() / 2
        info = self.choice.info | in_units_of_y(
            s2, objective, whole.count.sum(), data.scales.y_scale
        )
        info |= {"H_": change.covariance(H), "n_iter_": passes, "constant": overall.constant}
        info["shared"] = ~np.isin(np.arange(overall.width), self.parts.own)
        return LinearTau(change.map(self.rotation.undo(W)), data.Phi[self.order].mean(axis=0)), info

    def without_levels(self, data: Training) -> Learned:
        """Return what `ConditionalRidge` learns."""
        (prior, *found), own, width = self.learned, self.parts.own, self.overall.width
        W, H = np.zeros((len(prior.W), width)), np.zeros((width, width))
        W[-1, self.parts.shared], W[:, own] = self.beta, prior.W
        H[np.ix_(own, own)] = prior.H
        tau, info = self.tau_and_info(data, W, H, prior.s2, *found)
        inner = Gaussian(lower_root(info["H_"]), prior.s2, info["noise_"] == "per_task")
        return Learned(tau, inner, info)


def learn_some_columns(learner: Any, data: Training, columns: np.ndarray) -> Learned:
    """Learn the prior of a `ConditionalRidge` if only some coefficients differ between tasks."""
    return SomeColumns.learn(learner, data, columns).without_levels(data)


def _choose(
    learner: Any, data: Training, overall: Scales, columns: Any, shared: Any, beta: Any
) -> Learned:
    """Return what the learner finds for the columns that may differ, and y - S beta."""
    d, r = len(overall.x_mean), len(columns)
    reduce = np.zeros((r + 1, d + 1))  # from (x, y) to the columns that differ, and what is left
    units = overall.units
    x_scale, mean = overall.x_scale / units[:d], np.append(overall.x_mean, overall.y_offset) / units
    reduce[np.arange(r), columns] = 1 / x_scale[columns]
    reduce[r, shared], reduce[r, d] = -beta / x_scale[shared], 1.0
    statistics = data.statistics.transformed(reduce, mean)
    zero = np.zeros(r)
    scales = Scales("none", learner.fit_intercept, zero, zero + 1.0, 0.0, r)
    heads = clone(learner).set_params(scale="none", random="all", **PLAIN)
    return heads._learn(data._replace(scales=scales, statistics=statistics))
