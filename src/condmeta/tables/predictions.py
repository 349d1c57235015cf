"""What a table model answers: predictions, intervals, scores, columns of tables."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import accuracy_score, d2_tweedie_score, r2_score

from condmeta.errors import DataError
from condmeta.evaluation import Calibrated
from condmeta.fitted.tables import INTERCEPT, coefficient_names
from condmeta.fitted.task_model import TaskModels
from condmeta.learners.blend import BlendedModels
from condmeta.learners.count import ConditionalCount
from condmeta.tables.fitted_table import FittedTable
from condmeta.tasks import TaskSet
from condmeta.tasks.ids import id_columns


def predict(model: FittedTable, tasks: TaskSet) -> np.ndarray:
    """Return numbers, mean counts, shares, or the classes of the target (N,)."""
    if model.schema.roles.trials is not None:
        return model.learner.predict_proba(tasks)[:, 1]
    predicted, classes = model.learner.predict(tasks), model.schema.classes
    return predicted if classes is None else np.array(classes)[predicted.astype(int)]


def interval(model: FittedTable, tasks: TaskSet, coverage: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper ends (N,) that contain a label with this probability."""
    if isinstance(model.learner, ConditionalCount):
        ends = model.learner.predict_distribution(tasks).interval(coverage)
        return ends[:, 0], ends[:, 1]
    if model.schema.classes is not None:
        raise DataError("Intervals are for numbers: predictions of classes have probabilities.")
    if not isinstance(model.learner, Calibrated):
        raise DataError("The model has no intervals: fit it with intervals=True.")
    return model.learner.predict_interval(tasks, coverage=coverage)


def columns(
    model: FittedTable, tasks: TaskSet, outside: np.ndarray, coverage: float | None
) -> dict[str, np.ndarray]:
    """Return the columns of `TableModel.predict_frame`; `outside` (N,) marks extrapolations."""
    found = {"prediction": predict(model, tasks)} | _probabilities(model, tasks)
    if isinstance(model.learner, ConditionalCount):
        found["median"] = model.learner.predict_distribution(tasks).median
    if coverage is not None:
        found["lower"], found["upper"] = interval(model, tasks, coverage)
    found["task_points"] = points = model.learner.n_points(tasks)
    kind = np.where(points > 0, "known", np.where(outside, "outside", "new"))
    return found | {"task_kind": kind.astype(object)}


def adapted_columns(
    model: FittedTable, models: TaskModels | BlendedModels
) -> dict[str, np.ndarray]:
    """Return the columns of `TableModel.adapt_frame`: a row for each task, or task and class."""
    fitted, classes, coef = model.linear.fitted_, model.schema.classes, models.coef_
    T, K = len(models.ids), coef.shape[1] if coef.ndim == 3 else 1
    ids = [task for task in models.ids.tolist() for _ in range(K)]
    found = id_columns(ids, model.schema.roles.task_name)
    if coef.ndim == 3:
        found["class"] = np.array(classes * T, dtype=object)
    found["n"] = np.repeat(models.n_, K)
    found[INTERCEPT] = np.broadcast_to(models.intercept_, coef.shape[:-1]).ravel()
    names = [name for name in coefficient_names(fitted) if name != INTERCEPT]
    return found | dict(zip(names, coef.reshape(T * K, -1).T, strict=True))


def score(model: FittedTable, tasks: TaskSet, labelled: TaskSet) -> float:
    """Return R^2, the share of right classes, or the explained deviance of counts."""
    if model.schema.roles.trials is not None:
        raise DataError("Shares of trials have no score: compare predict with the shares.")
    y, predicted = labelled.restore_order(labelled.y), model.learner.predict(tasks)
    if model.schema.kind == "count":
        return float(d2_tweedie_score(y, np.maximum(predicted, 1e-300), power=1))
    judge = r2_score if model.schema.classes is None else accuracy_score
    return float(judge(y, predicted))


def _probabilities(model: FittedTable, tasks: TaskSet) -> dict[str, np.ndarray]:
    """Return the probability of the second class, or of each class if there are more."""
    classes = model.schema.classes
    if classes is None or not hasattr(model.learner, "predict_proba"):
        return {}
    found = model.learner.predict_proba(tasks)
    if len(classes) == 2:
        return {"probability": found[:, -1]}
    codes = model.learner.classes_.astype(int).tolist()
    return {f"probability of {classes[code]}": found[:, at] for at, code in enumerate(codes)}
