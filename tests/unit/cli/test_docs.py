"""The commands of docs/command-line.md give what the page says."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

from click.testing import CliRunner

from condmeta.cli.app import app

PAGE = Path(__file__).parents[3] / "docs" / "command-line.md"


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_page_does_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(blocks("python")[0], {})
    matches = doctest.OutputChecker().check_output
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks("console")), re.MULTILINE)
    assert len(commands) == 7
    for command, expected in commands:
        name, *words = shlex.split(command)
        assert name == "condmeta"
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        assert matches(expected, done.output, doctest.ELLIPSIS), f"{command}\n{done.output}"
