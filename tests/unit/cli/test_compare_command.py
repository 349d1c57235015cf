"""condmeta compare: from files to a page, numbers and the next command."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import condmeta as cm
from condmeta.cli.app import app
from condmeta.cli.compare_command import _fit_command
from condmeta.evaluation.comparison import SETTINGS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with sales.csv, text ids, dates and categories, and stores.csv with gaps."""
    out = tmp_path_factory.mktemp("compare")
    rng = np.random.default_rng(0)
    ids = np.array([f"{t:03d}" for t in range(40)])
    size = rng.normal(size=40)
    stores = pd.DataFrame({"store": ids, "size": size, "town": rng.choice(["A", "B"], 40)})
    stores.loc[3, "size"], stores.loc[5, "town"] = None, None
    task = np.repeat(np.arange(40), 8)
    price = rng.uniform(1, 3, size=320)
    sales = pd.DataFrame({"store": ids[task], "day": "2024-05-01", "price": price})
    sales["kind"] = rng.choice(["new", "old"], 320)
    sales["day"] = pd.date_range("2024-01-01", periods=320).strftime("%Y-%m-%d")
    sales["sold"] = 10 + 3 * size[task] * price + 0.5 * rng.normal(size=320)
    sales["gone"] = np.where(sales["sold"] > 10, "yes", "no")
    sales.to_csv(out / "sales.csv", index=False)
    stores.to_csv(out / "stores.csv", index=False)
    return out


def run(folder, *words, code=0):
    """Run condmeta compare in a folder; return the result."""
    command = ["compare", str(folder / "sales.csv"), "--task", "store", *map(str, words)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == code, result.output
    return result


def test_a_page_numbers_an_advice_and_the_next_command(folder):
    page = folder / "out.html"
    result = run(
        folder, "--target", "sold", "--exclude", "gone", "--sort-by", "day", "--shots", "0,3",
        "--side-table", folder / "stores.csv", "-o", page, "--no-boosting",
    )  # fmt: skip
    assert result.stdout.startswith("Mean absolute error for a new store, by number of its rows")
    assert "ConditionalRidge(): its error for a new store is the lowest" in result.stdout
    for jargon in ("point", "conditional", "task coefficients", "+-"):
        assert jargon not in result.stdout.lower().replace("conditionalridge", "")
    assert "Side information explains" in result.stdout
    told = result.stderr.splitlines()
    assert "320 rows of 40 tasks, 6 columns. Each task is held out once" in told[0]
    assert "with 0, 3 of its rows known" in told[0]
    text = page.read_text(encoding="utf-8")
    assert "<h1>sold by store</h1>" in text
    assert "--sort-by day" in text
    numbers = pd.read_csv(folder / "out-errors.csv")
    assert set(numbers["learner"]) == {"own data", "pooled", "unconditional", "conditional", "auto"}
    assert numbers["shot"].unique().tolist() == [0, 3]
    following = told[-1].partition("Next: ")[2]
    assert "--exclude gone,day" in following
    words = shlex.split(following)[1:]
    words[words.index("model.condmeta")] = str(folder / "model.condmeta")
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert isinstance(cm.load(folder / "model.condmeta").learner_, cm.ConditionalRidge)


def test_next_makes_what_was_compared(folder):
    """Side rows that lack are told; auto keeps its order, and no boosting stays none."""
    stores = pd.read_csv(folder / "stores.csv", dtype=str)
    stores[3:].to_csv(folder / "gap.csv", index=False)
    result = run(
        folder, "--target", "sold", "--exclude", "gone", "--sort-by", "day", "--shots", "0,3",
        "--side-table", folder / "gap.csv", "-o", folder / "gap.html", "--no-boosting",
    )  # fmt: skip
    assert "Note: 3 tasks have no side information" in result.stderr
    assert "Side information explains" in result.stdout  # of the tasks that have it
    following = result.stderr.splitlines()[-1].partition("Next: ")[2]
    assert "--missing-side mean" in following
    words = shlex.split(following)[1:]
    words[words.index("model.condmeta")] = str(folder / "gap.condmeta")
    assert CliRunner().invoke(app, words).exit_code == 0
    made = {"task": ["store"], "exclude": ["gone"], "sort_by": "day", "features": None}
    made |= {"side_table": "s.csv"}
    told = _fit_command(_Found("auto", cm.AutoRegressor()), "t.csv", made, True)
    assert "--learner auto --no-boosting --task store --exclude gone --sort-by day" in told
    told = _fit_command(_Found("conditional on base", cm.ConditionalRidge()), "t", made, False)
    assert "--learner ridge --boosting --task store --exclude gone,day --side-table" in told
    told = _fit_command(_Found("unconditional", cm.ConditionalRidge(None)), "t", made, False)
    assert "side" not in told


class _Found:
    """What a comparison advises."""

    def __init__(self, advised, model):
        self.advised, self.model = advised, model
        self.call = f"X({SETTINGS.get(advised, '')})"


def test_the_outcome_for_machines(folder):
    result = run(
        folder, "--target", "sold", "--features", "price", "--shots", "2", "--no-boosting",
        "--json", "--quiet", "-o", folder / "json.html",
    )  # fmt: skip
    outcome = json.loads(result.stdout)
    assert outcome["criterion"] == "absolute error"
    assert list(outcome["best"]) == ["2"]
    assert len(outcome["errors"]) == 4
    assert outcome["side_information"] == ""
    assert result.stderr == ""


def test_two_values_are_classes(folder):
    result = run(
        folder, "--target", "gone", "--features", "price,kind", "--side-table",
        folder / "stores.csv", "--shots", "0,3", "-o", folder / "classes.html",
    )  # fmt: skip
    assert result.stdout.startswith("Mean log loss for a new store")
    assert "--learner logistic" in result.stderr or "--learner auto" in result.stderr
    page = (folder / "classes.html").read_text(encoding="utf-8")
    assert "<h1>gone = yes by store</h1>" in page
    assert '"positive": "yes"' in page or '"positive":"yes"' in page


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--target", "kind2"), "kind2"),
        (("--target", "sold", "--dates", "hour"), "Got 'hour' instead"),
        (("--target", "day", "--features", "price"), "day"),
        (("--target", "sold", "-o", "out.txt"), "must end in .html or .htm"),
        (("--target", "sold", "-o", "nowhere/out.html"), "There is no folder 'nowhere'"),
        (("--target", "sold", "--exclude", "gone", "--sort-by", "dat"), "dat"),
    ],
)
def test_what_cannot_be_compared_is_an_error_of_one_sentence(folder, words, sentence):
    result = run(folder, *words, code=1)
    assert sentence in result.stderr
    assert "Traceback" not in result.output


