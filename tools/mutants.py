"""Put small faults into the mathematics, one at a time, and see whether a test notices.

    make mutants                                # all mutants of tools/mutants.toml
    python tools/mutants.py meta/ridge --jobs 2 # those in files of this name

A mutant replaces one text of one source file: a sign, a factor, a denominator, an axis. It lives in
the memory of a child process; no file is changed. The child runs the tests that lie nearest, on the
NumPy engine, so that the compiled twin of a formula does not hide the fault. A mutant is killed if
a test fails or does not end. A text that is no longer in its file is an error: mend the table.

The table may say why a mutant cannot be killed (`survives`). The command fails if such a mutant is
killed, if another one survives, or if less than 95 % are killed.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.machinery
import os
import re
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "condmeta"
TABLE = Path(__file__).with_suffix(".toml")
GOAL = 0.95  # share of the mutants that tests must kill
SECONDS = 180  # after which a run counts as one that does not end
HEAVY = [  # imported once, before the forks
    "numpy", "scipy.optimize", "scipy.stats", "sklearn.ensemble", "sklearn.neighbors", "pandas",
    "polars", "cvxpy", "narwhals", "joblib", "threadpoolctl", "hypothesis.extra.numpy", "pytest",
]  # fmt: skip


class Mutant(NamedTuple):
    """A replacement of `old` by `new` in a file below src/condmeta, and the tests to run."""

    path: str
    old: str
    new: str
    tests: tuple[str, ...]
    survives: str = ""

    @property
    def name(self) -> str:
        """Where and what, in one line."""
        line = self.source.count("\n", 0, self.source.index(self.old)) + 1
        texts = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{self.path}:{line}  {'  ->  '.join(texts)}"

    @property
    def source(self) -> str:
        """The text of the file."""
        return (SOURCE / self.path).read_text(encoding="utf-8")

    def mutated(self) -> str:
        """Return the text with the fault, or raise ValueError where the table is out of date."""
        found = self.source.count(self.old) if (SOURCE / self.path).is_file() else -1
        if found != 1:
            times = {-1: "there is no such file", 0: "it is not there"}.get(found, "it is not one")
            raise ValueError(f"{self.path}: {times}: {self.old!r}")
        text = self.source.replace(self.old, self.new)
        compile(text, self.path, "exec")
        return text


class Outcome(NamedTuple):
    """Whether a run of tests failed, the first failure, and the seconds that it took."""

    failed: bool
    by: str
    seconds: float


def read_table(path: Path = TABLE) -> list[Mutant]:
    """Return the mutants of a table."""
    files = tomllib.loads(path.read_text(encoding="utf-8"))["file"]
    return [
        Mutant(file["path"], *entry[:2], tuple(file["tests"]), *entry[2:])
        for file in files
        for entry in file["mutants"]
    ]


def faults_of(mutants: Iterable[Mutant]) -> list[str]:
    """Return what is out of date in a table: texts and tests that are not there."""
    faults = []
    for mutant in mutants:
        try:
            mutant.mutated()
        except (ValueError, SyntaxError) as error:
            faults.append(str(error))
        faults += [
            f"{mutant.path}: there is no test {test}"
            for test in mutant.tests
            if not (ROOT / test.partition("::")[0]).exists()
        ]
    return faults


def run(work: list[tuple], jobs: int) -> Iterator[tuple[tuple, Outcome]]:
    """Run (mutant or None, tests) in child processes; yield each with its outcome."""
    waiting, running = list(reversed(work)), {}
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < jobs:
                item, log = waiting.pop(), Path(folder) / str(len(waiting))
                child = os.fork()
                if child == 0:
                    _test(*item, log)
                running[child] = item, log, time.monotonic()
            child, status = os.wait()
            item, log, start = running.pop(child)
            text = log.read_text(errors="replace") if log.exists() else ""
            failure = re.search(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
            by = failure[1] if failure else "time" if os.WIFSIGNALED(status) else "pytest"
            yield item, Outcome(status != 0, by, time.monotonic() - start)


def _test(mutant: Mutant | None, tests: tuple[str, ...], log: Path) -> None:
    """Run tests in this process, with the fault in place, and end it with their exit code."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if mutant is not None:
        signal.alarm(SECONDS)
        _plant(mutant)
    import pytest

    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["--hypothesis-seed=0", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = pytest.main([*options, *tests])
    os._exit(int(code))


def _plant(mutant: Mutant) -> None:
    """Let the import system read the mutated text in place of the file."""
    target, text = str(SOURCE / mutant.path), mutant.mutated()
    loader = importlib.machinery.SourceFileLoader
    read = loader.get_code

    def get_code(self, fullname):
        if self.path == target:
            return compile(text, target, "exec", dont_inherit=True)
        return read(self, fullname)

    loader.get_code = get_code


def main(arguments: list[str] | None = None) -> int:
    """Run the mutants whose path contains the given text; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", nargs="*", help="parts of paths below src/condmeta; default all")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    asked = parser.parse_args(arguments)
    mutants = read_table()
    faults = faults_of(mutants)
    if faults:
        print("tools/mutants.toml is out of date:", *faults, sep="\n  ")
        return 1
    mutants = [m for m in mutants if not asked.paths or any(p in m.path for p in asked.paths)]
    if not mutants:
        print("No mutant is in a file of this name.")
        return 1
    os.chdir(ROOT)
    os.environ |= {"CONDMETA_ENGINE": "numpy", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for name in HEAVY:
        importlib.import_module(name)
    start = time.monotonic()
    tests = tuple(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
    for _, outcome in run([(None, tests)], 1):
        if outcome.failed:
            print(f"A test fails without any mutant: {outcome.by}")
            return 1
    found: dict[Mutant, Outcome] = {}
    for (mutant, _), outcome in run([(m, m.tests) for m in mutants], asked.jobs):
        found[mutant] = outcome
        verdict = f"killed by {outcome.by}" if outcome.failed else "SURVIVED"
        print(f"{outcome.seconds:5.1f} s  {mutant.name}\n         {verdict}", flush=True)
    return _report(found, time.monotonic() - start)


def _report(found: dict[Mutant, Outcome], seconds: float) -> int:
    killed = sum(outcome.failed for outcome in found.values())
    share = killed / max(len(found), 1)
    print(f"\n{len(found)} mutants, {killed} killed ({100 * share:.1f} %), {seconds:.0f} s.")
    wrong = False
    for mutant, outcome in found.items():
        if not outcome.failed:
            print(f"survived: {mutant.name}\n  {mutant.survives or 'No reason is given.'}")
        elif mutant.survives:
            print(f"killed, but the table says that it survives: {mutant.name}")
        wrong |= outcome.failed == bool(mutant.survives)
    return int(wrong or share < GOAL)


if __name__ == "__main__":
    sys.exit(main())
