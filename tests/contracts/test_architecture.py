"""The page on the architecture lists what there is, in the words of the import contract.

docs/architecture.md holds a fenced block that begins with the line `condmeta/`; each further line
is a folder `  NAME/   about it` or a module `  NAME.py   about it`, two spaces in.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOME = ROOT / "src" / "condmeta"
PAGE = ROOT / "docs" / "architecture.md"
ENTRY = re.compile(r"  (?P<name>\w+(?:/|\.py))(?:\s+(?P<about>\S.*))?")


@pytest.fixture(scope="module")
def tree() -> dict[str, str]:
    """Return the entries of the tree on the page, each with its line of text."""
    assert PAGE.exists(), "docs/architecture.md is missing: it shows the tree of src/condmeta."
    blocks = re.findall(r"^```[^\n]*\ncondmeta/\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    assert len(blocks) == 1, f"{len(blocks)} fenced blocks begin with 'condmeta/', expected one."
    entries: dict[str, str] = {}
    for line in filter(str.strip, blocks[0].splitlines()):
        found = ENTRY.fullmatch(line.rstrip())
        assert found, f"this line is no '  NAME/   text' or '  NAME.py   text': {line!r}"
        assert found["name"] not in entries, f"{found['name']} stands twice in the tree."
        entries[found["name"]] = found["about"] or ""
    return entries


def on_disk() -> set[str]:
    """Return the folders and modules directly under src/condmeta."""
    folders = {f"{path.parent.name}/" for path in HOME.glob("*/*.py")}
    return folders | {path.name for path in HOME.glob("*.py") if path.stem != "__init__"}


def layers() -> list[str]:
    """Return the names of the layers in pyproject.toml."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layered = [contract for contract in contracts if contract["type"] == "layers"]
    assert len(layered) == 1
    return [name for layer in layered[0]["layers"] for name in re.findall(r"\w+", layer)]


def test_tree_lists_what_is_on_disk(tree):
    assert set(tree) == on_disk()


def test_every_entry_of_the_tree_has_a_line_of_text(tree):
    assert not [name for name, about in tree.items() if not about]


def test_layers_are_the_names_of_the_tree(tree):
    names = [name.removesuffix("/").removesuffix(".py") for name in tree]
    assert sorted(layers()) == sorted(names)


def test_layers_name_what_is_on_disk():
    assert sorted(layers()) == sorted(
        name.removesuffix("/").removesuffix(".py") for name in on_disk()
    )
