"""What displays read off fitted learners."""

from __future__ import annotations

from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.estimators.linear_map import LinearMap
from condmeta.evaluation.calibrate import Calibrated
from condmeta.feature_maps.raw_columns import raw_columns
from condmeta.tasks.encode import TableEncoder


def learner_of(estimator: Any, what: str, *, linear: bool = False, tasks: bool = False) -> Any:
    """Return the fitted learner behind an estimator, or say why there is no such picture of it."""
    fitted = getattr(estimator, "learner_", estimator)  # of a TableModel
    learner = fitted.model if isinstance(fitted, Calibrated) else fitted
    name = type(learner).__name__
    if not hasattr(learner, "coef_frame") or (linear and not isinstance(learner, LinearMap)):
        kind = "with a linear map, as ConditionalRidge" if linear else "with one map"
        raise DataError(f"{what} is of a fitted learner {kind}. Got a {name}.")
    learner._ready()
    if tasks and learner._store is None:
        raise DataError(f"{what} needs the models of tasks: fit with keep_tasks=True.")
    return learner


def side_columns_of(learner: Any) -> list[str]:
    """Return the side columns that the tasks of a learner are known by; none if not kept."""
    known = learner._store is not None and learner._store.Phi is not None
    return list(dict.fromkeys(raw_columns(learner._map))) if known else []


def side_values(learner: Any, name: str) -> np.ndarray:
    """Return a side column of the kept tasks (T,), from their encoded side information.

    Numbers are floats, with nan for gaps; booleans and categories text. A level that was pooled or
    unseen is "(other)".
    """
    at = np.flatnonzero([source == name for source in raw_columns(learner._map)])
    if not len(at):
        known = ", ".join(map(repr, side_columns_of(learner))) or "none"
        raise DataError(f"There is no side column {name!r}; the model has {known}.")
    Phi = learner._store.Phi[:, at]
    encoder = next((p for p in learner._map.parts_ if isinstance(p, TableEncoder)), None)
    kind = None if encoder is None else encoder.kinds_.get(name)
    if kind == "category":
        texts = [learner.side_features_[j].removeprefix(f"{name}=") for j in at]
        return np.array([texts[j] if row[j] > 0 else "(other)"
                         for j, row in zip(Phi.argmax(axis=1), Phi, strict=True)])  # fmt: skip
    values = Phi[:, 0]
    if kind == "number":
        values = values * encoder.scales_[name] + encoder.means_[name]
    if len(at) > 1:  # an indicator of gaps
        values = np.where(Phi[:, 1] > 0, np.nan, values)
    if kind == "boolean":
        told = {0.0: "False", 1.0: "True"}
        return np.array([told.get(value, "(missing)") for value in values.tolist()])
    return values
