"""Start-up: what `import condmeta` and a first fit add to the imports that everyone pays.

In each fresh process the peer is imported first, then ours. We time only the second part: the noise
of the peer's import is larger than our own time, so a difference of two processes is useless.

The rows of commands are processor times of whole processes: until a mistyped file name is reported,
until the first table is in memory, and for `condmeta compare` with boosted trees.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

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
    return [*rows, *_commands()]


ROLES = "'--task', 'store', '--target', 'sold', '--side-table', 'stores.csv'"
COMMAND = "import sys, time; sys.argv = ['condmeta', {words}]\nfrom condmeta.cli import main\n"
RUN = COMMAND + "try:\n    main()\nexcept SystemExit:\n    print(time.process_time())"
FIRST_TABLE = COMMAND + (
    "import condmeta.cli.inputs as inputs\nread = inputs.read_table\n"
    "def timed(*args, **options):\n    table = read(*args, **options)\n"
    "    print(table.num_rows, time.process_time())\n    sys.exit()\n"
    "inputs.read_table = timed\nmain()"
)


def _commands() -> list[dict]:
    """Measure commands in fresh processes: seconds of processor time of all their threads."""
    fit, compare = f"'fit', '{{}}', {ROLES}, '-o', 'm.condmeta'", f"'compare', 'sales.csv', {ROLES}"
    programs = {
        "condmeta fit of a mistyped file name: the error": (RUN, fit.format("sale.csv"), 0.4, 7),
        "condmeta fit: the first table read": (FIRST_TABLE, fit.format("sales.csv"), 1.0, 7),
        "condmeta compare with boosting, 2,600 rows": (RUN, compare + ", '--quiet'", 15.0, 1),
    }
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        _write_tables(Path(folder))
        for what, (program, words, limit, repeats) in programs.items():
            text = program.format(words=words)
            times = [float(_output(text, folder).split()[-1]) for _ in range(repeats + 1)][1:]
            verdict = at_most(statistics.median(times), limit, " s")
            note = f"processor time of the process; median of {repeats}"
            rows.append(row(what, show_time(statistics.median(times)), "-", verdict, note))
    return rows


def _write_tables(folder: Path) -> None:
    """Write 20 sales of each of 130 stores, and a table of the stores."""
    rng, T, n = np.random.default_rng(0), 130, 20
    size, town = rng.normal(size=T), rng.choice(list("xyz"), T)
    stores = [f"s{t:03d},{size[t]:.3f},{town[t]}" for t in range(T)]
    (folder / "stores.csv").write_text("\n".join(["store,size,town", *stores]) + "\n")
    lines = ["store,price,promo,temp,kind,sold"]
    for t in np.repeat(np.arange(T), n):
        price, temp, noise = rng.normal(size=3)
        promo, kind = rng.integers(2), rng.choice(list("abcd"))
        sold = (1 + size[t]) * price + promo + np.sin(2 * temp) + 0.3 * noise
        lines.append(f"s{t:03d},{price:.3f},{promo},{temp:.3f},{kind},{sold:.3f}")
    (folder / "sales.csv").write_text("\n".join(lines) + "\n")


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


def _output(program: str, folder: str | None = None) -> str:
    # Byte code is kept, as it is for installed packages: pip compiles them.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, cwd=folder)
    return done.stdout