def changed(folder, name, change):
    """Write sales.csv with a change to its table; return its path."""
    rows = pd.read_csv(folder / "sales.csv", dtype={"store": str})
    change(rows).to_csv(folder / name, index=False)
    return folder / name


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda rows: rows.assign(day="April 3"), "(sort by) is text ('April 3', ...)"),
        (lambda rows: rows.assign(day="4/13/2024"), "holds dates, but '4/13/2024' in row 1"),
        (lambda rows: rows.assign(day=rows["day"].where(rows.index > 1)), "empty in 2 of 320 rows"),
    ],
)
def test_text_or_gaps_in_the_sort_column_are_refused(folder, change, sentence):
    table = changed(folder, "odd.csv", change)
    words = ["--task", "store", "--target", "sold", "--exclude", "gone", "--sort-by", "day"]
    result = CliRunner().invoke(app, ["compare", str(table), *words])
    assert result.exit_code == 1
    assert sentence in result.stderr


def test_columns_of_the_side_table_can_be_left_out_and_names_are_noted(folder):
    stores = pd.read_csv(folder / "stores.csv", dtype={"store": str})
    stores["opened"], stores["name"] = "2020-01-01", [f"shop {t}" for t in range(40)]
    stores.to_csv(folder / "named.csv", index=False)
    words = ["--target", "sold", "--features", "price", "--side-table", folder / "named.csv"]
    words += ["--no-boosting", "--shots", "0,90", "-o", folder / "named.html"]
    assert "Column 'opened' holds dates" in run(folder, *words).stderr
    result = run(folder, *words, "--exclude", "opened")
    assert "--exclude opened" in result.stderr.partition("Next: ")[2]
    assert "Side column 'name' holds 40 different texts in 40 rows ('shop 0', ...)" in result.stderr
    assert "Left out: 90 rows known; fewer than 10 tasks have more rows." in result.stderr
    assert "condmeta fit" in (folder / "named.html").read_text(encoding="utf-8")
    chosen = run(folder, *words, "--side", "size,town")
    assert "different texts" not in chosen.stderr


def test_next_repeats_all_that_is_needed_to_run(folder, monkeypatch):
    """Another encoding, delimiter and decimal sign than those of the side table; a comma in a name.

    The command is run as it stands.
    """
    monkeypatch.chdir(folder)
    rows = pd.read_csv("sales.csv", dtype={"store": str}).rename(columns={"price": "price, net"})
    text = rows.assign(kind=np.where(rows.index % 2, "Süd", "Nord")).to_csv(
        index=False, sep="#", decimal=","
    )
    Path("odd.csv").write_bytes(text.encode("latin-1"))
    stores = pd.read_csv("stores.csv", dtype={"store": str})
    stores.assign(town=np.where(stores.index % 2, "Köln", "Bonn")).to_csv("towns.csv", index=False)
    words = ["compare", "odd.csv", "--task", "store", "--target", "sold", "--features"]
    words += ["price, net,kind", "--side-table", "towns.csv", "--no-boosting", "--shots", "0,2"]
    words += ["--delimiter", "#", "--encoding", "latin-1", "-o", "odd.html"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    following = shlex.split(done.stderr.partition("Next: ")[2])
    assert following[0] == "condmeta"
    done = CliRunner().invoke(app, following[1:])
    assert done.exit_code == 0, done.output
    model = cm.load("model.condmeta")
    assert model.schema_.feature_names == ["price, net", "kind=Nord", "kind=Süd"]
    if "--side-table" in following:
        used = getattr(model.learner_, "learners_", {"": model.learner_}).values()
        assert any("town=Köln" in learner.side_features_ for learner in used)


def test_numbers_of_points_must_be_numbers(folder):
    result = run(folder, "--target", "sold", "--shots", "a,b", code=2)
    assert "not a list of whole numbers" in result.stderr
