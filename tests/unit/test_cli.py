"""The command line: help without heavy imports, tables, JSON, errors without tracebacks."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from small_panels import hide_data, shrink_panels

import condmeta
from condmeta.cli import main
from condmeta.cli.app import app
from condmeta.cli.reproduce_command import CHOICES, NAMES
from condmeta.experiments import PANELS
from condmeta.paper.experiments import readings as readings_module


@pytest.fixture
def call(monkeypatch, tmp_path):
    """Give a function that runs the command in an empty folder, on small panels."""
    monkeypatch.setenv("CONDMETA_ENGINE", "numpy")
    shrink_panels(monkeypatch)
    hide_data(monkeypatch, tmp_path)
    monkeypatch.setattr(
        "condmeta.paper.experiments.reproduction.FORMATS", ()
    )  # drawn, not written: time
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nsys.argv = ['condmeta', 'reproduce', '--help']\n"
        "from condmeta.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "heavy = {'sklearn', 'scipy', 'matplotlib', 'jinja2', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in NAMES)


def test_the_names_in_the_help_are_those_of_the_package():
    assert set(NAMES) == set(PANELS)
    expected = {k: v for k, v in readings_module.CHOICES.items() if k != "inner"}
    assert expected == CHOICES
    for name, allowed in CHOICES.items():
        assert getattr(readings_module.Readings(), name) == allowed[0]


def test_versions(call):
    assert call("--version").output.strip() == f"condmeta, version {condmeta.__version__}"
    assert "engine" in call("versions").output


def test_reproduce_prints_a_table_and_says_where_the_files_are(call, tmp_path):
    done = call("reproduce", "one-cluster", "--seeds", 2, "--jobs", 1)
    assert done.exit_code == 0, done.output
    assert "one-cluster: 2 seeds\none-cluster: done in" in done.stderr
    lines = done.stdout.splitlines()
    head = next(line for line in lines if "here (s.e.)" in line)
    assert " ".join(head.split()) == "panel method here (s.e.) authors (s.d.) difference"
    row = next(line for line in lines if "one-cluster" in line and "ITL" in line)
    assert "27.25 (0.90)" in row
    assert row.rstrip().endswith("%")
    assert "Report: reproduction/report.html" in done.stdout
    page = (tmp_path / "reproduction" / "report.html").read_text()
    assert "condmeta reproduce one-cluster --seeds 2 --jobs 1" in page


def test_all_says_what_it_skips(call):
    done = call("reproduce", "--seeds", 1, "--jobs", 1)
    assert done.exit_code == 0, done.output
    assert "lenk: skipped, its data are not on this machine" in done.stdout
    assert "schools: skipped" in done.stderr


def test_a_second_run_says_that_it_reuses(call):
    call("reproduce", "circle", "--seeds", 1, "--jobs", 1)
    done = call("reproduce", "circle", "--seeds", 1, "--jobs", 1)
    assert "circle: finished earlier, taken from reproduction/circle.csv" in done.stderr


def test_json_is_all_that_goes_to_standard_output(call):
    done = call("reproduce", "circle", "--seeds", 1, "--jobs", 1, "--json", "--noise", 0.5)
    found = json.loads(done.stdout)
    assert list(found["panels"]) == ["circle"]
    methods = [row["method"] for row in found["panels"]["circle"]["errors"]]
    assert methods == list(PANELS["circle"].published)
    assert found["panels"]["circle"]["errors"][0]["standard_error"] is None  # one seed
    assert found["panels"]["circle"]["claims"][0]["holds"] is None
    assert found["report"] == "reproduction/report.html"
    told = json.loads(Path("reproduction/circle.json").read_text())
    assert told["options"]["noise"] == 0.5


def test_quiet_is_quiet(call):
    done = call("reproduce", "circle", "--seeds", 1, "--jobs", 1, "--quiet")
    assert (done.exit_code, done.output) == (0, "")


def test_wrong_names_are_refused(call):
    done = call("reproduce", "cirle")
    assert done.exit_code == 2
    assert "'cirle' is not one of" in done.output


def test_an_error_of_the_data_is_one_sentence(call, monkeypatch):
    def fail():
        raise ConnectionError("lenk_data.mat could not be downloaded. Check the network.")

    monkeypatch.setitem(PANELS, "lenk", PANELS["lenk"]._replace(source=fail))
    done = call("reproduce", "lenk")
    assert done.exit_code == 1
    assert done.stderr == ("Error: lenk_data.mat could not be downloaded. Check the network.\n")
    shown = call("reproduce", "lenk", "--debug")
    assert isinstance(shown.exception, ConnectionError)


def test_a_wrong_number_is_an_error_of_the_data(call):
    done = call("reproduce", "circle", "--noise", -1)
    assert done.exit_code == 1
    assert "The 'noise' parameter of Readings must be" in done.stderr


def test_interrupted_it_says_how_to_go_on(call, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setitem(PANELS, "schools", PANELS["schools"]._replace(source=interrupt))
    done = call("reproduce", "circle", "schools", "--seeds", 1, "--jobs", 1, "--force")
    assert done.exit_code == 130
    assert "Finished panels are in reproduction" in done.stderr
    assert "  condmeta reproduce circle schools --seeds 1 --jobs 1\n" in done.stderr
    done = call("reproduce", "circle", "--seeds", 1, "--jobs", 1)
    assert "circle: finished earlier" in done.stderr


def test_without_click_the_remedy_is_named(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name == "condmeta.cli.app":
            raise ModuleNotFoundError("No module named 'click'", name="click")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(SystemExit, match=r'pip install "condmeta\[cli\]"'):
        main()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--workers", 2, "--jobs", 2], "--jobs does not work with a cluster"),
        (["--workers", 2, "--scheduler", "tcp://127.0.0.1:1"], "give only one of them"),
    ],
)
def test_reproduce_runs_here_or_on_one_cluster(call, options, sentence):
    done = call("reproduce", "circle", "--seeds", 1, *options)
    assert done.exit_code == 1
    assert sentence in done.output
