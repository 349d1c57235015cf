"""Read the weights and features of an environment, of tasks with known weights, or of arrays."""

from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.feature_maps import ComposedMap
from condmeta.losses import get_loss
from condmeta.paper.environments import SampledTaskSet, own
from condmeta.tasks import TaskSet

N_TASKS = 10_000  # to draw if an environment has no closed form


def draw(environment: Any, n_tasks: int, random_state: Any) -> SampledTaskSet:
    """Draw tasks with known weights from an environment."""
    tasks = own.sample(environment, n_tasks, random_state)
    if not isinstance(tasks, SampledTaskSet):
        raise DataError(
            f"{type(environment).__name__}.sample must return a SampledTaskSet, because the theory "
            "needs the true weights of the tasks."
        )
    return tasks


def loss_of_numbers(loss: Any) -> Any:
    """Return a loss of numbers; raise for a loss of classes."""
    loss = get_loss(loss)
    if getattr(loss, "signed", False):
        raise DataError(
            f"The loss {loss.name!r} is for classes, and environments draw numbers: use a loss of "
            "numbers."
        )
    return loss


def weights_of(source: Any) -> np.ndarray:
    """Return the true weights W (T, d) of a SampledTaskSet, or a checked array."""
    if isinstance(source, TaskSet) and not isinstance(source, SampledTaskSet):
        raise DataError(
            "The true weights of these tasks are unknown. Give weights (T, d), a SampledTaskSet or "
            "an environment; `suggest` estimates the variance from points."
        )
    W = np.asarray(source.weights if isinstance(source, SampledTaskSet) else source, np.float64)
    if W.ndim != 2 or not len(W):
        raise DataError(f"Weights must have the shape (T, d), T >= 1. Got {W.shape} instead.")
    if not np.isfinite(W).all():
        t = int(np.argmax(~np.isfinite(W).all(axis=1)))
        raise DataError(f"The weights of task number {t} are not finite.")
    return W


def features_of(source: Any, Phi: Any, T: int) -> np.ndarray:
    """Return Phi (T, k): a given array, or the output of a feature map on the tasks."""
    if isinstance(Phi, np.ndarray | list) and np.asarray(Phi).dtype.kind in "fiub":
        Phi = np.asarray(Phi, dtype=np.float64)
    elif isinstance(source, TaskSet):
        return map_features(source, Phi)
    elif Phi is None:
        Phi = np.zeros((T, 0))
    else:
        raise DataError("An array of weights has no side information: give Phi as an array (T, k).")
    if Phi.ndim != 2 or len(Phi) != T:
        raise DataError(f"Phi must have the shape ({T}, k), one row per task. Got {Phi.shape}.")
    if not np.isfinite(Phi).all():
        t = int(np.argmax(~np.isfinite(Phi).all(axis=1)))
        raise DataError(f"Phi of task number {t} is not finite.")
    return Phi


def map_features(tasks: TaskSet, feature_map: Any) -> np.ndarray:
    """Return Phi (T, k) of a feature map fitted on the tasks themselves."""
    table = None if tasks.side is None else tasks.side.take(tasks.ids)
    phi = ComposedMap(feature_map).fit(table, tasks)
    return phi.transform(len(tasks), table=table if phi.reads_table else None, points=tasks)


def probabilities(p: Any, T: int) -> np.ndarray:
    """Return the probabilities of T tasks; equal by default."""
    if p is None:
        return np.full(T, 1 / T)
    p = np.asarray(p, dtype=np.float64)
    if p.shape != (T,) or not np.isfinite(p).all():
        raise DataError(f"p must hold {T} finite numbers, one per task. Got the shape {p.shape}.")
    if (p < 0).any() or abs(p.sum() - 1) > 1e-9:
        raise DataError(
            f"p must be probabilities: none negative, sum 1. Got the minimum {p.min():g} and the "
            f"sum {p.sum():g}."
        )
    return p
