"""Run one method on the splits of one data set, in its own process, with a time limit."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.accuracy.data import PROBLEMS
from benchmarks.accuracy.methods import METHODS
from benchmarks.accuracy.problem import Problem, split

ATTEMPTS = 3
LOST = 255  # the exit code where the fork server ended: no result of the method


class Outcome(NamedTuple):
    """Errors (splits, sizes), processor seconds of each fit, and of adapting to one new task.

    `failure` says why splits are missing.
    """

    errors: list[list[float]]
    fit: list[float]
    adapt: list[float]
    failure: str = ""


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
    context.set_forkserver_preload([__name__])  # what all processes import is imported once
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, problem, method, splits, limit))
    process.start()
    sender.close()
    done, failure = [], ""
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
        failure = f"> {limit:g} s"
    elif code and not failure:
        failure = f"ended with code {code}"
    columns = zip(*done, strict=True) if done else ((), (), ())
    return Outcome(*map(list, columns), failure), code


def _work(sender: Any, problem: str, method: str, splits: int, limit: float) -> None:
    """Send (errors, fit, adapt) of every split, or a sentence and no more."""
    for seed in range(splits):
        try:
            sender.send(measure(PROBLEMS[problem], METHODS[method].make, seed, limit))
        except ImportError as error:
            sender.send(f"not available: {error}")
            return
        except Exception as error:  # whatever a peer raises is its result
            sentence = str(error).partition("\n")[0][:120]
            sender.send(f"failed: {type(error).__name__}: {sentence}")
            return


def measure(problem: Problem, make, seed: int, limit: float | None = None):
    """Return the errors of one split by support size, and the seconds of fit and of adapting."""
    train, supports, query = split(problem, seed)
    model = make()
    if limit is not None:
        # The system ends the process: no signal handler runs inside compiled code.
        most = int(_seconds() + limit) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
    start = _seconds()
    model.fit(train)
    fitted = _seconds()
    errors = []
    for support in supports:
        predicted = np.asarray(model.predict(support, query), dtype=float)
        if predicted.shape != query.y.shape or not np.isfinite(predicted).all():
            raise ValueError("predictions are not finite, or not one a row")
        errors.append(float(np.abs(predicted - query.y).mean()))
    adapting = (_seconds() - fitted) / (len(supports) * len(query))
    return errors, fitted - start, adapting


def _seconds() -> float:
    """Return the processor seconds of this process and of those it started and awaited."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
