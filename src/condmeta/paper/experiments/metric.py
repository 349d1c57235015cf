"""The errors of rows by which `run` compares methods: one metric for all methods of a table."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.losses import get_loss


class Metric(NamedTuple):
    """A name, and the function `errors(y, predicted)` that returns one error for each row."""

    name: str
    errors: Callable[[Any, Any], Any]

    def is_loss_of(self, method: Any) -> bool:
        """Return whether a learner's loss is this metric."""
        return self.errors is absolute and getattr(get_loss(method.loss), "name", "") == "absolute"


def absolute(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return the absolute errors of rows."""
    return np.abs(predicted - y)


def squared(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return the squared errors of rows; the loss "squared" is half of them."""
    return (predicted - y) ** 2


def zero_one(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return 1.0 for rows of a wrong class, else 0.0."""
    return (predicted != y).astype(float)


METRICS = {one.__name__: one for one in (absolute, squared, zero_one)}


def _rows(metric: Callable[..., Any], y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return the errors of rows by a function of the user's own, checked."""
    errors = np.asarray(metric(y, predicted), dtype=float)
    if errors.shape != np.shape(y):
        raise DataError(
            "The metric of run must return one error for each row, an array of shape "
            f"{np.shape(y)}. Its shape was {errors.shape}."
        )
    return errors


def get_metric(metric: Any) -> Metric:
    """Return the metric of a name, or of a function `metric(y, predicted)` of rows.

    Examples
    --------
    >>> from condmeta.paper.experiments.metric import get_metric
    >>> get_metric("squared").errors(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    array([0., 4.])
    """
    if isinstance(metric, str) and metric in METRICS:
        return Metric(metric, METRICS[metric])
    if callable(metric):
        return Metric(getattr(metric, "__name__", type(metric).__name__), partial(_rows, metric))
    names = ", ".join(map(repr, METRICS))
    raise DataError(
        f"The 'metric' parameter of run must be one of {names}, or a function metric(y, predicted) "
        f"that returns the error of each row. Got {metric!r} instead."
    )
