"""What displays read from fitted learners."""

from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.feature_maps.raw_columns import raw_columns
from condmeta.feature_maps.table_encoder import TableEncoder
from condmeta.fitted.against_rest import one_class_only
from condmeta.fitted.tau import LinearTau


def learner_of(estimator: Any, what: str, *, linear: bool = False, tasks: bool = False) -> Any:
    """Return the fitted learner of an estimator; a DataError if `what` cannot be drawn of it."""
    fitted = getattr(estimator, "learner_", estimator)  # a TableModel has a learner_
    learner = getattr(fitted, "model", fitted)  # a Calibrated has a model
    name = type(learner).__name__
    if hasattr(learner, "fitted_"):
        one_class_only(learner.fitted_, what)
    if not hasattr(learner, "coef_frame") or (
        linear and not isinstance(learner.fitted_.tau, LinearTau)
    ):
        kind = "with a linear map, as ConditionalRidge" if linear else "with one map"
        raise DataError(f"{what} needs a fitted learner {kind}. Got {name}.")
    if tasks and learner.fitted_.tasks is None:
        raise DataError(f"{what} needs the models of tasks: fit with keep_tasks=True.")
    return learner


def side_columns_of(learner: Any) -> list[str]:
    """Return the side columns of the kept tasks; none if the learner kept no tasks."""
    store = learner.fitted_.tasks
    known = store is not None and store.Phi is not None
    return list(dict.fromkeys(raw_columns(learner.fitted_.reader.map))) if known else []


def side_values(learner: Any, name: str) -> np.ndarray:
    """Return a side column of the kept tasks (T,), from their encoded side information.

    Numbers are floats, with NaN for gaps; booleans and categories are text. A pooled or unseen
    level is "(other)".
    """
    fmap = learner.fitted_.reader.map
    at = np.flatnonzero([source == name for source in raw_columns(fmap)])
    if not len(at):
        known = ", ".join(map(repr, side_columns_of(learner))) or "none"
        raise DataError(f"There is no side column {name!r}; the model has {known}.")
    Phi, maps = learner.fitted_.tasks.Phi[:, at], fmap.parts_
    encoder = next((part for part in maps if isinstance(part, TableEncoder)), None)
    kind = None if encoder is None else encoder.kinds_.get(name)
    if kind == "category":
        texts = [learner.side_features_[j].removeprefix(f"{name}=") for j in at]
        return np.array([texts[j] if row[j] > 0 else "(other)"
                         for j, row in zip(Phi.argmax(axis=1), Phi, strict=True)])  # fmt: skip
    values = Phi[:, 0]
    if kind == "number":
        values = values * encoder.scales_[name] + encoder.means_[name]
    if len(at) > 1:  # the second column marks gaps
        values = np.where(Phi[:, 1] > 0, np.nan, values)
    if kind == "boolean":
        texts = {0.0: "False", 1.0: "True"}
        return np.array([texts.get(value, "(missing)") for value in values.tolist()])
    return values
