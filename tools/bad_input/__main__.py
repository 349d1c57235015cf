"""Write docs/bad-input.md: every case, with the sentence that it gets."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from pathlib import Path
from unittest import mock

from tools.bad_input import commands, python_calls, times_and_clusters
from tools.bad_input.contract import Answer, Case, ask

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "bad-input.md"
LONGEST = 300  # letters of a sentence; a list of all columns is not shown in full
HEAD = """# Bad input

{count} kinds of bad input, with the sentence that each one gets. Every call below raised an error
of condmeta with this sentence (`DataError`, `ModelFileError` or `DivergenceError`; where
scikit-learn or Python prescribe the words, their own), within ten seconds, without a traceback on
the command line, and changed neither the learner nor a file.

`tools/bad_input` makes the calls. This command writes the page, and
`tests/contracts/test_bad_input.py` checks it:

    .venv/bin/python -m tools.bad_input
"""


def answers() -> list[tuple[Case, Answer]]:
    """Make all calls, from the root of the repository, on an ordinary terminal."""
    plain = {"COLUMNS": "100", "NO_COLOR": "1"}
    with contextlib.chdir(ROOT), mock.patch.dict(os.environ, plain):
        made = python_calls, times_and_clusters, commands
        return [(case, ask(case)) for module in made for case in module.cases()]


def page(found: list[tuple[Case, Answer]]) -> str:
    """Return the page: a table for each function or command."""
    tables: dict[str, list[str]] = {}
    for case, answer in found:
        is_command = case.call.startswith("condmeta ")
        name = " ".join(case.call.split()[:2]) if is_command else case.call
        given = f"{case.given}: `{case.call}`" if is_command else _cell(case.given)
        tables.setdefault(name, []).append(f"| {given} | {_cell(answer.sentence)} |")
    parts = [HEAD.format(count=len(found))]
    for name, rows in tables.items():
        parts += [f"## {name}", "", "| input | sentence |", "|---|---|", *rows, ""]
    return "\n".join(parts)


def _cell(text: str) -> str:
    # The number of a line is known only if one thread reads the file.
    text = re.sub(r"^Line \d+ of '(.*)' has (\d+) values", r"A row of '\1' has \2 values", text)
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
    for letter in "\\`*_<>|[]#$":
        text = text.replace(letter, f"\\{letter}")
    return text


def main() -> int:
    """Write the page; return 1 if a case breaks the contract."""
    found = answers()
    broken = [(case, answer) for case, answer in found if answer.fault]
    for case, answer in broken:
        print(f"{case.call} ({case.given}): {answer.fault}: {answer.sentence}")
    if not broken:
        PAGE.write_text(page(found), encoding="utf-8")
        print(f"{PAGE.relative_to(ROOT)}: {len(found)} kinds of bad input")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
