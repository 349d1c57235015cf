"""The paper's protocol, for any methods on any environment or tasks.

Each seed draws tasks, splits them into training, validation and test tasks, and splits the points
of validation and test tasks into support and query. A method is fitted to the training tasks with
every pair (lam, meta_step) of the grid. The chosen pair is the one with the smallest mean query
loss on the validation tasks after the last training task. Its error on the test tasks is recorded
after every training task.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from condmeta.engine import active_engine
from condmeta.errors import DataError
from condmeta.inner.algorithms import INNER
from condmeta.learners.baselines import FixedBias
from condmeta.learners.grid_trial import GridTrial, best_pair
from condmeta.learners.sgd import ConditionalSGD
from condmeta.losses import get_loss
from condmeta.paper.experiments.results import COLUMNS, Results
from condmeta.tasks import TaskSet
from condmeta.versions import versions

VALIDATION, TEST = 0, 1


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
    order: str = "random"
    train_on: str = "support"


class SeedTasks(NamedTuple):
    """The tasks of one seed; validation and test hold support and query points."""

    train: TaskSet
    validation: tuple[TaskSet, TaskSet]
    test: tuple[TaskSet, TaskSet]


def run(
    source: Any, methods: Mapping[str, Any], *, setting: Setting | tuple,
    grid: Mapping[str, Sequence[float]] | None = None, seeds: int | Sequence[int] = 10,
    at: Sequence[int] | None = None, jobs: int | None = None, progress: Any = None,
) -> Results:  # fmt: skip
    """Compare methods by the paper's protocol.

    Parameters
    ----------
    source : environment with `sample(n_tasks, random_state)`, or TaskSet
    methods : dict of name -> learner
        Learners with `fit(TaskSet)` and `adapt(TaskSet)`; what `adapt` returns must have
        `predict(X, task=)`.
    setting : Setting, or a tuple of its first fields
    grid : dict of parameter -> values, optional
        Values of "lam" and "meta_step"; each method searches over the parameters that it has.
    seeds : int or sequence of int
        Number of seeds, 0, 1, ..., or the seeds themselves. The tasks and errors of a seed do not
        depend on other seeds, other methods or the number of jobs.
    at : sequence of int, optional
        Numbers of training tasks after which to record the test error. The default is every number
        for `ConditionalSGDRegressor` and the `FixedBias` learners, which need one fit for all of
        them, and only the last number for other methods, which need one fit for each.
    jobs : int, optional
        Number of seeds to run in parallel.
    progress : callable, optional
        Called with (seed, method) when a method has finished.

    Examples
    --------
    >>> import condmeta as cm
    >>> from condmeta.paper.experiments import Setting, run
    >>> env = cm.environments.Circle(d=3, n=8)
    >>> methods = {"one bias": cm.ConditionalSGDRegressor(feature_map=None)}
    >>> grid = {"lam": [0.1, 1], "meta_step": [0.1]}
    >>> results = run(env, methods, setting=Setting(sizes=(20, 10, 10)), grid=grid, seeds=2)
    >>> results.curve("one bias").T[-1], results.curve("one bias").n_seeds
    (np.int64(20), 2)
    """
    setting = setting if isinstance(setting, Setting) else Setting(*setting)
    seeds = list_seeds(seeds)
    job = partial(run_seed, source, methods, setting, grid or {}, at=at, progress=progress)
    parts = list(each_seed(job, seeds, effective_n_jobs(jobs)))
    joined = {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}
    return Results(joined, {"seeds": seeds, "setting": setting._asdict(), **versions()})


def list_seeds(seeds: int | Sequence[int]) -> list[int]:
    """Return the seeds 0, 1, ... of a number of seeds, or the seeds given."""
    return list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]


def each_seed(job: Callable[[int], Any], seeds: Sequence[int], jobs: int) -> Iterator[Any]:
    """Yield the results of the seeds in order; if closed early, wait for the running seeds.

    A thread that returns from compiled code while Python shuts down would abort the process.
    """
    if jobs == 1:
        yield from map(job, seeds)
    elif active_engine() == "native":
        with threadpool_limits(1), ThreadPoolExecutor(jobs) as pool:  # one BLAS thread a seed
            yield from pool.map(job, seeds)
    else:
        yield from Parallel(jobs, return_as="generator")(delayed(job)(seed) for seed in seeds)


def run_seed(source, methods, setting: Setting, grid, seed: int, at=None, progress=None) -> dict:
    """Return the rows of one seed, as columns."""
    tasks = draw(source, setting, seed)
    rows: dict[str, list] = {name: [] for name in COLUMNS}
    for name, method in methods.items():
        method = seeded(method, seed, name)
        for row in evaluate(method, tasks, grid, at):
            for column, value in zip(COLUMNS, (name, seed, *row), strict=True):
                rows[column].append(value)
        if progress is not None:
            progress(seed, name)
    return {name: np.asarray(values) for name, values in rows.items()}


def draw(source, setting: Setting, seed: int) -> SeedTasks:
    """Draw and split the tasks of one seed."""
    rng = np.random.default_rng([seed, 0])
    total = sum(setting.sizes)
    if hasattr(source, "sample"):
        tasks, order = source.sample(total, rng), np.arange(total)
    elif isinstance(source, TaskSet):
        if total > len(source):
            raise DataError(f"The setting needs {total} tasks; the source has {len(source)}.")
        tasks, order = source, rng.permutation(len(source))[:total]
    else:
        raise DataError(f"source must be an environment or a TaskSet. Got {type(source)} instead.")
    train, validation, test = (
        tasks.subset(part) for part in np.split(order, np.cumsum(setting.sizes)[:-1])
    )
    split = [part.split_points(setting.support, setting.order, rng) for part in (validation, test)]
    if setting.train_on == "support":
        train = train.split_points(setting.support, setting.order, rng)[0]
    return SeedTasks(train, *split)


def seeded(method, seed: int, name: str):
    """Return a copy of a method; each random_state of None is set from the seed and the name."""
    method = clone(method)
    stream = np.random.default_rng([seed, 1, zlib.crc32(name.encode())])
    params = method.get_params(deep=True)
    lists = [value for value in params.values() if isinstance(value, (list, tuple))]
    parts = [part for value in lists for part in value if hasattr(part, "get_params")]
    for part in (method, *parts):  # get_params does not descend into a list of maps
        given = part.get_params(deep=True)
        free = [key for key in sorted(given) if key.endswith("random_state") and given[key] is None]
        part.set_params(**{key: int(stream.integers(2**31)) for key in free})
    return method


def evaluate(method, tasks: SeedTasks, grid, at):
    """Yield (T, lam, meta_step, split, error) of one method."""
    params = method.get_params(deep=False)
    fast = params.get("inner") in INNER
    names = [name for name in ("lam", "meta_step") if name in params]
    if not fast:  # the method itself chooses a parameter that is "auto" and not in the grid
        names = [name for name in names if name in grid or not isinstance(params[name], str)]
    values = [np.asarray(grid[n], float) if n in grid else [params[n]] for n in names]
    values = [[1.0] if isinstance(v[0], str) else v for v in values]  # lam="cv" without a grid
    columns = np.meshgrid(*(np.asarray(v, float) for v in values), indexing="ij")
    pairs = {name: column.ravel() for name, column in zip(names, columns, strict=True)}
    if fast and isinstance(method, ConditionalSGD) and type(method).__name__.endswith("Regressor"):
        yield from _evaluate_sgd(method, tasks, pairs, at)
    elif fast and isinstance(method, FixedBias):
        yield from _evaluate_fixed(method, tasks, pairs, at)
    else:
        yield from _evaluate_any(method, tasks, pairs, at)


def _evaluate_sgd(method, tasks: SeedTasks, pairs: dict, at):
    trial = GridTrial.of(method, tasks.train, [tasks.validation, tasks.test])
    lam, meta_step = pairs["lam"], pairs["meta_step"]

    def test_errors(best):
        return trial.curves(lam[[best]], meta_step[[best]])[TEST, :, 0]

    errors = trial.finals(lam, meta_step)[VALIDATION]
    return _rows(len(tasks.train), pairs, errors, test_errors, at)


def _evaluate_fixed(method, tasks: SeedTasks, pairs: dict, at):
    trial = GridTrial.of(method, tasks.train, [tasks.validation, tasks.test])
    errors = trial.at_fixed(trial.scales.from_user(method.theta), pairs["lam"])
    T = len(tasks.train)
    return _rows(T, pairs, errors[VALIDATION], lambda best: np.full(T, errors[TEST, best]), at)


def _evaluate_any(method, tasks: SeedTasks, pairs: dict, at):
    T, count = len(tasks.train), len(next(iter(pairs.values()), [0]))
    chosen = [{name: column[i] for name, column in pairs.items()} for i in range(count)]
    errors = np.array([_error(method, values, tasks.train, tasks.validation) for values in chosen])
    at = [T] if at is None else at

    def test_errors(best):
        parts = ((t, tasks.train.subset(np.arange(t))) for t in at)
        return {t - 1: _error(method, chosen[best], train, tasks.test) for t, train in parts}

    return _rows(T, pairs, errors, test_errors, at)


def _rows(T: int, pairs: dict, errors: np.ndarray, test_errors, at):
    """Yield the validation error of every pair, and the test errors of the best pair.

    ``test_errors(best)[t - 1]`` is the error of pair `best` after t tasks. A missing parameter of
    the method is nan.
    """
    lam, meta_step = (pairs.get(n, np.full(len(errors), np.nan)) for n in ("lam", "meta_step"))
    for a, b, error in zip(lam, meta_step, errors, strict=True):
        yield T, a, b, "validation", error
    best = best_pair(errors, lam, meta_step)
    found = test_errors(best)
    for t in range(1, T + 1) if at is None else at:
        yield t, lam[best], meta_step[best], "test", found[t - 1]


def _error(method, values, train: TaskSet, held: tuple[TaskSet, TaskSet]) -> float:
    """Fit a learner to `train` and return the mean over held-out tasks of the mean query loss."""
    learner = clone(method).set_params(**values).fit(train)
    support, query = held
    task = np.repeat(np.arange(len(query)), query.sizes)
    predicted = learner.adapt(support).predict(query.X, task=query.ids[task])
    losses = get_loss(getattr(method, "loss", "absolute")).value(predicted, query.y)
    return float(np.mean(np.bincount(task, losses) / np.bincount(task)))
