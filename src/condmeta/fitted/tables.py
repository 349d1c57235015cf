"""Tables of a fitted value: coefficients by task, and the map by side feature."""

from __future__ import annotations

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.fitted import Fitted
from condmeta.tasks.frames import make_frame
from condmeta.tasks.ids import id_columns

INTERCEPT = "(intercept)"


def coefficient_names(fitted: Fitted) -> list[str]:
    """Return the names of the coefficients, the intercept last where there is one."""
    names = fitted.scales.names(fitted.columns.names)
    return [*names, INTERCEPT] if fitted.scales.fit_intercept else names


def coef_table(fitted: Fitted, wide: bool):
    """Return the table of `coef_frame`."""
    store, scales, columns = fitted.tasks, fitted.scales, fitted.columns
    if store is None:
        raise DataError("No task models were kept. Fit with keep_tasks=True.")
    names, ids = coefficient_names(fitted), store.ids.tolist()
    adapted, prior = scales.user_vector(store.coef), scales.user_vector(store.theta)
    if wide:
        by_task = id_columns(ids, columns.task_name) | {"n": store.sizes}
        by_task |= {name: adapted[:, j] for j, name in enumerate(names)}
        return make_frame(by_task, columns.backend)
    repeated = [task for task in ids for _ in names]
    by_coefficient = id_columns(repeated, columns.task_name) | {
        "feature": np.array(names * len(ids)),
        "prior": prior.ravel(),
        "own": store.own_estimates(scales).ravel(),
        "adapted": adapted.ravel(),
        "shift": (adapted - prior).ravel(),
        "n": np.repeat(store.sizes, len(names)),
    }
    return make_frame(by_coefficient, columns.backend)


def map_effects(fitted: Fitted) -> np.ndarray:
    """Return the effect of each side feature on each coefficient, in the user's units (k, d)."""
    scales, W = fitted.scales, fitted.tau.weights[:-1]
    return scales.user_vector(W) - scales.user_vector(np.zeros(scales.width))


def map_table(fitted: Fitted, wide: bool):
    """Return the table of `M_frame`."""
    names, sides = coefficient_names(fitted), [*fitted.reader.names, "(base)"]
    values = np.vstack([map_effects(fitted), fitted.scales.user_vector(fitted.tau.b)])
    if wide:
        columns = {"side_feature": np.array(sides)}
        columns |= {name: values[:, j] for j, name in enumerate(names)}
    else:
        columns = {
            "side_feature": np.array([side for side in sides for _ in names]),
            "feature": np.array(names * len(sides)),
            "effect": values.ravel(),
        }
    return make_frame(columns, fitted.columns.backend)
