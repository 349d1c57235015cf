"""Finished panels on disk: a table and its provenance, each replaced in one step."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from condmeta.errors import DataError
from condmeta.paper.experiments.results import COLUMNS, Results


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; on success the file replaces `path` in one step.

    A reader never sees half a file, also if the run is interrupted.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_file(path: Path, content: bytes) -> Path:
    """Write a file in one step and return its path."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)
    return path


def refuse_foreign(folder: Path, names: Iterable[str]) -> None:
    """Raise if a table of this name is in the folder that no run has written."""
    for table in (folder / f"{name}.csv" for name in names):
        if table.exists() and not table.with_suffix(".json").exists():
            with table.open(encoding="utf-8", errors="replace") as file:
                if file.readline(1 << 12).strip() != ",".join(COLUMNS):
                    raise DataError(
                        f"'{table}' was not written by condmeta reproduce, which would overwrite "
                        "it: choose another folder."
                    )


def save_panel(folder: Path, name: str, results: Results) -> None:
    """Write `name`.csv, then `name`.json; the second file marks the panel as finished."""
    with replacing(folder / f"{name}.csv") as table:
        results.to_csv(table)
        provenance = {**results.provenance, "sha256": _digest(table)}
    write_file(folder / f"{name}.json", (json.dumps(provenance, indent=2) + "\n").encode())


def load_panel(folder: Path, name: str, requested: dict[str, Any]) -> Results | None:
    """Return a finished panel with the `requested` provenance, or None if there is none.

    A panel counts as unfinished if the digest of its table differs from the recorded one.
    """
    table = folder / f"{name}.csv"
    try:
        provenance = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        if not isinstance(provenance, dict) or not requested.items() <= provenance.items():
            return None
        if provenance.get("sha256") != _digest(table):
            return None
    except (OSError, ValueError):
        return None
    results = Results.read_csv(table)
    results.provenance = provenance
    return results


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
