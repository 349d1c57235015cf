"""Type checkers know what public calls take and return, so that editors complete."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "data" / "typing"
PYREFLY = Path(sys.executable).with_name("pyrefly")


def errors_in(name, tmp_path):
    """Return the lines of a script with errors, and their texts."""
    config = tmp_path / "pyrefly.toml"
    config.write_text('preset = "strict"\n[errors]\nunresolvable-dunder-all = false\n')
    words = ["check", str(FOLDER / name), "-c", str(config), "--output-format", "json"]
    words += ["--python-interpreter-path", sys.executable]
    done = subprocess.run([PYREFLY, *words], capture_output=True, text=True)
    return {error["line"]: error["description"] for error in json.loads(done.stdout)["errors"]}


@pytest.mark.skipif(not PYREFLY.exists(), reason="pyrefly is not installed")
def test_calls_have_the_types_that_the_script_says(tmp_path):
    assert errors_in("use.py", tmp_path) == {}


@pytest.mark.skipif(not PYREFLY.exists(), reason="pyrefly is not installed")
def test_mistakes_are_found(tmp_path):
    lines = (FOLDER / "misuse.py").read_text().splitlines()
    marked = [number for number, line in enumerate(lines, 1) if line.endswith("# wrong")]
    assert sorted(errors_in("misuse.py", tmp_path)) == marked
