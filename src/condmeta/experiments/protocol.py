"""The paper's protocol, for any methods on any environment or tasks.

Each seed draws tasks, cuts them into training, validation and test tasks, and cuts the points of
validation and test tasks into support and query. A method is fitted on the training tasks for every
pair of the grid; the pair with the least mean query loss on the validation tasks after the last
training task is chosen, and its error on the test tasks is recorded after every training task.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from condmeta.engine import active_engine
from condmeta.errors import DataError
from condmeta.estimators.baselines import FixedBias
from condmeta.estimators.sgd import ConditionalSGD
from condmeta.estimators.trial import Trial, best_pair
from condmeta.experiments.results import COLUMNS, Results
from condmeta.inner.algorithms import INNER
from condmeta.losses import get_loss
from condmeta.tasks import TaskSet
from condmeta.versions import versions

VALIDATION, TEST = 0, 1


class Setting(NamedTuple):
    """How tasks and points are cut.

    sizes : training, validation and test tasks
    support : number or share of a task's points to learn from; the rest judges
    how : "random" or "first"
    train_on : "support" (training tasks show their support points only, as the paper's) or "all"
    """

    sizes: tuple[int, int, int]
    support: float | int = 0.5
    how: str = "random"
    train_on: str = "support"


class Draw(NamedTuple):
    """The tasks of one seed."""

    train: TaskSet
    validation: tuple[TaskSet, TaskSet]
    test: tuple[TaskSet, TaskSet]


def run(
    source: Any,
    methods: Mapping[str, Any],
    *,
    setting: Setting | tuple,
    grid: Mapping[str, Sequence[float]] | None = None,
    seeds: int | Sequence[int] = 10,
    at: Sequence[int] | None = None,
    jobs: int | None = None,
    progress: Any = None,
) -> Results:
    """Compare methods by the paper's protocol.

    Parameters
    ----------
    source : environment with `sample(n_tasks, random_state)`, or TaskSet
    methods : dict of name -> learner
        Learners with `fit(TaskSet)` and `adapt(TaskSet)`, whose result has `predict(X, task=)`.
    setting : Setting, or a tuple of its first fields
    grid : dict of parameter -> values, optional
        Values of "lam" and "meta_step"; a method is searched over those that it has.
    seeds : int or sequence of int
        Number of seeds, 0, 1, ..., or the seeds themselves. Seed i gives the same tasks and errors
        whatever other seeds and methods run, and on however many jobs.
    at : sequence of int, optional
        Numbers of training tasks at which to record the test error. By default every one for the
        learners of this package, which follow it for free; for others, which are fitted anew each
        time, the last.
    jobs : int, optional
        Seeds to run at once.
    progress : callable, optional
        Called with (seed, method) when a method has finished.

    Returns
    -------
    Results

    Examples
    --------
    >>> import condmeta as cm
    >>> from condmeta.experiments import Setting, run
    >>> results = run(
    ...     cm.environments.Circle(d=3, n=8),
    ...     {"one bias": cm.ConditionalSGDRegressor(feature_map=None)},
    ...     setting=Setting(sizes=(20, 10, 10)),
    ...     grid={"lam": [0.1, 1], "meta_step": [0.1]},
    ...     seeds=2,
    ... )
    >>> results.curve("one bias").T[-1], results.curve("one bias").n_seeds
    (np.int64(20), 2)
    """
    setting = setting if isinstance(setting, Setting) else Setting(*setting)
    seeds = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    workers = Parallel(jobs, prefer="threads" if active_engine() == "native" else "processes")
    with threadpool_limits(1 if effective_n_jobs(jobs) > 1 else None):  # one BLAS thread a seed
        parts = workers(
            delayed(run_seed)(source, methods, setting, grid or {}, seed, at, progress)
            for seed in seeds
        )
    joined = {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}
    told = {"seeds": seeds, "setting": setting._asdict(), **versions()}
    return Results(joined, told)


def run_seed(source, methods, setting: Setting, grid, seed: int, at=None, progress=None) -> dict:
    """Return the rows of one seed, as columns."""
    tasks = draw(source, setting, seed)
    rows: dict[str, list] = {name: [] for name in COLUMNS}
    for name, method in methods.items():
        method = seeded(method, seed, name)
        for row in judge(method, tasks, grid, at):
            for column, value in zip(COLUMNS, (name, seed, *row), strict=True):
                rows[column].append(value)
        if progress is not None:
            progress(seed, name)
    return {name: np.asarray(values) for name, values in rows.items()}


def draw(source, setting: Setting, seed: int) -> Draw:
    """Return the tasks of one seed, cut."""
    rng = np.random.default_rng([seed, 0])
    total = sum(setting.sizes)
    if hasattr(source, "sample"):
        tasks = source.sample(total, rng)
        order = np.arange(total)
    elif isinstance(source, TaskSet):
        if total > len(source):
            raise DataError(f"The setting asks for {total} tasks, and there are {len(source)}.")
        tasks, order = source, rng.permutation(len(source))[:total]
    else:
        raise DataError(f"source must be an environment or a TaskSet. Got {type(source)} instead.")
    train, validation, test = (
        tasks.subset(part) for part in np.split(order, np.cumsum(setting.sizes)[:-1])
    )
    cut = [part.split_points(setting.support, setting.how, rng) for part in (validation, test)]
    if setting.train_on == "support":
        train = train.split_points(setting.support, setting.how, rng)[0]
    return Draw(train, *cut)


def seeded(method, seed: int, name: str):
    """Return a copy of a method whose open random states are fixed by the seed and its name."""
    method = clone(method)
    stream = np.random.default_rng([seed, 1, zlib.crc32(name.encode())])
    params = method.get_params(deep=True)
    lists = [value for value in params.values() if isinstance(value, (list, tuple))]
    parts = [part for value in lists for part in value if hasattr(part, "get_params")]
    for part in (method, *parts):  # get_params does not reach into a list of maps
        given = part.get_params(deep=True)
        free = [key for key in sorted(given) if key.endswith("random_state") and given[key] is None]
        part.set_params(**{key: int(stream.integers(2**31)) for key in free})
    return method


def judge(method, tasks: Draw, grid, at):
    """Yield (T, lam, meta_step, split, error) of one method."""
    params = method.get_params(deep=False)
    fast = params.get("inner") in INNER
    names = [name for name in ("lam", "meta_step") if name in params]
    if not fast:  # what is "auto", and not in the grid, the method chooses
        names = [name for name in names if name in grid or not isinstance(params[name], str)]
    values = [np.asarray(grid[n], float) if n in grid else [params[n]] for n in names]
    values = [[1.0] if isinstance(v[0], str) else v for v in values]  # lam="cv" without a grid
    pairs = dict(zip(names, _columns(values), strict=True))
    if fast and isinstance(method, ConditionalSGD) and type(method).__name__.endswith("Regressor"):
        yield from _judge_sgd(method, tasks, pairs["lam"], pairs["meta_step"], at)
    elif fast and isinstance(method, FixedBias):
        yield from _judge_fixed(method, tasks, pairs["lam"], at)
    else:
        yield from _judge_any(method, tasks, pairs, at)


def _judge_sgd(method, tasks: Draw, lam, meta_step, at):
    trial = Trial.of(method, tasks.train, [tasks.validation, tasks.test])
    T = len(tasks.train)
    finals = trial.finals(lam, meta_step)[VALIDATION]
    best = best_pair(finals, lam, meta_step)
    for a, b, error in zip(lam, meta_step, finals, strict=True):
        yield T, a, b, "validation", error
    curve = trial.curves(lam[[best]], meta_step[[best]])[TEST, :, 0]
    for t in range(1, T + 1) if at is None else at:
        yield t, lam[best], meta_step[best], "test", curve[t - 1]


def _judge_fixed(method, tasks: Draw, lam, at):
    trial = Trial.of(method, tasks.train, [tasks.validation, tasks.test])
    theta = trial.learner._head.preparation.from_user(method.theta)
    errors = trial.at_fixed(theta, lam)
    best = best_pair(errors[VALIDATION], lam, np.zeros_like(lam))
    T = len(tasks.train)
    for a, error in zip(lam, errors[VALIDATION], strict=True):
        yield T, a, np.nan, "validation", error
    for t in range(1, T + 1) if at is None else at:
        yield t, lam[best], np.nan, "test", errors[TEST, best]


def _judge_any(method, tasks: Draw, pairs: dict, at):
    T, count = len(tasks.train), len(next(iter(pairs.values()), [0]))
    chosen = [{name: column[i] for name, column in pairs.items()} for i in range(count)]
    errors = np.array([_error(method, values, tasks.train, tasks.validation) for values in chosen])
    nothing = np.zeros(count)
    best = best_pair(errors, pairs.get("lam", nothing), pairs.get("meta_step", nothing))
    for values, error in zip(chosen, errors, strict=True):
        yield T, values.get("lam", np.nan), values.get("meta_step", np.nan), "validation", error
    lam, step = (chosen[best].get(name, np.nan) for name in ("lam", "meta_step"))
    for t in [T] if at is None else at:
        train = tasks.train.subset(np.arange(t))
        yield t, lam, step, "test", _error(method, chosen[best], train, tasks.test)


def _error(method, values, train: TaskSet, held: tuple[TaskSet, TaskSet]) -> float:
    """Return the mean over tasks of the mean query loss of a learner fitted anew."""
    learner = clone(method).set_params(**values).fit(train)
    support, query = held
    task = np.repeat(np.arange(len(query)), query.sizes)
    predicted = learner.adapt(support).predict(query.X, task=query.ids[task])
    lost = get_loss(getattr(method, "loss", "absolute")).value(predicted, query.y)
    return float(np.mean(np.bincount(task, lost) / np.bincount(task)))


def _columns(values) -> list[np.ndarray]:
    """Return the columns of all combinations."""
    rows = list(product(*values))
    return [np.array(column, dtype=float) for column in zip(*rows, strict=True)] if values else []
