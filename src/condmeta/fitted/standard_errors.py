"""Standard errors of the map and of task coefficients, in the user's units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.groups import group_codes
from condmeta.fitted.kept_rows import KeptRows
from condmeta.fitted.known_statistics import known_statistics, own_statistics
from condmeta.fitted.prepared import scaled_rows
from condmeta.inner.drifting import DriftingGaussian
from condmeta.inner.low_rank import LowRankGaussian
from condmeta.inner.nested import NestedGaussian, NestedState
from condmeta.inner.posterior import Gaussian, lower_root
from condmeta.inner.row_posterior import (
    Ordinal,
    RowPosterior,
    find_posteriors,
    weighted_statistics,
)
from condmeta.inner.squared import NoisyState, SquaredState
from condmeta.inner.tree import Tree
from condmeta.meta.levels_covariance import LevelsCovariance, levels_covariance
from condmeta.meta.map_covariance import MapCovariance, coefficient_covariances, map_covariance
from condmeta.meta.open_cuts import OpenCuts
from condmeta.meta.rotation import Rotation
from condmeta.meta.wide_tasks import WIDE

MANY = 50  # tasks from which robust standard errors are the default
BLOCK = 1 << 12  # tasks whose covariances are computed at once


class MapErrors(NamedTuple):
    """How well the tasks determine the map of a fitted value.

    covariance : MapCovariance in the coordinates of `rotation`; robust : whether it is the robust
    one; freedom : degrees of freedom of intervals, tasks (or groups of the top level) - features
    - 1; levels : LevelsCovariance of tasks in groups, or None.
    """

    covariance: MapCovariance
    rotation: Rotation
    robust: bool
    freedom: int
    levels: LevelsCovariance | None = None

    @classmethod
    def of(cls, fitted: Fitted, robust: bool | None = None) -> MapErrors:
        """Compute it from the statistics of the tasks; robust by default from 50 tasks."""
        stats, Phi, theta, noise, trained = _tasks(fitted)
        rotation, kappa = Rotation.learn(Phi[trained]), float(fitted.info["kappa_"])
        used = 0 if np.isinf(kappa) else Phi.shape[1]
        if isinstance(stats, NestedState):
            tree = Tree.of(group_codes(fitted.tasks.ids.tolist()))
            order, top = tree.order, tree.sizes[0]
            robust = top >= MANY if robust is None else bool(robust)
            Z, inner = rotation.apply(Phi[order]), fitted.inner
            found = levels_covariance(
                stats.take(order),
                Z,
                tree,
                inner,
                noise[order],
                kappa,
                robust,
                fitted.info.get("shared"),
            )
            covariance = found.covariance.without(~fitted.scales.kept)
            return cls(covariance, rotation, robust, max(top - used - 1, 1), found)
        robust = len(trained) >= MANY if robust is None else bool(robust)
        covariance = map_covariance(
            stats.take(trained), rotation.apply(Phi[trained]), theta[trained],
            _factor(fitted), noise[trained], kappa, robust, fitted.info.get("shared"),
            _open_cuts(fitted, trained),
        )  # fmt: skip
        covariance = covariance.without(~fitted.scales.kept)
        return cls(covariance, rotation, robust, max(len(trained) - used - 1, 1))

    def features(self, mean=0.0, scale=1.0) -> np.ndarray:
        """Return the features of one unit of each side feature, and of b (k+1, r+1).

        `mean` and `scale` (k,) say what a unit is: a feature is (side column - mean) / scale.
        """
        k = len(self.rotation.mean)
        unit = Rotation(np.zeros(k) + mean, np.ones(k) * scale, None)
        return unit.undo(self.rotation.undo(np.eye(self.covariance.matrix.shape[0])))


def map_std(fitted: Fitted, errors: MapErrors, mean=0.0, scale=1.0) -> np.ndarray:
    """Return the standard error of each side feature's effect, then of b (k+1, width).

    NaN where the tasks do not determine the effect, and for columns that are left out as constant.
    """
    std = errors.covariance.std(errors.features(mean, scale), fitted.scales.user_matrix())
    return np.where(fitted.scales.kept, std, np.nan)


def coefficient_std(fitted: Fitted) -> np.ndarray:
    """Return the standard deviations of the coefficients of known tasks (T, width).

    They include the uncertainty of the map. Maximum likelihood makes H too small by about the share
    of tasks that the map uses up, which is undone here (not for tasks in groups, counts and
    classes).
    """
    if isinstance(fitted.inner, RowPosterior) and "shared" not in fitted.info:
        C, covariance = fitted.scales.user_matrix(), fitted.tasks.state.covariance
        variances = np.einsum("ij,tjl,il->ti", C, covariance, C, optimize=True)
        return np.sqrt(np.maximum(variances, 0.0))
    stats, Phi, theta, _, trained = _tasks(fitted)
    errors, C = MapErrors.of(fitted), fitted.scales.user_matrix()
    if not isinstance(fitted.inner, RowPosterior):  # of tasks that drift, what is not forgotten
        stats = known_statistics(fitted)
    if errors.levels is not None:
        return _std_in_groups(fitted, errors, errors.levels, stats, theta, Phi)
    if isinstance(fitted.inner, RowPosterior):
        noise, factor = np.ones(len(theta)), _factor(fitted)
    else:
        noise = fitted.inner.posterior(stats, theta).s2
        factor = fitted.inner.factor * np.sqrt(len(trained) / errors.freedom)
    std = np.empty(fitted.tasks.coef.shape)
    for lo in range(0, len(std), BLOCK):
        part = slice(lo, lo + BLOCK)
        Z = errors.rotation.apply(Phi[part])
        of_theta = errors.covariance.of_theta(np.column_stack([Z, np.ones(len(Z))]))
        covariance = coefficient_covariances(stats.take(part), factor, noise[part], of_theta)
        std[part] = np.sqrt(np.einsum("ij,tjl,il->ti", C, covariance, C, optimize=True))
    return std


def _std_in_groups(fitted, errors, levels: LevelsCovariance, stats, theta, Phi) -> np.ndarray:
    """Return the standard deviations of the coefficients of tasks in groups (T, width)."""
    inner, C, order = fitted.inner, fitted.scales.user_matrix(), levels.tree.order
    H = inner.covariance_below(len(inner.factors) - 2)
    Z, std = errors.rotation.apply(Phi[order]), np.empty_like(theta)
    for lo in range(0, len(std), BLOCK):
        part = slice(lo, lo + BLOCK)
        at = order[part]
        covariance = inner.covariances(stats.take(at), theta[at]) + levels.of_means(Z, H, part)
        std[at] = np.sqrt(np.einsum("ij,tjl,il->ti", C, covariance, C, optimize=True))
    return std


def _tasks(fitted: Fitted):
    """Return statistics, Phi, theta, noise of known tasks, and positions of those with points.

    The map is learned from all rows alike: of tasks that drift they are the undecayed statistics.
    """
    store = fitted.tasks
    if isinstance(fitted.inner, LowRankGaussian):
        raise DataError(
            f"Standard errors are available for up to {WIDE} columns. Give fewer columns, or "
            "random='all'."
        )
    if not isinstance(fitted.inner, Gaussian | NestedGaussian | RowPosterior):
        raise DataError(
            "Standard errors are for ConditionalRidge and the other learners with a learned prior "
            "(ConditionalLevels, ConditionalCount, ConditionalLogistic, ConditionalOrdinal)."
        )
    inner, stats = fitted.inner, _statistics(fitted)
    if isinstance(inner, DriftingGaussian):
        inner = Gaussian(inner.factor, inner.s2 / inner.drift.noise, inner.own_noise)
        stats = own_statistics(fitted)
    if store is None or not isinstance(stats, SquaredState | NestedState | NoisyState):
        raise DataError(
            "Standard errors need the statistics of the tasks: fit with keep_tasks=True, and save "
            "with tasks=True and resume=True."
        )
    if store.Phi is None:
        raise DataError(
            f"Standard errors need the side features of the tasks, which a model with "
            f"{len(fitted.reader.names)} of them does not keep. Use fewer side columns."
        )
    rows = isinstance(inner, RowPosterior)
    noise = np.ones(len(store)) if rows else inner.posterior(stats, store.theta).s2
    stats = stats.squared if isinstance(stats, NoisyState) else stats
    return stats, store.Phi, store.theta, noise, np.flatnonzero(store.sizes > 0)


def _open_cuts(fitted: Fitted, trained: np.ndarray) -> OpenCuts | None:
    """Return what tasks say about the cuts of three or more ordered classes, else None."""
    if not isinstance(fitted.inner, Ordinal) or not len(fitted.inner.gaps):
        return None
    points = scaled_rows(fitted.state.points, fitted.scales)
    law, factor = fitted.inner.likelihood, _factor(fitted)
    return OpenCuts.of(points, fitted.tasks.theta, factor, law).take(trained)


def _factor(fitted: Fitted) -> np.ndarray:
    """Return L of the learned H; the inner algorithm of rows has what is open about tau in its."""
    if isinstance(fitted.inner, RowPosterior):
        return lower_root(fitted.info["H_"])
    return fitted.inner.factor


def _statistics(fitted: Fitted):
    """Return the statistics of the known tasks; None if they are not kept."""
    if isinstance(fitted.inner, RowPosterior):
        return _working_statistics(fitted) if isinstance(fitted.state, KeptRows) else None
    return known_statistics(fitted)


def _working_statistics(fitted: Fitted) -> SquaredState:
    """Return statistics of a Gaussian model with the posteriors of rows of another likelihood.

    With D and r of `condmeta.inner.variational` at the posterior mean m, rows of weight D with the
    labels <x, m> + r / D have this mean, this covariance and this gradient g = X^T r.
    """
    points = scaled_rows(fitted.state.points, fitted.scales)
    theta, L, law = fitted.tasks.theta, _factor(fitted), fitted.inner.likelihood
    rows, found = law.rows(points), find_posteriors(law, points, theta, L)
    stats = weighted_statistics(rows.X, rows.offsets, found.weight)
    mean = theta + found.z @ L.T
    moment = np.einsum("tij,tj->ti", stats.gram, mean) + found.g
    return stats._replace(moment=moment)
