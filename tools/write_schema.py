"""Write the schema of model files to docs/model-file-schema.json, from the registered classes.

    python tools/write_schema.py

A test compares the document with the classes.
"""

from __future__ import annotations

import json
from pathlib import Path

from condmeta.persistence import registry
from condmeta.persistence.container import FORMAT, FORMAT_VERSION

DOCUMENT = Path(__file__).parents[1] / "docs" / "model-file-schema.json"


def schema() -> dict:
    """Return the schema: for each class in files, what each of its fields must be."""
    import condmeta

    condmeta.load  # noqa: B018 - registers every class
    entries = sorted(registry.entries(), key=lambda entry: entry.name)
    ours = [entry for entry in entries if entry.cls.__module__.startswith("condmeta.")]
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "classes": {entry.name: _fields(entry) for entry in ours},
    }


def _fields(entry) -> dict[str, str]:
    fields = entry.fields or {}
    return {
        name: field.says + (" (may be absent)" if not field.required else "")
        for name, field in fields.items()
    }


def text() -> str:
    """Return the document."""
    return json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(text(), encoding="utf-8")
    print(f"{DOCUMENT.name}: {len(schema()['classes'])} classes")
