"""Tools of CI are pinned by hashes: actions to a commit, packages to the digests of their files."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / ".ci").glob("*.txt"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def locked(path):
    """Return name -> (version, number of hashes) of a lock."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    found = {}
    for line in lines:
        match = re.fullmatch(r"([a-z0-9.-]+)==(\S+)((?:\s+--hash=sha256:[0-9a-f]{64})+)\s*", line)
        assert match, f"{path.name}: {line[:80]}"
        found[match[1]] = match[2], match[3].count("--hash")
    return found


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_line_of_a_lock_has_a_version_and_hashes(path):
    assert len(LOCKS) == 2
    asked = (path.with_suffix(".in")).read_text(encoding="utf-8")
    names = {line.split("#")[0].strip() for line in asked.splitlines()} - {""}
    assert names <= set(locked(path))


def test_linters_of_the_lock_are_those_of_the_project():
    pinned = locked(ROOT / ".ci" / "linters.txt")
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for name, floor in re.findall(
        r"([\w-]+)>=([\d.]+)", " ".join(groups["dependency-groups"]["lint"])
    ):
        assert tuple(map(int, pinned[name][0].split("."))) >= tuple(map(int, floor.split(".")))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_to_a_commit(path):
    text = path.read_text(encoding="utf-8")
    uses = re.findall(r"uses: (\S+)(.*)", text)
    assert uses
    for action, comment in uses:
        assert re.fullmatch(r"[\w-]+/[\w.-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v[\d.]+", comment), f"{action}: which version?"
    for line in text.splitlines():
        assert "pipx" not in line
        assert "pip install" not in line or "--require-hashes" in line, line


def test_make_checks_the_hashes():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    for path in LOCKS:
        lines = [line for line in text.splitlines() if f"--requirement .ci/{path.name}" in line]
        assert lines
        assert all("--require-hashes" in line for line in lines)
