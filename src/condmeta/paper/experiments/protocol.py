"""The paper's protocol, for any methods on any environment or tasks.

Each seed draws tasks, splits them into training, validation and test tasks, and splits the points
of validation and test tasks into support and query. A method is fitted to the training tasks with
every pair (lam, meta_step) of the grid. The chosen pair is the one with the smallest mean query
error on the validation tasks after the last training task. Its error on the test tasks is recorded
after every training task. All methods are judged by the same metric, whatever their losses.
"""

import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone, is_classifier

from condmeta.blas_threads import limit_threads
from condmeta.engine import active_engine
from condmeta.errors import DataError, DivergenceError
from condmeta.inner.algorithms import INNER
from condmeta.learners.baselines import Baseline, FixedBias
from condmeta.learners.grid_trial import GridTrial, best_pair
from condmeta.learners.sgd import ConditionalSGD
from condmeta.paper.experiments.metric import Metric, get_metric
from condmeta.paper.experiments.results import COLUMNS, Results
from condmeta.paper.experiments.seed_tasks import SeedTasks, Setting, check_setting, draw
from condmeta.tasks import TaskSet
from condmeta.tasks.messages import show_ids
from condmeta.text import pluralize
from condmeta.typing import Environment
from condmeta.versions import versions

VALIDATION, TEST = 0, 1
PARAMETERS = "lam", "meta_step"  # those that a grid may hold: columns of the results


