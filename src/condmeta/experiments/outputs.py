"""Finished panels on disk: a table and its provenance, each written all at once."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from condmeta.experiments.results import Results


def write_file(path: Path, content: bytes) -> Path:
    """Write a file so that a reader, or a run that was interrupted, never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def save_panel(folder: Path, name: str, results: Results, told: dict[str, Any]) -> None:
    """Write `name`.csv, and then `name`.json, which makes the panel finished."""
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / f"{name}.csv"
    temporary = folder / f".{name}.{os.getpid()}.tmp"
    try:
        results.to_csv(temporary)
        told = {**told, "sha256": _digest(temporary)}
        os.replace(temporary, table)
    finally:
        temporary.unlink(missing_ok=True)
    write_file(folder / f"{name}.json", (json.dumps(told, indent=2) + "\n").encode())


def load_panel(folder: Path, name: str, asked: dict[str, Any]) -> Results | None:
    """Return a finished panel that was made as `asked`, or None.

    A table that is not the one its provenance describes counts as not finished.
    """
    table, beside = folder / f"{name}.csv", folder / f"{name}.json"
    try:
        told = json.loads(beside.read_text(encoding="utf-8"))
        fits = isinstance(told, dict) and all(told.get(key) == asked[key] for key in asked)
        if not fits or told.get("sha256") != _digest(table):
            return None
    except (OSError, ValueError):
        return None
    results = Results.read_csv(table)
    results.provenance = told
    return results


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
