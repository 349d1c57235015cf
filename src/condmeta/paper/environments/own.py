"""Ask an environment, which may be a user's own, and say what is wrong with its answers."""

import inspect
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.paper.environments.variances import Variances
from condmeta.tasks import TaskSet

MEMBERS = {  # of an environment: arguments, and what a call returns
    "sample": ("n_tasks, random_state", "a TaskSet of n_tasks tasks"),
    "sample_points": ("tasks, n_points, rng", "X (T, n_points, d) and y (T, n_points)"),
    "tau": ("tasks", "the bias of each task, an array (T, d) of finite numbers"),
    "variances": ("", "a Variances"),
}


def sample(environment: Any, n_tasks: int, random_state: Any) -> TaskSet:
    """Return tasks that an environment draws."""
    tasks = _call(environment, "sample", n_tasks, random_state)
    if not isinstance(tasks, TaskSet):
        raise _error(environment, "sample", f"It returned {_kind(tasks)}.")
    if len(tasks) != n_tasks:
        raise _error(environment, "sample", f"Asked for {n_tasks} tasks, it returned {len(tasks)}.")
    return tasks


def sample_points(
    environment: Any, tasks: TaskSet, n_points: int, rng: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return further points of tasks: X (T, n, d) and y (T, n)."""
    found = _call(environment, "sample_points", tasks, n_points, rng)
    if not isinstance(found, tuple) or len(found) != 2:
        raise _error(environment, "sample_points", f"It returned {_kind(found)}.")
    shape = len(tasks), n_points, tasks.n_features
    X, y = (_numbers(part) for part in found)
    if X is None or y is None or (X.shape, y.shape) != (shape, shape[:2]):
        shapes = " and ".join("no numbers" if a is None else str(a.shape) for a in (X, y))
        raise _error(environment, "sample_points", f"Asked for {shape}, it returned {shapes}.")
    return X, y


def tau(environment: Any, tasks: TaskSet) -> np.ndarray:
    """Return the best bias of each task (T, d)."""
    found, shape = _numbers(_call(environment, "tau", tasks)), (len(tasks), tasks.n_features)
    if found is None or not np.isfinite(found).all():
        raise _error(environment, "tau", "It returned other values.")
    if found.shape not in ((), shape[1:], shape):
        raise _error(environment, "tau", f"Asked for {shape}, it returned {found.shape}.")
    return np.broadcast_to(found, shape)


def variances(environment: Any) -> Variances:
    """Return the variances of an environment in closed form."""
    found = _call(environment, "variances")
    if not isinstance(found, Variances):
        raise _error(environment, "variances", f"It returned {_kind(found)}.")
    return found


def mean_weights(environment: Any) -> np.ndarray:
    """Return the mean weights w_rho (d,)."""
    w_rho = _numbers(environment.w_rho)
    if w_rho is None or w_rho.ndim != 1 or not np.isfinite(w_rho).all():
        shown = _kind(environment.w_rho) if w_rho is None else f"an array of shape {w_rho.shape}"
        raise DataError(
            f"{type(environment).__name__}.w_rho must be the mean weights of the tasks: an array "
            f"(d,) of finite numbers. It is {shown}."
        )
    return w_rho


def n_points(environment: Any) -> Any:
    """Return the number of training points of a task."""
    if not hasattr(environment, "n"):
        raise DataError(
            f"{type(environment).__name__} has no attribute 'n', the number of training points of "
            "a task: add it, or give n=."
        )
    return environment.n


def _call(environment: Any, name: str, *arguments: Any) -> Any:
    if isinstance(environment, type):
        made = f"{environment.__name__}(...)"
        raise DataError(f"{environment.__name__} is a class: give an environment, as {made}.")
    method = getattr(environment, name, None)
    if not callable(method):
        raise _error(environment, name, "There is no such method.")
    try:
        inspect.signature(method).bind(*arguments)
    except TypeError as error:
        raise _error(environment, name, f"Its own arguments differ: {error}.") from None
    except ValueError:  # some compiled functions have no signature
        pass
    return method(*arguments)


def _error(environment: Any, name: str, problem: str) -> DataError:
    arguments, returns = MEMBERS[name]
    return DataError(
        f"{type(environment).__name__}.{name} must be a method {name}({arguments}) that returns "
        f"{returns}. {problem}"
    )


def _kind(value: Any) -> str:
    return "None" if value is None else f"an object of type {type(value).__name__}"


def _numbers(values: Any) -> np.ndarray | None:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return None
