"""Start-up: what `import condmeta` and a first fit add to the imports that everyone pays."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

from benchmarks.common import at_most, require, row, show_time

REPEATS = 15
FOREIGN = ("sklearn", "pandas", "polars", "pyarrow", "matplotlib", "narwhals", "scipy")
TASKS = "from condmeta import TaskSet; TaskSet.from_arrays([[1.0], [2.0]], [1.0, 2.0], [7, 8])"
FIT = (
    "import numpy as np, condmeta as cm; X = np.eye(4); s = cm.TaskTable([[1.0], [2.0]], [7, 8]); "
    "cm.ConditionalSGDRegressor().fit(X, np.ones(4), task=[7, 7, 8, 8], side_info=s)"
)
PROGRAMS = {
    "nothing": "pass",
    "numpy": "import numpy",
    "condmeta": "import numpy, condmeta",
    "tasks": TASKS,
    "sklearn": "import numpy, sklearn.base",
    "fit": FIT,
}


def main() -> list[dict]:
    """Measure fresh processes, interleaved, medians."""
    loaded = _loaded("import condmeta")
    require(not loaded, f"import condmeta loads {', '.join(loaded)}.")
    for program in PROGRAMS.values():
        run(program)  # byte code and file cache
    runs: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(REPEATS):
        for name, program in PROGRAMS.items():
            runs[name].append(run(program))
    at = {name: statistics.median(times) for name, times in runs.items()}
    empty = at["nothing"]
    note = f"processor time of fresh processes less an empty one's, median of {REPEATS} interleaved"
    also = ", ".join(_loaded(TASKS)) or "none"
    return [
        _row("import condmeta, against numpy", at["condmeta"], at["numpy"], empty,
             f"{note}; loads none of {', '.join(FOREIGN)}"),
        _row("import condmeta and make a TaskSet, against numpy", at["tasks"], at["numpy"], empty,
             f"of these loaded: {also}"),
        _row("first fit, against sklearn.base", at["fit"], at["sklearn"], empty,
             f"imports included; of these loaded: {', '.join(_loaded(FIT))}"),
    ]  # fmt: skip


def run(program: str) -> float:
    """Return the processor seconds of a fresh interpreter that runs a program."""
    child = subprocess.Popen([sys.executable, "-c", program])
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    require(child.returncode == 0, f"The program failed: {program}")
    return usage.ru_utime + usage.ru_stime


def _loaded(program: str) -> list[str]:
    """Return which of the heavy packages a program loads."""
    text = f"{program}\nimport sys; print(*[m for m in {FOREIGN!r} if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return answer.stdout.split()


def _row(what: str, ours: float, peer: float, empty: float, note: str) -> dict:
    verdict = at_most((ours - peer) * 1e3, 50, " ms")
    verdict = verdict | {"ratio": "+" + verdict["ratio"], "goal": "<= +50 ms"}
    return row(what, show_time(ours - empty), show_time(peer - empty), verdict, note)
