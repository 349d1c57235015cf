"""Run fuzz targets for a number of seconds each."""

from __future__ import annotations

import argparse
import os
import sys
import time

import sanitized_core  # noqa: F401  (the core that CONDMETA_CORE names, if any)
from hypothesis import HealthCheck, given, seed, settings

from tools.fuzz import model_files, native, tables

TARGETS = {
    "native": (native.calls(), native.check),
    "model-files": (model_files.damages(), model_files.check),
    "csv": (tables.csv_files(), tables.check_csv),
    "side-tables": (tables.side_tables(), tables.check_side_table),
}
SECONDS = 30.0
EXAMPLES = 200  # of one seed; then the clock is read


def fuzz(name: str, seconds: float) -> int:
    """Run one target until the time is over; return the number of calls."""
    strategy, check = TARGETS[name]
    made, number, end = 0, 0, time.monotonic() + seconds

    def counted(example) -> None:
        nonlocal made
        made += 1
        check(example)

    quiet = settings(
        max_examples=EXAMPLES, deadline=None, database=None, print_blob=False,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    while time.monotonic() < end:
        seed(number)(quiet(given(strategy)(counted)))()
        number += 1
    return made


def main() -> int:
    """Run the targets that are asked for; a failure raises, with its example."""
    parser = argparse.ArgumentParser(description=sys.modules["tools.fuzz"].__doc__)
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="target")
    seconds = float(os.environ.get("FUZZ_SECONDS", SECONDS))
    for name in parser.parse_args().targets:
        print(f"{name}: {fuzz(name, seconds):,} calls in {seconds:g} s, no fault", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
