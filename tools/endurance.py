"""Calls without end: memory stays flat, and mixed traffic leaves the state of the same updates.

    python tools/endurance.py leaks --calls 1000000
    python tools/endurance.py load --minutes 10 --tasks 100000 --threads 4

`leaks` calls adapt, predict and update in turn, on one model of 200 tasks, and compares the
resident size after a tenth of the calls with the size at the end. `load` sends predictions and
updates to one model from several threads. It prints calls a second, the 99th percentile of their
times, errors, and whether the final state equals that of the same updates one after another.
"""

from __future__ import annotations

import argparse
import copy
import gc
import queue
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import condmeta as cm
from condmeta.fitted.known_statistics import known_statistics


def resident_size() -> int:
    """Return the resident size of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


def fitted_model(tasks: int, rows: int = 5, features: int = 3, seed: int = 0, n_jobs: int = 1):
    """Return a fitted ridge of many small tasks."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(tasks * rows, features))
    task = np.repeat(np.arange(tasks), rows)
    y = X @ np.ones(features) + rng.normal(size=tasks)[task] + rng.normal(size=len(X))
    side = cm.TaskTable(rng.normal(size=(tasks, 1)), ids=np.arange(tasks))
    learner = cm.ConditionalRidge(metric="full", noise="shared", kappa=1.0, n_jobs=n_jobs)
    return learner.fit(X, y, task=task, side_info=side)


def use(model, number: int) -> bytes:
    """Predict, adapt, and update a copy of a model; return all answers as bytes."""
    rng = np.random.default_rng(number)
    X, y, task = rng.normal(size=(20, 3)), rng.normal(size=20), rng.integers(0, 30, 20)
    mine = copy.deepcopy(model).update(X, y, task=task)
    answers = mine.predict(X, task=task), model.predict(X, task=task)
    adapted = model.adapt(X[:4], y[:4], side_info=[0.5]).coef_
    return b"".join(array.tobytes() for array in (*answers, adapted))


def fit_bytes(n_jobs: int = 1) -> bytes:
    """Fit a model and return its coefficients as bytes."""
    return fitted_model(30, n_jobs=n_jobs).fitted_.tasks.coef.tobytes()


class Growth(NamedTuple):
    """Resident sizes in bytes after the first tenth of the calls, and at the end."""

    early: int
    late: int

    @property
    def share(self) -> float:
        """How much the size has grown."""
        return self.late / self.early - 1


def leaks(calls: int) -> Growth:
    """Call adapt, predict and update in turn; return the resident sizes."""
    model = fitted_model(200)
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(64, 3)), rng.normal(size=64)
    early = 0
    for number in range(calls):
        at = slice(number % 60, number % 60 + 2)
        task = [number % 200] * 2
        if number % 3 == 0:
            model.adapt(X[at], y[at], side_info=[0.5]).predict(X[at])
        elif number % 3 == 1:
            model.predict(X[at], task=task)
        else:
            model.update(X[at], y[at], task=task)
        if number == calls // 10:
            gc.collect()
            early = resident_size()
    gc.collect()
    return Growth(early, resident_size())


class Traffic(NamedTuple):
    """What mixed traffic showed."""

    calls: int
    updates: int
    seconds: float
    percentile: float
    errors: list[str]
    same_state: bool


def load(seconds: float, tasks: int, threads: int, seed: int = 0) -> Traffic:
    """Send updates and predictions to one model from several threads."""
    model = fitted_model(tasks, features=2)
    alone = cm.ConditionalRidge(metric="full", noise="shared", kappa=1.0, n_jobs=1)
    alone._model = model.fitted_
    done: queue.Queue = queue.Queue()
    errors: list[str] = []
    times: list[list[float]] = [[] for _ in range(threads)]
    end = time.monotonic() + seconds

    def work(number: int) -> None:
        rng = np.random.default_rng([seed, number])
        mine = np.arange(number, tasks, threads)  # updates of one task come in one order
        while time.monotonic() < end:
            chosen = rng.choice(mine, 100, replace=False)
            X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
            start = time.monotonic()
            try:
                if rng.random() < 0.1:
                    model.update(X, y, task=chosen)
                    done.put((X, y, chosen))
                else:
                    answers = model.predict(X, task=chosen)
                    if not np.isfinite(answers).all():
                        errors.append("a prediction is not finite")
            except Exception as error:
                errors.append(f"{type(error).__name__}: {error}")
            times[number].append(time.monotonic() - start)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    updates = [done.get() for _ in range(done.qsize())]
    for X, y, chosen in updates:
        alone.update(X, y, task=chosen)
    state, expected = model.fitted_.tasks, alone.fitted_.tasks
    same = bool(np.array_equal(state.sizes, expected.sizes))
    pairs = zip(*(known_statistics(m.fitted_) for m in (model, alone)), strict=True)
    same &= all(np.array_equal(a, b) for a, b in pairs)
    same &= bool(np.array_equal(state.coef, expected.coef))
    took = np.concatenate(times)
    return Traffic(len(took), len(updates), seconds, float(np.quantile(took, 0.99)), errors, same)


def main() -> int:
    """Run one of the two studies."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("study", choices=["leaks", "load"])
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=4)
    options = parser.parse_args()
    if options.study == "leaks":
        found = leaks(options.calls)
        print(
            f"{options.calls:,} calls: {found.early / 1e6:.1f} MB after a tenth, "
            f"{found.late / 1e6:.1f} MB at the end, {100 * found.share:+.2f} %"
        )
        return int(found.share > 0.01)
    seen = load(60 * options.minutes, options.tasks, options.threads)
    print(
        f"{options.tasks:,} tasks, {options.threads} threads, {seen.seconds:.0f} s: "
        f"{seen.calls / seen.seconds:,.0f} calls of 100 rows a second ({seen.updates:,} updates), "
        f"99th percentile {1000 * seen.percentile:.1f} ms, {len(seen.errors)} errors, final state "
        f"{'equal to' if seen.same_state else 'DIFFERENT FROM'} the same updates in order"
    )
    print(*seen.errors[:5], sep="\n")
    return int(bool(seen.errors) or not seen.same_state)


if __name__ == "__main__":
    sys.exit(main())
