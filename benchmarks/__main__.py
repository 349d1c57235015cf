"""Run the benchmarks named, or all, and print their tables; --write puts them in RESULTS.md."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import time
from datetime import UTC, datetime
from pathlib import Path

import benchmarks
from benchmarks.common import pin
from condmeta.versions import versions

COLUMNS = ("what", "ours", "peer", "ratio", "goal", "met", "note")
RESULTS = Path(__file__).with_name("RESULTS.md")
HEAD = """# Benchmark results

Made by `python -m benchmarks --write`, or with the names of some benchmarks, which leaves others
as they were. Pinned to one core, one thread a library. Times are processor seconds unless a note
says wall clock; ratios are taken within one process; answers were compared first.
"""
TOLD = ("condmeta", "engine", "instruction set", "python", "numpy", "scikit-learn")


def names() -> list[str]:
    """Return the benchmarks of speed: every module here; packages have commands of their own."""
    here = pkgutil.iter_modules(benchmarks.__path__)
    found = (module.name for module in here if not module.ispkg)
    return sorted(name for name in found if name not in ("__main__", "common"))


def show(value) -> str:
    """Write a cell of a table."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def table(rows: list[dict]) -> str:
    """Return rows as a table of Markdown, columns aligned."""
    cells = [list(COLUMNS), *([show(row.get(column)) for column in COLUMNS] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
        for line in cells
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def run(name: str) -> str:
    """Run one benchmark and return its section."""
    module = importlib.import_module(f"benchmarks.{name}")
    start = time.perf_counter()
    rows = module.main()
    text = f"## {name}\n\n{(module.__doc__ or '').strip()}\n\n{table(rows)}"
    busy = f"load average {os.getloadavg()[0]:.1f} at the end, {time.perf_counter() - start:.0f} s"
    text += f"\n\n{datetime.now(UTC):%Y-%m-%d}, {machine()}; {busy}."
    print(f"{text}\n", flush=True)
    return text


def sections_of(file: Path) -> dict[str, str]:
    """Return the sections of a page of results by name."""
    parts = file.read_text().split("\n## ")[1:] if file.is_file() else []
    return {part.partition("\n")[0]: f"## {part.strip()}" for part in parts}


def machine() -> str:
    """Describe the machine and the versions, without names of hosts."""
    known = versions()
    about = [f"{name} {known[name]}" for name in TOLD if name in known]
    return f"{os.cpu_count()} cores, " + ", ".join(about)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(names())}")
    parser.add_argument("--write", action="store_true", help="write benchmarks/RESULTS.md")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(names()))
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}: choose of {', '.join(names())}")
    pin()
    kept = sections_of(RESULTS) if given.write else {}
    for name in given.names or names():
        kept[name] = run(name)
        if given.write:  # after every benchmark: a run that is stopped keeps what it has
            RESULTS.write_text("\n".join([HEAD, *(f"{kept[key]}\n" for key in sorted(kept))]))


if __name__ == "__main__":
    main()
