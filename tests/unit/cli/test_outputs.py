"""No command destroys a file: not one that it reads, not one of another kind."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import condmeta as cm
from condmeta.cli.app import app

ROLES = ["--task", "store", "--target", "sold"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with two tables and a model."""
    folder, rng = tmp_path_factory.mktemp("made"), np.random.default_rng(0)
    store = np.repeat([f"s{t}" for t in range(25)], 4)
    sales = pd.DataFrame({"store": store, "price": rng.normal(size=100)})
    sales.assign(sold=sales["price"] + rng.normal(size=100)).to_csv(folder / "b.csv", index=False)
    side = pd.DataFrame({"store": sorted(set(store)), "size": rng.normal(size=25)})
    side.to_csv(folder / "side.csv", index=False)
    cm.TableModel(task="store", target="sold").fit(sales.assign(sold=1.0 * sales.index)).save(
        folder / "m.condmeta"
    )
    (folder / "page.html").write_text("<html>mine</html>")
    sales.assign(prediction=0.0).to_csv(folder / "mine.csv", index=False)
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


REFUSED = {
    "fit over its table": (["fit", "b.csv", *ROLES, "-o", "b.csv"], "b.csv", "end in .condmeta"),
    "fit over a link to its table": (
        ["fit", "link.condmeta", *ROLES, "-o", "b.condmeta"],
        "b.condmeta",
        "'b.condmeta' is an input of this command, which would overwrite it",
    ),
    "fit over its side table": (
        ["fit", "b.csv", *ROLES, "--side-table", "side.condmeta", "-o", "side.condmeta"],
        "side.condmeta",
        "is an input of this command",
    ),
    "fit over another table": (
        ["fit", "b.csv", *ROLES, "-o", "side.condmeta"],
        "side.condmeta",
        "'side.condmeta' exists and is not a model: give another name with -o, or replace it with "
        "--force",
    ),
    "predict over its table": (
        ["predict", "m.condmeta", "b.csv", "-o", "b.csv"],
        "b.csv",
        "is an input of this command",
    ),
    "predict over another table": (
        ["predict", "m.condmeta", "b.csv", "-o", "mine.csv"],
        "mine.csv",
        "is not a table of predictions",
    ),
    "adapt over another table": (
        ["adapt", "m.condmeta", "b.csv", "-o", "mine.csv"],
        "mine.csv",
        "is not a table of coefficients",
    ),
    "check over another table": (
        ["check", "m.condmeta", "b.csv", "-o", "mine.csv"],
        "mine.csv",
        "is not a table of condmeta check",
    ),
    "compare over a foreign page": (
        ["compare", "b.csv", *ROLES, "-o", "page.html"],
        "page.html",
        "is not a report of condmeta compare",
    ),
    "compare with its numbers over a table": (
        ["compare", "b.csv", *ROLES, "-o", "new.html"],
        "new-errors.csv",
        "is not a table of condmeta compare",
    ),
    "update over its table": (
        ["update", "m.condmeta", "b.condmeta", "-o", "b.condmeta"],
        "b.condmeta",
        "is an input of this command",
    ),
    "update over a foreign file": (
        ["update", "m.condmeta", "b.csv", "-o", "side.condmeta"],
        "side.condmeta",
        "is not a model",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_is_not_destroyed(folder, name):
    shutil.copy("b.csv", "b.condmeta")
    shutil.copy("side.csv", "side.condmeta")
    shutil.copy("mine.csv", "new-errors.csv")
    (folder / "link.condmeta").symlink_to("b.condmeta")
    words, victim, sentence = REFUSED[name]
    before = (folder / victim).read_bytes()
    done = run(*words)
    assert done.exit_code == 1, done.output
    assert sentence in done.stderr
    assert (folder / victim).read_bytes() == before


def test_own_results_are_replaced_and_force_replaces_anything(folder):
    for _ in range(2):
        assert run("predict", "m.condmeta", "b.csv", "-o", "p.parquet").exit_code == 0
        assert run("predict", "m.condmeta", "b.csv", "-o", "p.csv").exit_code == 0
        assert run("adapt", "m.condmeta", "b.csv", "-o", "a.feather").exit_code == 0
        assert run("check", "m.condmeta", "b.csv", "-o", "c.tsv").exit_code in (0, 3, 4)
        assert run("fit", "b.csv", *ROLES, "-o", "new.condmeta").exit_code == 0
        words = ["compare", "b.csv", *ROLES, "--shots", "0,1", "--no-boosting", "-o", "c.html"]
        assert run(*words).exit_code == 0
    (folder / "empty.csv").touch()
    assert run("predict", "m.condmeta", "b.csv", "-o", "empty.csv").exit_code == 0
    done = run("predict", "m.condmeta", "b.csv", "-o", "b.csv", "--force")
    assert done.exit_code == 0, done.output
    assert "prediction" in pd.read_csv("b.csv").columns
    assert run("fit", "p.csv", *ROLES, "-o", "m.condmeta", "--force").exit_code == 0
