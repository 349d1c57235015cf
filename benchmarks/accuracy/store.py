"""Outcomes on disk: the errors of every split. One method can be added without running the rest."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.accuracy.run import Outcome

FILE = Path(__file__).with_name("results.json")

Outcomes = dict[str, dict[str, Outcome]]  # data set -> method -> outcome


def read(file: Path = FILE) -> Outcomes:
    """Return what was measured; nothing where there is no file."""
    if not file.is_file():
        return {}
    content = json.loads(file.read_text())
    return {
        problem: {method: Outcome(**fields) for method, fields in methods.items()}
        for problem, methods in content.items()
    }


def add(outcomes: Outcomes, more: Outcomes) -> None:
    """Add other outcomes; of a method on a data set, the new one replaces the old one."""
    for problem, methods in more.items():
        outcomes.setdefault(problem, {}).update(methods)


def write(outcomes: Outcomes, file: Path = FILE) -> None:
    """Write all outcomes, one method a line, numbers with six digits."""
    blocks = []
    for problem, methods in outcomes.items():
        lines = (
            f"  {json.dumps(method)}: {json.dumps(_short(outcome._asdict()))}"
            for method, outcome in methods.items()
        )
        blocks.append(f"{json.dumps(problem)}: {{\n" + ",\n".join(lines) + "\n}")
    file.write_text("{\n" + ",\n".join(blocks) + "\n}\n")


def _short(value):
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list):
        return [_short(entry) for entry in value]
    return (
        {key: _short(entry) for key, entry in value.items()} if isinstance(value, dict) else value
    )
