"""Start-up: what `import condmeta` and a first fit add to the imports that everyone pays.

In each fresh process the peer is imported first, then ours. We time only the second part: the noise
of the peer's import is larger than our own time, so a difference of two processes is useless.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

from benchmarks.common import at_most, require, row, show_time

REPEATS = 7
HEAVY = ("sklearn", "pandas", "polars", "pyarrow", "matplotlib", "narwhals", "scipy")
NUMPY, SKLEARN = "import numpy", "import numpy, sklearn.base"
IMPORT = "import condmeta"
TASKS = "import condmeta as cm; cm.TaskSet.from_arrays([[1.0], [2.0]], [1.0, 2.0], [7, 8])"
FIT = (
    "import numpy as np, condmeta as cm; side = cm.TaskTable([[1.0], [2.0]], [7, 8]); "
    "cm.ConditionalSGDRegressor().fit(np.eye(4), np.ones(4), task=[7, 7, 8, 8], side_info=side)"
)


def main() -> list[dict]:
    """Measure fresh processes, interleaved, medians."""
    loaded = _loaded(IMPORT)
    require(not loaded, f"import condmeta loads {', '.join(loaded)}.")
    cases = {
        "import condmeta, on top of numpy": (NUMPY, IMPORT),
        "import condmeta and a first TaskSet, on top of numpy": (NUMPY, TASKS),
        "import condmeta and a first fit, on top of sklearn.base": (SKLEARN, FIT),
    }
    for case in cases.values():
        run(*case)  # byte code and file cache
    runs: dict[str, list] = {what: [] for what in cases}
    for _ in range(REPEATS):
        for what, case in cases.items():
            runs[what].append(run(*case))
    rows = []
    for what, (peer, ours) in cases.items():
        base, added = (statistics.median(times) for times in zip(*runs[what], strict=True))
        verdict = at_most(added * 1e3, 50, " ms") | {"goal": "<= +50 ms"}
        extra = [name for name in _loaded(f"{peer}; {ours}") if name not in _loaded(peer)]
        note = f"median of {REPEATS} processes; loads {', '.join(extra) or 'nothing heavy'} itself"
        rows.append(row(what, f"+{show_time(added)}", show_time(base), verdict, note))
    return rows


def run(peer: str, ours: str) -> tuple[float, float]:
    """Return the processor seconds that a fresh interpreter takes for the peer, then for ours."""
    clock = "at.append(time.process_time())"
    text = f"import time; at = []\n{clock}\n{peer}\n{clock}\n{ours}\n{clock}\nprint(*at)"
    start, between, end = map(float, _output(text).split())
    return between - start, end - between


def _loaded(program: str) -> list[str]:
    """Return which of the heavy packages a program loads."""
    return _output(
        f"{program}\nimport sys; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    ).split()


def _output(program: str) -> str:
    # Byte code is kept, as it is for installed packages: pip compiles them.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
