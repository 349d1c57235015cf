"""Tables that a fitted learner gives: coefficients by task, and the map by side feature."""

from __future__ import annotations

import numpy as np

from condmeta.errors import DataError
from condmeta.estimators.task_model import user_vector
from condmeta.tasks.frames import make_frame
from condmeta.tasks.ids import id_columns

INTERCEPT = "(intercept)"


def coefficient_names(learner) -> list[str]:
    """Return the names of the coefficients, the intercept last where there is one."""
    names = learner._head.preparation.names(getattr(learner, "feature_names_in_", None))
    return [*names, INTERCEPT] if learner.fit_intercept else names


def coef_table(learner, wide: bool):
    """Build `coef_frame` (see there)."""
    store = learner._store
    if store is None:
        raise DataError("No task models were kept. Fit with keep_tasks=True.")
    preparation, names = learner._head.preparation, coefficient_names(learner)
    adapted = user_vector(preparation, store.coef)
    prior = user_vector(preparation, store.theta)
    own = np.full_like(adapted, np.nan)
    if store.own is not None:
        has_points = store.sizes > 0
        own[has_points] = user_vector(preparation, store.own[has_points])
    ids = store.ids.tolist()
    if wide:
        columns = id_columns(ids, learner._task_name) | {"n": store.sizes}
        return make_frame(
            columns | {name: adapted[:, j] for j, name in enumerate(names)}, learner._backend
        )
    repeated = [task for task in ids for _ in names]
    columns = id_columns(repeated, learner._task_name) | {
        "feature": np.array(names * len(ids)),
        "prior": prior.ravel(),
        "own": own.ravel(),
        "adapted": adapted.ravel(),
        "shift": (adapted - prior).ravel(),
        "n": np.repeat(store.sizes, len(names)),
    }
    return make_frame(columns, learner._backend)


def map_effects(learner) -> np.ndarray:
    """Return the effect of each side feature on each coefficient, in the user's units (k, d)."""
    prep, W = learner._head.preparation, learner._weights[:-1]
    return user_vector(prep, W) - user_vector(prep, np.zeros(prep.width))


def map_table(learner, wide: bool):
    """Build `M_frame` (see there)."""
    names = coefficient_names(learner)
    base = user_vector(learner._head.preparation, learner._weights[-1])
    values = np.vstack([map_effects(learner), base])
    sides = [*learner.side_features_, "(base)"]
    if wide:
        columns = {"side_feature": np.array(sides)}
        columns |= {name: values[:, j] for j, name in enumerate(names)}
    else:
        columns = {
            "side_feature": np.array([side for side in sides for _ in names]),
            "feature": np.array(names * len(sides)),
            "effect": values.ravel(),
        }
    return make_frame(columns, learner._backend)
