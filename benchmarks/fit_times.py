"""How long a fit takes on the first twelve data sets of `benchmarks.accuracy`, beside former code.

The variable CONDMETA_FORMER names a Python that has the former condmeta installed; without it the
times stand alone. The goals are those set when the learners began to choose more from the data, for
the sum over data sets: at commit ef8d934 `ConditionalRidge` had no transformations to choose.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import numpy as np

GOALS = {"ConditionalRidge": 1.5, "AutoRegressor": 2.0}
REPEATS = {"ConditionalRidge": 5, "AutoRegressor": 1}
ROUNDS = 3


def measured(learner: str) -> dict[str, float]:
    """Return the least processor seconds of a fit on each data set."""
    import condmeta as cm
    from benchmarks.accuracy.data import FIRST
    from benchmarks.accuracy.problem import split

    make, found = getattr(cm, learner), {}
    for name, problem in FIRST.items():
        train = split(problem, 0).train
        if not found:
            make().fit(train)  # loads all
        found[name] = min(_seconds(make(), train) for _ in range(REPEATS[learner]))
    return found


def _seconds(model, train) -> float:
    start = time.process_time()
    model.fit(train)
    return time.process_time() - start


def child(learner: str, python: str) -> dict[str, float]:
    """Measure in a process of its own."""
    command = [python, "-W", "ignore", "-m", "benchmarks.fit_times", learner]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def rows_of(learner: str, former: str | None) -> list[dict]:
    """Return a row for each data set, and one for all, which has the goal."""
    pythons = [sys.executable] if former is None else [sys.executable, former]
    rounds = [[child(learner, python) for python in pythons] for _ in range(ROUNDS)]
    names = list(rounds[0][0])
    times = np.array([[[each[name] for name in names] for each in pair] for pair in rounds])
    least = times.min(axis=0)
    least = np.column_stack([least, least.sum(axis=1)])
    out = []
    for j, name in enumerate([*names, "all twelve"]):
        row = {"what": f"{learner}: {name}", "ours": f"{least[0, j]:.3g} s"}
        if former is not None:
            row |= {"peer": f"{least[1, j]:.3g} s", "ratio": least[0, j] / least[1, j]}
        out.append(row | {"note": f"peer: former code, in turn; least of {ROUNDS} rounds"})
    if former is not None:
        goal = GOALS[learner]
        out[-1] |= {"goal": f"<= {goal}", "met": bool(out[-1]["ratio"] <= goal)}
    return out


def main() -> list[dict]:
    """Return the rows of the table."""
    former = os.environ.get("CONDMETA_FORMER")
    return [row for learner in GOALS for row in rows_of(learner, former)]


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1])))
