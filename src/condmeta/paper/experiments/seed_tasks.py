"""The tasks of one seed: drawn or chosen, and split into training, validation and test tasks."""

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.paper.environments import own
from condmeta.tasks import TaskSet
from condmeta.typing import Order


class Setting(NamedTuple):
    """How tasks and points are split.

    Attributes
    ----------
    sizes : (int, int, int)
        Numbers of training, validation and test tasks.
    support : float or int
        Share or number of a task's points to learn from; the other points test.
    order : {"random", "first"}
        Which points are the support: random ones or the first.
    train_on : {"support", "all"}
        Whether training tasks use only their support points, as in the paper, or all points.
    """

    sizes: tuple[int, int, int]
    support: float | int = 0.5
    order: Order = "random"
    train_on: str = "support"


class SeedTasks(NamedTuple):
    """The tasks of one seed; validation and test hold support and query points.

    left_out : ids of the validation and test tasks that have no query points
    """

    train: TaskSet
    validation: tuple[TaskSet, TaskSet]
    test: tuple[TaskSet, TaskSet]
    left_out: list


def check_setting(setting: Setting) -> None:
    """Raise if a field of a setting has a value that it cannot have."""
    sizes, support, order, train_on = setting
    if np.shape(sizes) != (3,) or not all(isinstance(n, Integral) and n > 0 for n in sizes):
        raise DataError(
            "setting.sizes must be the numbers of training, validation and test tasks, each at "
            f"least 1. Got {sizes!r}."
        )
    is_count = isinstance(support, Integral) and support >= 0
    if not is_count and not (isinstance(support, Real) and 0 < support < 1):
        raise DataError(
            "setting.support must be a number of points, or a share of a task's points in (0, 1). "
            f"Got {support!r}."
        )
    for name, value, allowed in (
        ("order", order, ("random", "first")), ("train_on", train_on, ("support", "all")),
    ):  # fmt: skip
        if value not in allowed:
            raise DataError(
                f"setting.{name} must be {allowed[0]!r} or {allowed[1]!r}. Got {value!r}."
            )
    if support == 0 and train_on == "support":
        raise DataError(
            "With support=0 the training tasks have no points to learn from: set train_on='all'."
        )


def draw(source: Any, setting: Setting, seed: int) -> SeedTasks:
    """Draw and split the tasks of one seed."""
    rng = np.random.default_rng([seed, 0])
    total = sum(setting.sizes)
    if hasattr(source, "sample"):
        tasks, order = own.sample(source, total, rng), np.arange(total)
    elif isinstance(source, TaskSet):
        if total > len(source):
            raise DataError(f"The setting needs {total} tasks; the source has {len(source)}.")
        tasks, order = source, rng.permutation(len(source))[:total]
    else:
        raise DataError(
            "source must be an environment, with a method sample(n_tasks, random_state) that "
            f"returns a TaskSet, or a TaskSet. Got {type(source).__name__} instead."
        )
    train, validation, test = (
        tasks.subset(part) for part in np.split(order, np.cumsum(setting.sizes)[:-1])
    )
    split = [part.split_points(setting.support, setting.order, rng) for part in (validation, test)]
    if setting.train_on == "support":
        train = train.split_points(setting.support, setting.order, rng)[0]
    judged = [_with_query(*part, seed, setting) for part in split]
    left_out = [one for part, (_, ids) in zip(split, judged, strict=True) for one in ids]
    return SeedTasks(train, *(pair for pair, _ in judged), left_out)


def _with_query(support: TaskSet, query: TaskSet, seed: int, setting: Setting):
    """Return the tasks that have query rows (support, query), and the ids of the others."""
    judged = query.sizes > 0
    if judged.all():
        return (support, query), []
    if not judged.any():
        raise DataError(
            f"No task held out in seed {seed} has query rows with support={setting.support}. Use a "
            "smaller support, or tasks with more rows."
        )
    kept = np.flatnonzero(judged)
    return (support.subset(kept), query.subset(kept)), query.ids[~judged].tolist()