def run(
    source: Environment | TaskSet, methods: Mapping[str, Any], *, setting: Setting | tuple,
    grid: Mapping[str, Sequence[float]] | None = None, seeds: int | Sequence[int] = 10,
    metric: Literal["absolute", "squared", "zero_one"] | Callable[..., Any] = "absolute",
    at: Sequence[int] | None = None, jobs: int | None = None,
    progress: Callable[[int, str], object] | None = None,
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
    metric : "absolute", "squared", "zero_one", or a function metric(y, predicted)
        The error of a row, the same for all methods, whatever loss they minimise; a function
        returns one number for each row. An error of the results is the mean over tasks of a task's
        mean over its query rows. "zero_one" is the share of wrong classes.
    at : sequence of int, optional
        Numbers of training tasks after which to record the test error. The default is every number
        for `ConditionalSGDRegressor` and the `FixedBias` learners, which need one fit for all of
        them, and only the last number for other methods, which need one fit for each.
    jobs : int, optional
        Number of seeds to run in parallel.
    progress : callable, optional
        Called with (seed, method) when a method has finished.

    Notes
    -----
    A validation or test task without query rows, as one of a single row, cannot be judged: it is
    left out with a warning, and `provenance["left_out"]` lists such tasks by seed. The error of a
    pair with which a method diverges is infinite.

    Examples
    --------
    >>> import condmeta as cm
    >>> from condmeta.experiments import Setting, run
    >>> env = cm.environments.Circle(d=3, n=8)
    >>> methods = {"one bias": cm.ConditionalSGDRegressor(feature_map=None)}
    >>> grid = {"lam": [0.1, 1], "meta_step": [0.1]}
    >>> results = run(env, methods, setting=Setting(sizes=(20, 10, 10)), grid=grid, seeds=2)
    >>> results.curve("one bias").T[-1], results.curve("one bias").n_seeds
    (np.int64(20), 2)
    """
    setting = setting if isinstance(setting, Setting) else Setting(*setting)
    seeds, metric, grid = list_seeds(seeds), get_metric(metric), dict(grid or {})
    _check_grid(grid)
    _check_methods(methods)
    check_setting(setting)
    _check_at(at, setting.sizes[0])
    job = partial(run_seed, source, methods, setting, grid, metric, at=at, progress=progress)
    parts = list(each_seed(job, seeds, effective_n_jobs(jobs)))
    joined = {name: np.concatenate([part[name] for part, _ in parts]) for name in COLUMNS}
    left_out = {seed: ids for seed, (_, ids) in zip(seeds, parts, strict=True) if ids}
    if left_out:
        _warn_left_out(left_out, len(seeds), setting)
    _warn_divergence(joined)
    made = {"seeds": seeds, "setting": setting._asdict(), "metric": metric.name}
    made["baselines"] = [name for name, method in methods.items() if _is_baseline(method)]
    return Results(joined, made | {"left_out": left_out} | versions())


def _is_baseline(method: Any) -> bool:
    """Return whether a method is known to read no side information."""
    return isinstance(method, Baseline) or method.get_params().get("feature_map", "") is None


def _check_grid(grid: Mapping[str, Any]) -> None:
    unknown = [name for name in grid if name not in PARAMETERS]
    if unknown:
        raise DataError(
            f"The grid of run may hold 'lam' and 'meta_step'. Got {unknown[0]!r} too. To compare "
            "values of another parameter, pass one method for each value."
        )
    for name, values in grid.items():
        if np.ndim(values) != 1 or not len(values):
            raise DataError(
                f"The grid of run holds a list of numbers for each parameter. Got {values!r} for "
                f"{name!r}."
            )
        odd = next((value for value in values if not isinstance(value, Real)), None)
        if odd is not None:
            raise DataError(
                f"The grid of run holds numbers. Got a {type(odd).__name__} for {name!r}: pass one "
                "method for each outer step."
            )
        wrong = next((value for value in values if not 0 < value < np.inf), None)
        if wrong is not None:
            raise DataError(
                f"The grid of run holds finite numbers above 0. Got {wrong} for {name!r}."
            )


def _check_methods(methods: Mapping[str, Any]) -> None:
    if not isinstance(methods, Mapping) or not all(isinstance(name, str) for name in methods):
        raise DataError(f"methods must be a dict of text -> learner. Got {methods!r}.")
    for name, method in methods.items():
        missing = [call for call in ("get_params", "fit", "adapt") if not hasattr(method, call)]
        if missing or isinstance(method, type):
            problem = f"has no {missing[0]}" if missing else "is a class: pass an object"
            raise DataError(
                f"The method {name!r} of run must be a scikit-learn estimator (a BaseEstimator) "
                f"with fit(tasks) and adapt(tasks). It {problem}."
            )


def _check_at(at: Sequence[int] | None, T: int) -> None:
    for t in () if at is None else at:
        if not (isinstance(t, Integral) and 1 <= t <= T):
            raise DataError(f"at must hold numbers of training tasks, from 1 to {T}. Got {t}.")


def _warn_divergence(joined: dict[str, np.ndarray]) -> None:
    """Warn of methods that have no finite validation error in some seeds."""
    finite = (joined["split"] == "validation") & np.isfinite(joined["error"])
    for name in dict.fromkeys(joined["method"].tolist()):
        mine = joined["method"] == name
        seeds = np.unique(joined["seed"][mine])
        lost = np.setdiff1d(seeds, joined["seed"][mine & finite])
        if len(lost):
            warnings.warn(
                f"The method {name!r} diverges with all its settings in {len(lost)} of "
                f"{pluralize(len(seeds), 'seed')}: its errors there are infinite. Use larger lam, "
                "smaller meta_step, or a loss with bounded slopes.",
                stacklevel=3,
            )


def _warn_left_out(left_out: dict[int, list], n_seeds: int, setting: Setting) -> None:
    seed, ids = next(iter(left_out.items()))
    warnings.warn(
        f"{pluralize(len(ids), 'task')} of seed {seed} ({show_ids(ids)}) "
        f"{'has' if len(ids) == 1 else 'have'} no query rows with support={setting.support}: left "
        f"out of the errors. This happened in {len(left_out)} of {pluralize(n_seeds, 'seed')}; "
        "provenance['left_out'] lists the tasks.",
        stacklevel=3,
    )


def list_seeds(seeds: int | Sequence[int]) -> list[int]:
    """Return the seeds 0, 1, ... of a number of seeds, or the seeds given."""
    listed = list(range(seeds)) if isinstance(seeds, Integral) else list(seeds)
    right = all(isinstance(seed, Integral) and seed >= 0 for seed in listed)
    if not listed or not right or len(set(listed)) < len(listed):
        raise DataError(
            "seeds must be at least one seed: the number of seeds, or a list of different integers "
            f"of at least 0. Got {seeds!r}."
        )
    return [int(seed) for seed in listed]


def each_seed(job: Callable[[int], Any], seeds: Sequence[int], jobs: int) -> Iterator[Any]:
    """Yield the results of the seeds in order; if closed early, wait for the running seeds.

    A thread that returns from compiled code while Python shuts down would abort the process.
    """
    if jobs == 1:
        yield from map(job, seeds)
    elif active_engine() == "native":
        with limit_threads(1), ThreadPoolExecutor(jobs) as pool:  # one BLAS thread a seed
            yield from pool.map(job, seeds)
    else:
        yield from Parallel(jobs, return_as="generator")(delayed(job)(seed) for seed in seeds)


def run_seed(
    source: Any,
    methods: Any,
    setting: Setting,
    grid: Any,
    metric: Metric,
    seed: int,
    at: Sequence[int] | None = None,
    progress: Any = None,
) -> tuple[dict[str, np.ndarray], list]:
    """Return the rows of one seed, as columns, and the tasks that were left out."""
    tasks = draw(source, setting, seed)
    rows: dict[str, list] = {name: [] for name in COLUMNS}
    for name, method in methods.items():
        method = seeded(method, seed, name)
        for row in evaluate(method, tasks, grid, metric, at):
            for column, value in zip(COLUMNS, (name, seed, *row), strict=True):
                rows[column].append(value)
        if progress is not None:
            progress(seed, name)
    return {name: np.asarray(values) for name, values in rows.items()}, tasks.left_out


def seeded(method: Any, seed: int, name: str):
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


def evaluate(method: Any, tasks: SeedTasks, grid: Any, metric: Metric, at: Sequence[int] | None):
    """Yield (T, lam, meta_step, split, error) of one method."""
    params = method.get_params(deep=False)
    fixed = [name for name in PARAMETERS if name in params and not _is_searched(name, params, grid)]
    fast = params.get("inner") in INNER and not fixed
    names = [name for name in PARAMETERS if name in params and name not in fixed]
    values = [np.asarray(grid.get(name, [params[name]]), float) for name in names]
    if fast and isinstance(params.get("lam"), str):  # the grid takes the place of "cv"
        method = clone(method).set_params(lam=float(grid["lam"][0]))
    columns = np.meshgrid(*values, indexing="ij")
    pairs = {name: column.ravel() for name, column in zip(names, columns, strict=True)}
    if fast and isinstance(method, ConditionalSGD) and type(method).__name__.endswith("Regressor"):
        yield from _evaluate_sgd(method, tasks, pairs, metric, at)
    elif fast and isinstance(method, FixedBias) and not is_classifier(method):
        yield from _evaluate_fixed(method, tasks, pairs, metric, at)
    else:
        yield from _evaluate_any(method, tasks, pairs, metric, at)


def _is_searched(name: str, params: Mapping[str, Any], grid: Mapping[str, Any]) -> bool:
    """Return whether a parameter is searched over or a number; else the method keeps its own.

    The method itself chooses a parameter that is "auto" and not in the grid. A function or an outer
    step as meta_step has its own size.
    """
    value = params[name]
    return isinstance(value, Real) or (name in grid and isinstance(value, str))


def _trial(method: Any, tasks: SeedTasks, metric: Metric) -> GridTrial:
    trial = GridTrial.of(method, tasks.train, [tasks.validation, tasks.test])
    return trial if metric.is_loss_of(method) else trial._replace(metric=metric.errors)


def _evaluate_sgd(
    method: Any, tasks: SeedTasks, pairs: dict, metric: Metric, at: Sequence[int] | None
):
    trial = _trial(method, tasks, metric)
    lam, meta_step = pairs["lam"], pairs["meta_step"]

    def test_errors(best: Any):
        return trial.curves(lam[[best]], meta_step[[best]])[TEST, :, 0]

    errors = trial.finals(lam, meta_step)[VALIDATION]
    return _rows(len(tasks.train), pairs, errors, test_errors, at)


def _evaluate_fixed(
    method: Any, tasks: SeedTasks, pairs: dict, metric: Metric, at: Sequence[int] | None
):
    trial = _trial(method, tasks, metric)
    errors = trial.at_fixed(trial.scales.from_user(method.theta), pairs["lam"])
    T = len(tasks.train)
    return _rows(T, pairs, errors[VALIDATION], lambda best: np.full(T, errors[TEST, best]), at)


def _evaluate_any(
    method: Any, tasks: SeedTasks, pairs: dict, metric: Metric, at: Sequence[int] | None
):
    T, count = len(tasks.train), len(next(iter(pairs.values()), [0]))
    chosen = [{name: column[i] for name, column in pairs.items()} for i in range(count)]

    def error(values: Any, train: Any, held: Any) -> float:
        try:
            return _error(clone(method).set_params(**values).fit(train), held, metric)
        except DivergenceError:
            return np.inf

    errors = np.array([error(values, tasks.train, tasks.validation) for values in chosen])
    at = [T] if at is None else at

    def test_errors(best: Any):
        parts = ((t, tasks.train.subset(np.arange(t))) for t in at)
        return {t - 1: error(chosen[best], train, tasks.test) for t, train in parts}

    return _rows(T, pairs, errors, test_errors, at)


def _rows(T: int, pairs: dict, errors: np.ndarray, test_errors: Any, at: Sequence[int] | None):
    """Yield the validation error of every pair, and the test errors of the best pair.

    ``test_errors(best)[t - 1]`` is the error of pair `best` after t tasks. A missing parameter of
    the method is nan.
    """
    lam, meta_step = (pairs.get(n, np.full(len(errors), np.nan)) for n in PARAMETERS)
    for a, b, error in zip(lam, meta_step, errors, strict=True):
        yield T, a, b, "validation", error
    best = best_pair(errors, lam, meta_step)
    found = test_errors(best)
    for t in range(1, T + 1) if at is None else at:
        yield t, lam[best], meta_step[best], "test", found[t - 1]


def _error(learner: Any, held: tuple[TaskSet, TaskSet], metric: Metric) -> float:
    """Return the mean over held-out tasks of a fitted learner's mean query error."""
    support, query = held
    task = np.repeat(np.arange(len(query)), query.sizes)
    predicted = learner.adapt(support).predict(query.X, task=query.ids[task])
    errors = metric.errors(query.y, predicted)
    return float(np.mean(np.bincount(task, errors) / query.sizes))
