"""Measure methods on data sets; --write keeps the outcomes and writes RESULTS.md from all kept."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.accuracy import store
from benchmarks.accuracy.data import FIRST, GROUPS, PROBLEMS, group
from benchmarks.accuracy.methods import METHODS, methods_for
from benchmarks.accuracy.page import page, section
from benchmarks.accuracy.run import run

SPLITS = {True: 20, False: 5}  # by whether a data set is one of the first twelve
RESULTS = Path(__file__).with_name("RESULTS.md")
PACKAGES = (
    "condmeta", "numpy", "scikit-learn", "statsmodels", "mixedlm", "mixedlm-rs", "gpboost",
    "lightgbm", "torch",
)  # fmt: skip


def main() -> None:
    given = _arguments()
    stored, results = given.folder / store.FILE.name, given.folder / RESULTS.name
    outcomes = store.read(stored) if given.write else {}
    for folder in given.add:
        store.add(outcomes, store.read(folder / store.FILE.name))
    names = [each for each in PROBLEMS if group(each) in given.groups]
    for name in given.data if given.data is not None else names:
        methods = outcomes.setdefault(name, {})
        chosen = [each for each in methods_for(name) if each in given.methods]
        splits = given.splits or SPLITS[name in FIRST]
        with ThreadPoolExecutor(given.jobs) as pool:
            asked = {m: pool.submit(run, name, m, splits, given.limit) for m in chosen}
            for method, future in asked.items():
                methods[method] = future.result()
                print(f"{name}: {method} done", file=sys.stderr, flush=True)
        print(section(name, methods), flush=True)
        if given.write:  # after every data set: a run that is stopped keeps what it has
            _keep(outcomes, stored, results)
    if given.add:
        _keep(outcomes, stored, results)


def _keep(outcomes: store.Outcomes, stored: Path, results: Path) -> None:
    store.write(outcomes, stored)
    results.write_text(page(outcomes, about()))


def about() -> str:
    """Name the packages and their versions."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"no {package}")
    return f"Packages: {', '.join(found)}."


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--data", nargs="*", choices=PROBLEMS, metavar="NAME", help="data sets")
    parser.add_argument(
        "--groups", nargs="+", choices=GROUPS, default=list(GROUPS),
        help="groups of data sets, where --data names none (default: all); learners may be "
        "designed on first and development, validation and fresh are only to report",
    )  # fmt: skip
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument(
        "--splits", type=int, help="of the tasks (default: 20 of the first twelve, 5 of others)"
    )
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a fit (default: 60)")
    parser.add_argument("--jobs", type=int, default=1, help="methods at a time (default: 1)")
    parser.add_argument(
        "--folder", type=Path, default=RESULTS.parent,
        help="where --write keeps them (default: this package)",
    )  # fmt: skip
    parser.add_argument("--write", action="store_true", help="keep outcomes, write RESULTS.md")
    parser.add_argument(
        "--add", nargs="+", type=Path, default=[], metavar="FOLDER",
        help="add the outcomes that other runs have kept in these folders; with --data and no "
        "name, nothing is run",
    )  # fmt: skip
    given = parser.parse_args()
    if given.add and not given.write:
        parser.error("--add needs --write")
    return given


if __name__ == "__main__":
    main()
