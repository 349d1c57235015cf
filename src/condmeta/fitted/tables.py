"""Tables of a fitted value: coefficients by task, and the map by side feature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.against_rest import AgainstRest
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.known_statistics import own_estimates
from condmeta.fitted.standard_errors import MapErrors, coefficient_std, map_std
from condmeta.tasks.frames import make_frame
from condmeta.tasks.ids import id_columns

INTERCEPT = "(intercept)"
BASE = "(base)"  # tau where all side features are zero


def coefficient_names(fitted: Fitted) -> list[str]:
    """Return the names of the coefficients, the intercept last where there is one."""
    names = fitted.scales.names(fitted.columns.names)
    return [*names, INTERCEPT] if fitted.scales.fit_intercept else names


def differing_coefficients(fitted: Fitted) -> np.ndarray:
    """Return which coefficients (width,) may differ between tasks."""
    shared = fitted.info.get("shared", False)
    return fitted.scales.kept & ~np.broadcast_to(shared, fitted.scales.width)


def level_names(fitted: Fitted) -> list[str]:
    """Return the names of the levels of `ConditionalLevels`, tasks last."""
    names, levels = fitted.columns.task_name, range(len(fitted.info.get("levels_", ())) + 1)
    return (
        [str(name) for name in names]
        if isinstance(names, tuple)
        else [f"level {j}" for j in levels]
    )


def coef_table(fitted: Fitted | AgainstRest, wide: bool, std: bool = False):
    """Return the table of `coef_frame`; with `std`, with posterior standard deviations."""
    columns = by_class(fitted, lambda part: coef_columns(part, wide, std))
    return make_frame(columns, fitted.columns.backend)


def by_class(fitted: Fitted | AgainstRest, columns_of: Callable) -> dict[str, np.ndarray]:
    """Return the columns of a table; of several classes one below the other, by "class"."""
    if isinstance(fitted, Fitted):
        return columns_of(fitted)
    tables = [columns_of(part) for part in fitted.parts]
    n = len(next(iter(tables[0].values())))
    stacked = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    return {"class": np.repeat(fitted.classes, n)} | stacked


def coef_columns(fitted: Fitted, wide: bool, std: bool = False) -> dict[str, np.ndarray]:
    """Return the columns of `coef_frame`."""
    store, scales, columns = fitted.tasks, fitted.scales, fitted.columns
    if store is None:
        raise DataError("No task models were kept. Fit with keep_tasks=True.")
    names, ids = coefficient_names(fitted), store.ids.tolist()
    adapted, prior = scales.user_vector(store.coef), scales.user_vector(store.theta)
    spread = coefficient_std(fitted) if std else None
    if wide:
        by_task = id_columns(ids, columns.task_name) | {"n": store.sizes}
        return by_task | _wide(names, adapted, spread)
    repeated = [task for task in ids for _ in names]
    by_coefficient = id_columns(repeated, columns.task_name) | {
        "feature": np.array(names * len(ids)),
        "prior": prior.ravel(),
        "own": own_estimates(fitted).ravel(),
        "adapted": adapted.ravel(),
        "shift": (adapted - prior).ravel(),
        "n": np.repeat(store.sizes, len(names)),
    }
    if spread is not None:
        by_coefficient["std"] = spread.ravel()
    return by_coefficient


def map_effects(fitted: Fitted) -> np.ndarray:
    """Return the effect of each side feature on each coefficient, in the user's units (k, d)."""
    scales, W = fitted.scales, fitted.tau.weights[:-1]
    return scales.user_vector(W) - scales.user_vector(np.zeros(scales.width))


def map_table(fitted: Any, wide: bool, std: bool = False, robust: bool | None = None):
    """Return the table of `M_frame`; with `std`, with standard errors."""
    columns = by_class(fitted, lambda part: map_columns(part, wide, std, robust))
    return make_frame(columns, fitted.columns.backend)


def map_columns(fitted: Fitted, wide=False, std=False, robust=None) -> dict[str, np.ndarray]:
    """Return the columns of `M_frame`."""
    names, sides = coefficient_names(fitted), [*fitted.reader.names, BASE]
    values = np.vstack([map_effects(fitted), fitted.scales.user_vector(fitted.tau.b)])
    spread = map_std(fitted, MapErrors.of(fitted, robust)) if std else None
    if wide:
        return {"side_feature": np.array(sides)} | _wide(names, values, spread)
    columns = {
        "side_feature": np.array([side for side in sides for _ in names]),
        "feature": np.array(names * len(sides)),
        "effect": values.ravel(),
    }
    if spread is not None:
        columns["std_error"] = spread.ravel()
    return columns


def group_table(fitted: Fitted, level: int):
    """Return the effects of the groups of a level, in the user's units."""
    found, names = fitted.groups.levels[level], coefficient_names(fitted)
    C, scales = fitted.scales.user_matrix(), fitted.scales
    effects = scales.user_vector(found.mean) - scales.user_vector(np.zeros_like(found.mean))
    std = np.sqrt(np.einsum("ij,tjl,il->ti", C, found.covariance, C, optimize=True))
    ids = [group for group in found.ids.tolist() for _ in names]
    depth = range(len(fitted.groups.levels))[level] + 1
    name = fitted.columns.task_name
    name = name[:depth] if isinstance(name, tuple) else name
    columns = id_columns(ids, name[0] if isinstance(name, tuple) and depth == 1 else name)
    columns |= {
        "feature": np.array(names * len(found.ids)),
        "effect": effects.ravel(),
        "std": std.ravel(),
    }
    return make_frame(columns, fitted.columns.backend)


def _wide(names, values, spread) -> dict[str, np.ndarray]:
    """Return a column for each coefficient, followed by its standard error if there is one."""
    columns = {}
    for j, name in enumerate(names):
        columns[name] = values[:, j]
        if spread is not None:
            columns[f"{name} (std)"] = spread[:, j]
    return columns
