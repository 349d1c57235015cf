"""Write docs/bad-input.md: every case, with the sentence that it gets."""

from __future__ import annotations

import contextlib
import os
import sys
from itertools import groupby
from pathlib import Path
from unittest import mock

from tools.bad_input import commands, python_calls
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
        return [(case, ask(case)) for case in (*python_calls.cases(), *commands.cases())]


def page(found: list[tuple[Case, Answer]]) -> str:
    """Return the page: a table for each function or command."""
    parts = [HEAD.format(count=len(found))]
    for name, cases in groupby(found, key=lambda pair: _title(pair[0].call)):
        is_command = name.startswith("condmeta ")
        parts.append(f"\n## {name}\n\n| input | sentence |\n|---|---|")
        for case, answer in cases:
            given = f"{case.given}: `{_cell(case.call)}`" if is_command else _cell(case.given)
            parts.append(f"| {given} | {_cell(answer.sentence)} |")
    return "\n".join(parts) + "\n"


def _title(call: str) -> str:
    return " ".join(call.split()[:2]) if call.startswith("condmeta ") else call


def _cell(text: str) -> str:
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
