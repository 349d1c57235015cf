"""The commands on files: from a CSV to answers, pipes, exit codes, one sentence for each fault."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import condmeta as cm
from condmeta.cli.app import app
from condmeta.cli.failures import WORDS, to_cli_wording
from condmeta.cli.learner_options import LEARNERS


def draw(n_tasks=30, n=6):
    rng = np.random.default_rng(0)
    stores = pd.DataFrame(
        {
            "store": [f"{t:03d}" for t in range(n_tasks)],
            "size": rng.normal(size=n_tasks).round(3),
            "region": rng.choice(["north", "south"], n_tasks),
        }
    )
    task = np.repeat(np.arange(n_tasks), n)
    sales = pd.DataFrame({"store": stores["store"].to_numpy()[task]})
    sales["price"] = rng.normal(size=task.size).round(3)
    sales["city"] = rng.choice(["Bonn", "Kiel"], task.size)
    noise = 0.1 * rng.normal(size=task.size)
    sales["sold"] = ((1 + 2 * stores["size"].to_numpy()[task]) * sales["price"] + noise).round(3)
    return sales, stores


SALES, STORES = draw()
NEW = ["028", "029"]  # not among the tasks of the fit


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with tables, and a model of the tasks that are not in NEW."""
    folder = tmp_path_factory.mktemp("tables")
    SALES[~SALES["store"].isin(NEW)].to_csv(folder / "sales.csv", index=False)
    SALES[SALES["store"].isin([*NEW, "000"])].to_csv(folder / "new.csv", index=False)
    STORES.to_csv(folder / "stores.csv", index=False, sep=";", decimal=",")
    words = ["--task", "store", "--target", "sold", "-o", "m.condmeta"]
    done = run(folder, "fit", "sales.csv", *words, "--side", "size", "--side-table", "stores.csv")
    assert done.exit_code == 0, done.output
    assert "ConditionalRidge of sold: 28 tasks, 168 rows, 2 feature columns" in done.stderr
    assert done.stdout == ""
    return folder


def run(folder, *words, stdin=None):
    before = os.getcwd()
    os.chdir(folder)
    try:
        return CliRunner().invoke(app, [str(word) for word in words], input=stdin)
    finally:
        os.chdir(before)


def fit(folder, table, *words, out="x.condmeta"):
    where = ["--task", "store", "--target", "sold", "-o", out]
    return run(folder, "fit", table, *where, *words)


def read(text):
    return pd.read_csv(io.StringIO(text), dtype={"store": str})


def test_predict_known_new_and_zero_point_tasks(folder):
    done = run(folder, "predict", "m.condmeta", "new.csv")
    assert done.exit_code == 0, done.output
    answer = read(done.stdout)
    rows = pd.read_csv(folder / "new.csv", dtype={"store": str})
    pd.testing.assert_frame_equal(answer[rows.columns.tolist()], rows)
    assert answer.columns.tolist()[-3:] == ["prediction", "task_points", "task_kind"]
    assert (answer["task_kind"] == np.where(rows["store"] == "000", "known", "new")).all()
    model = cm.load(folder / "m.condmeta")
    np.testing.assert_allclose(answer["prediction"], model.predict(rows), rtol=1e-12)
    assert np.abs(answer["prediction"] - rows["sold"]).mean() < 0.4


def test_adapt_gives_coefficients_and_leaves_the_model(folder):
    before = (folder / "m.condmeta").read_bytes()
    words = ["m.condmeta", "new.csv", "--side-table", "stores.csv", "-o", "coef.csv"]
    done = run(folder, "adapt", *words)
    assert (done.exit_code, done.stdout) == (0, "")
    assert "Coefficients of 3 tasks: coef.csv" in done.stderr
    table = read((folder / "coef.csv").read_text())
    names = ["store", "n", "(intercept)", "price", "city=Bonn", "city=Kiel"]
    assert table.columns.tolist() == names
    slopes = 1 + 2 * STORES.set_index("store")["size"]
    np.testing.assert_allclose(table["price"], slopes[table["store"]], atol=0.25)
    assert (folder / "m.condmeta").read_bytes() == before


def test_update_then_inspect_two_models(folder):
    words = ["m.condmeta", "new.csv", "--side-table", "stores.csv", "-o", "m2.condmeta"]
    done = run(folder, "update", *words)
    assert done.exit_code == 0, done.output
    assert "18 rows added: 1 known task, 2 new tasks. m2.condmeta" in done.stderr
    found = json.loads(run(folder, "inspect", "m.condmeta", "m2.condmeta", "--json").stdout)
    assert not found["same"]
    assert found["sizes"] == {"rows": [168, 186]}
    assert found["tasks"]["in_both"] == 30
    assert found["coefficients"]["tasks_that_differ"] == 3
    assert {row["task"] for row in found["coefficients"]["furthest"]} == {"000", *NEW}
    one, two = (
        cm.load(folder / name).coef_frame(wide=True) for name in ("m.condmeta", "m2.condmeta")
    )
    apart = np.abs(one.to_pandas().iloc[:, 2:] - two.to_pandas().iloc[:, 2:]).to_numpy()
    assert found["coefficients"]["largest"] == pytest.approx(apart.max(), rel=1e-9)
    same = run(folder, "inspect", "m.condmeta", "m.condmeta")
    assert "same" in same.stdout
    assert "True" in same.stdout
    done = run(folder, "predict", "m2.condmeta", "new.csv")
    assert set(read(done.stdout)["task_kind"]) == {"known"}


def test_update_in_place(folder):
    (folder / "own.condmeta").write_bytes((folder / "m.condmeta").read_bytes())
    done = run(folder, "update", "own.condmeta", "new.csv", "--quiet")
    assert (done.exit_code, done.output) == (0, "")
    assert cm.load(folder / "own.condmeta").n_rows_ == 186
    assert fit(folder, "sales.csv", "--share").exit_code == 0
    done = run(folder, "update", "x.condmeta", "sales.csv")
    assert done.exit_code == 1
    assert "Fit it without --share" in done.stderr


def test_summary_shows_effects(folder):
    text = run(folder, "summary", "m.condmeta", "--level", "0.9").stdout
    assert "90 % intervals" in text
    assert "Differences between tasks" in text
    wrong = run(folder, "summary", "m.condmeta", "--level", "90")
    assert wrong.exit_code == 1
    assert "'level' of a summary must be in (0, 1). Got 90.0 instead." in wrong.stderr


def test_inspect_shows_the_card(folder):
    text = run(folder, "inspect", "m.condmeta").stdout
    for part in ("ConditionalRidge", "city", "levels Bonn, Kiel", "rows", "168", "side columns"):
        assert part in text
    card = json.loads(run(folder, "inspect", "m.condmeta", "--json").stdout)
    assert card["bytes"] == (folder / "m.condmeta").stat().st_size
    assert card["schema"]["task"] == ["store"]
    assert card["class"] == "TableModel"


def test_inspect_compares_other_learners(folder):
    arrays = cm.PooledRegressor(lam=1.0).fit([[0.0], [1.0]], [0.0, 1.0])
    arrays.save(folder / "arrays.condmeta")
    found = json.loads(run(folder, "inspect", "m.condmeta", "arrays.condmeta", "--json").stdout)
    assert found["class"] == {"learner": ["ConditionalRidge", "PooledRegressor"]}
    assert found["columns"]["price"] == ["number", None]
    done = run(folder, "predict", "arrays.condmeta", "new.csv")
    assert done.exit_code == 1
    assert (
        "holds a PooledRegressor that was fitted to arrays, so it has no column names"
        in done.stderr
    )


def test_the_exit_code_of_check_is_the_verdict(folder):
    """Later rows of the same stores; all of them turned round; one store turned round."""
    rng = np.random.default_rng(5)
    price = rng.normal(size=28 * 8).round(3)
    store = np.repeat(STORES["store"].to_numpy()[:28], 8)
    slope = 1 + 2 * STORES.set_index("store")["size"][store].to_numpy()
    later = pd.DataFrame({"store": store, "price": price, "city": "Bonn"})
    later["sold"] = slope * price + 0.1 * rng.normal(size=price.size)
    turned = later.assign(sold=-later["sold"])
    one = later.assign(sold=later["sold"].where(store != "003", turned["sold"]))
    for rows, verdict, code in ((later, "keep", 0), (turned, "refit", 4), (one, "update", 3)):
        rows.to_csv(folder / "later.csv", index=False)
        done = run(folder, "check", "m.condmeta", "later.csv", "-o", "by_store.csv")
        assert done.exit_code == code, done.output
        assert done.stdout.startswith(f"{verdict}: errors of 28 tasks are ")
        assert ("update, " in done.stdout.partition("\n")[2]) == (verdict == "update")
        told = pd.read_csv(folder / "by_store.csv", dtype={"store": str})
        assert told["n"].eq(8).all()
    assert "  003: update, error " in done.stdout
    done = run(folder, "check", "m.condmeta", "later.csv", "--json")
    outcome = json.loads(done.stdout)
    assert (done.exit_code, outcome["verdict"]) == (3, "update")
    assert [row["store"] for row in outcome["tasks"] if row["verdict"] != "keep"] == ["003"]
    done = run(folder, "check", "m.condmeta", "later.csv", "--quiet")
    assert (done.exit_code, done.output) == (3, "")
    later.drop(columns="sold").to_csv(folder / "later.csv", index=False)
    done = run(folder, "check", "m.condmeta", "later.csv")
    assert done.exit_code == 1
    assert "Column 'sold'" in done.stderr


def test_intervals(folder):
    assert fit(folder, "sales.csv", "--intervals", out="i.condmeta").exit_code == 0
    done = run(folder, "predict", "i.condmeta", "new.csv", "--coverage", 0.8)
    answer = read(done.stdout)
    assert (answer["lower"] < answer["prediction"]).all()
    assert (answer["prediction"] < answer["upper"]).all()
    done = run(folder, "predict", "m.condmeta", "new.csv", "--coverage", 0.8)
    assert done.exit_code == 1
    assert "no intervals: fit it with --intervals" in done.stderr
    assert run(folder, "predict", "i.condmeta", "new.csv", "--coverage", 2).exit_code == 2


def test_two_classes(folder):
    yes = SALES.assign(sold=np.where(SALES["sold"] > 0, "yes", "no"))
    yes.to_csv(folder / "yes.csv", index=False)
    for learner in ([], ["--missing-side", "mean"], ["--learner", "pooled"]):
        done = fit(folder, "yes.csv", *learner, out="y.condmeta")
        assert done.exit_code == 0, done.output
    assert "PooledClassifier" in done.stderr
    fit(folder, "yes.csv", out="y.condmeta")
    answer = read(run(folder, "predict", "y.condmeta", "yes.csv").stdout)
    likely = np.where(answer["probability"] > 0.5, "yes", "no")
    assert (answer["prediction"] == likely).all()


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_typed_files_and_ids_that_are_numbers(folder, suffix):
    """17 of a Parquet file is the 17 of a CSV file; answers keep the types of the table."""
    typed = SALES.assign(store=SALES["store"].astype(int) + 100)
    write = {"parquet": typed.to_parquet, "feather": typed.to_feather}[suffix]
    write(folder / f"t.{suffix}")
    STORES.assign(store=STORES["store"].astype(int) + 100).to_csv(folder / "ints.csv", index=False)
    done = fit(folder, f"t.{suffix}", "--side-table", "ints.csv", out="t.condmeta")
    assert done.exit_code == 0, done.output
    for name, out in (("predict", f"p.{suffix}"), ("adapt", f"a.{suffix}")):
        words = ["t.condmeta", f"t.{suffix}", "-o", out]
        words += ["--side-table", "ints.csv"] if name == "adapt" else []
        assert run(folder, name, *words).exit_code == 0
        found = getattr(pd, f"read_{suffix}")(folder / out)
        assert found["store"].dtype == np.int64
    typed.to_csv(folder / "t.csv", index=False)
    answer = read(run(folder, "predict", "t.condmeta", "t.csv").stdout)
    assert set(answer["task_kind"]) == {"known"}


def test_chunks_give_what_the_whole_gives(folder):
    found = []
    for words in ([], ["--chunks"]):
        done = fit(folder, "sales.csv", "--side-table", "stores.csv", *words, out="c.condmeta")
        assert done.exit_code == 0, done.output
        done = run(folder, "predict", "c.condmeta", "sales.csv", *words, "-o", "p.parquet")
        assert done.exit_code == 0, done.output
        found.append(pd.read_parquet(folder / "p.parquet")["prediction"])
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_pipes_through_real_processes(folder):
    """Standard input to standard output, nothing else on it."""
    command = [sys.executable, "-c", "from condmeta.cli import main; main()"]
    done = subprocess.run(
        [*command, "predict", "m.condmeta", "-", "-o", "-"], cwd=folder, check=True,
        input=(folder / "new.csv").read_bytes(), capture_output=True,
    )  # fmt: skip
    assert len(read(done.stdout.decode())) == 18
    assert done.stderr == b""
    done = subprocess.run(
        [*command, "predict", "m.condmeta", "none.csv"], cwd=folder, capture_output=True
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.count(b"\n") == 1


def test_help_loads_nothing_heavy():
    for name in ("fit", "predict", "adapt", "update", "check", "inspect", "summary"):
        done = CliRunner().invoke(app, [name, "--help"])
        assert done.exit_code == 0
        assert "condmeta " + name in done.output
        assert "Exit codes" in done.output
    code = (
        "import sys\nfrom condmeta.cli.app import app\n"
        "heavy = {'sklearn', 'scipy', 'pyarrow', 'pandas', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_mistyped_name_loads_nothing_heavy(folder):
    for words in (
        ["fit", "sale.csv", "--task", "store", "--target", "sold", "-o", "x.condmeta"],
        ["compare", "sale.csv", "--task", "store", "--target", "sold"],
        ["predict", "m.condmeta", "mew.csv"],
        ["inspect", "n.comdneta"],
    ):
        code = (
            f"import sys\nsys.argv = ['condmeta', *{words!r}]\nfrom condmeta.cli import main\n"
            "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 1\n"
            "heavy = {'sklearn', 'scipy', 'pyarrow', 'pandas', 'rich'} & set(sys.modules)\n"
            "assert not heavy, heavy\n"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True)
        assert done.returncode == 0, done.stderr
        assert b"There is no file" in done.stderr


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_the_first_table_is_read_before_scikit_learn_is_loaded(folder, command):
    words = [command, "sales.csv", "--task", "store", "--target", "sold"]
    words += ["-o", "x.condmeta"] if command == "fit" else ["-o", "x.html"]
    code = (
        f"import sys\nsys.argv = ['condmeta', *{words!r}]\nfrom condmeta.cli import main\n"
        "import condmeta.cli.inputs as inputs\nread = inputs.read_table\n"
        "def stop(*args, **options):\n    table = read(*args, **options)\n"
        "    sys.exit('sklearn' in sys.modules)\n"
        "inputs.read_table = stop\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_spreadsheets_run_no_cell(folder):
    """Text that would be a formula is kept by default, and gets an apostrophe when asked."""
    risky = ["=1+1", "+1", "-x", "@f", "\tx", "plain"]
    rows = SALES[:6].assign(**{"=note": risky})
    rows.to_csv(folder / "risky.csv", index=False)
    plain = run(folder, "predict", "m.condmeta", "risky.csv")
    assert read(plain.stdout)["=note"].tolist() == risky
    safe = read(run(folder, "predict", "m.condmeta", "risky.csv", "--spreadsheet-safe").stdout)
    assert safe["'=note"].tolist() == [f"'{text}" for text in risky[:5]] + ["plain"]
    assert safe["price"].tolist() == rows["price"].tolist()  # numbers stay numbers
    words = ["m.condmeta", "risky.csv", "--spreadsheet-safe", "-o", "risky.parquet"]
    assert run(folder, "predict", *words).exit_code == 0
    assert pd.read_parquet(folder / "risky.parquet")["=note"].tolist() == risky


def test_tasks_in_groups(folder):
    """Stores in regions, a column name that holds a comma included."""
    rng = np.random.default_rng(0)
    region, store = np.repeat(np.arange(12), 20), np.tile(np.repeat(np.arange(5), 4), 12)
    level = 5.0 * rng.normal(size=12)[region] + rng.normal(size=60)[5 * region + store]
    rows = pd.DataFrame({"region": region, "store, no": store, "x": rng.normal(size=240)})
    rows.assign(sold=level + rows["x"] + rng.normal(size=240)).to_csv(folder / "g.csv", index=False)
    task = ["--task", 'region,"store, no"', "--target", "sold", "--learner", "levels"]
    done = run(folder, "fit", "g.csv", *task, "-o", "g.condmeta")
    assert done.exit_code == 0, done.output
    new = pd.DataFrame({"region": [0, 1, 99], "store, no": 77, "x": 0.0})
    new.to_csv(folder / "gn.csv", index=False)
    found = read(run(folder, "predict", "g.condmeta", "gn.csv").stdout)["prediction"]
    means = [level[region == r].mean() for r in (0, 1)]
    np.testing.assert_allclose(found[:2].astype(float), means, atol=1.0)
    assert abs(float(found[2]) - level.mean()) < 1.0
    more = rows[:4].assign(sold=100.0)
    more.to_csv(folder / "gm.csv", index=False)
    assert run(folder, "update", "g.condmeta", "gm.csv", "-o", "g2.condmeta").exit_code == 0
    moved = read(run(folder, "predict", "g2.condmeta", "gn.csv").stdout)["prediction"]
    assert float(moved[0]) > float(found[0]) + 0.1
    assert float(moved[1]) == float(found[1])
    assert "region" in run(folder, "summary", "g.condmeta").output


def test_learners_exist():
    for numbers, classes in LEARNERS.values():
        assert all(hasattr(cm, name) for name in (numbers, classes) if name)


BAD = {
    "missing ids": ("store,sold,x\na,1,2\n,2,3\n,4,5\n", "in 2 of 3 rows, first in row 2"),
    "missing features": ("store,sold,x\na,1,\nb,2,3\nb,4,5\n", "'x' 1. Fill them"),
    "text target": ("store,sold,x\na,u,1\nb,u,2\nb,u,2\n", "'sold' .* has only the one value 'u'"),
    "dates": ("store,sold,x\na,1,3/4/2024\nb,2,5/6/2024\n", "is the day or the month first"),
    "dated target": ("store,sold,x\na,2024-01-01,1\nb,2024-01-02,2\n", "make a number of it"),
    "percent and share": ("store,sold,x\na,1,12%\nb,2,0.1\n", "numbers in several units"),
    "thousands?": ('store,sold,x\na,1,"1,904"\nb,2,"2,100"\n', "use --decimal . or --decimal ,"),
    "mixed": ("store,sold,x\na,1,1\nb,2,2\nb,3,?\n", r"text in 1 of 3 rows, first '\?' in row 3"),
    "empty": ("", "is empty"),
    "header": ("store,sold,x\n", "no rows"),
    "twins": ("store,sold,x,x\na,1,2,3\n", "'x' occurs 2 times"),
    "only roles": ("store,sold\na,1\nb,2\n", "No column is left to be a feature"),
    "no column": ("shop,sold,x\na,1,2\n", r"Column 'store' \(task\) is not in the table"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tables_are_one_sentence_and_code_1(folder, name):
    content, sentence = BAD[name]
    (folder / "bad.csv").write_text(content)
    done = fit(folder, "bad.csv", out="bad.condmeta")
    assert done.exit_code == 1, done.output
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("Error: ")
    assert re.search(sentence, done.stderr), done.stderr
    assert not (folder / "bad.condmeta").exists()


def test_usage_errors_are_code_2(folder):
    assert run(folder, "fit", "sales.csv", "-o", "x").exit_code == 2
    assert fit(folder, "sales.csv", "--features", "price,,x").exit_code == 2
    assert fit(folder, "sales.csv", "--learner", "magic").exit_code == 2


def test_outputs_are_checked_before_the_work(folder):
    (folder / "d.condmeta").mkdir()
    for out, sentence in (
        ("-", "must end in .condmeta"),
        ("none/x.condmeta", "There is no folder"),
        ("d.condmeta", "a folder"),
    ):
        done = fit(folder, "sales.csv", out=out)
        assert done.exit_code == 1
        assert sentence in done.stderr
    done = run(folder, "predict", "m.condmeta", "new.csv", "-o", "x.xlsx")
    assert (
        "must end in .csv, .txt, .tsv, .parquet, .pq, .feather or .arrow. Got 'x.xlsx'"
        in done.stderr
    )


def test_answers_never_overwrite_columns(folder):
    SALES.assign(task_kind="a").to_csv(folder / "kind.csv", index=False)
    done = run(folder, "predict", "m.condmeta", "kind.csv")
    assert "The table already has a column 'task_kind'" in done.stderr


def test_traceback_only_when_asked(folder, monkeypatch):
    words = ["predict", "m.condmeta", "none.csv"]
    assert run(folder, *words, "--traceback").exception.__class__ is cm.errors.DataError
    monkeypatch.setenv("CONDMETA_TRACEBACK", "1")
    assert run(folder, *words).exception.__class__ is cm.errors.DataError


def test_unseen_levels_are_noted_with_counts(folder):
    SALES[:4].assign(city=["Oslo", "Oslo", "Bonn", "Lund"]).to_csv(folder / "oslo.csv", index=False)
    done = run(folder, "predict", "m.condmeta", "oslo.csv")
    assert done.exit_code == 0
    assert "Note: Columns hold levels not seen in training" in done.stderr
    assert "'Oslo' (2), 'Lund' (1)" in done.stderr
    assert len(read(done.stdout)) == 4
    quiet = run(folder, "predict", "m.condmeta", "oslo.csv", "--quiet")
    assert quiet.stderr == ""


def test_options_reach_the_reader(folder):
    text = SALES.to_csv(index=False, sep="#", decimal=",")
    (folder / "odd.csv").write_bytes(text.replace("Kiel", "Köln").encode("latin-1"))
    assert fit(folder, "odd.csv").exit_code == 1
    words = ["--delimiter", "#", "--decimal", ",", "--encoding", "latin-1"]
    done = fit(folder, "odd.csv", *words, out="odd.condmeta")
    assert done.exit_code == 0, done.output
    assert "city=Köln" in cm.load(folder / "odd.condmeta").schema_.feature_names


def test_the_decimal_sign_of_the_side_table_reaches_its_texts(folder):
    sizes = [f"{v:,}" for v in 1000 + 7 * np.arange(len(STORES))]
    STORES.assign(size=sizes).to_csv(folder / "thousands.csv", index=False)
    words = ["--side-table", "thousands.csv"]
    assert "--side-decimal for the side table" in fit(folder, "sales.csv", *words).stderr
    done = fit(folder, "sales.csv", *words, "--side-decimal", ".", out="t.condmeta")
    assert "'1,000' is read as the number 1000" in done.stderr


def test_missing_side_and_text(folder):
    few = STORES[:20]
    few.to_csv(folder / "few.csv", index=False)
    done = fit(folder, "sales.csv", "--side-table", "few.csv")
    assert done.exit_code == 1
    assert "8 tasks are missing from the side table" in done.stderr
    assert "Add the missing rows to --side-table, or fit with --missing-side mean." in done.stderr
    few.rename(columns={"store": "key"}).to_csv(folder / "key.csv", index=False)
    done = fit(folder, "sales.csv", "--side-table", "key.csv")
    assert (done.exit_code, "side_key" in done.stderr) == (1, False)
    done = fit(folder, "sales.csv", "--side-table", "few.csv", "--missing-side", "mean")
    assert done.exit_code == 0, done.output
    numbers = SALES.assign(city=np.where(SALES["city"] == "Bonn", 1, 2))
    numbers.to_csv(folder / "numbers.csv", index=False)
    assert fit(folder, "numbers.csv", "--text", "city", out="n.condmeta").exit_code == 0
    names = cm.load(folder / "n.condmeta").schema_.feature_names
    assert names == ["price", "city=1", "city=2"]
    done = run(folder, "predict", "n.condmeta", "numbers.csv")
    assert done.exit_code == 0
    assert done.stderr == ""


def test_fit_with_sorted_rows_and_with_boosting(folder):
    dated = SALES.assign(day=np.arange(len(SALES))[::-1])
    dated.to_csv(folder / "dated.csv", index=False)
    words = ["--learner", "auto", "--no-boosting", "--sort-by", "day", "--exclude", "city"]
    assert fit(folder, "dated.csv", *words, out="o.condmeta").exit_code == 0
    model = cm.load(folder / "o.condmeta")
    assert (model.learner_.order, model.learner_.base, model.order) == ("first", None, "first")
    assert "day" not in model.schema_.feature_names
    assert fit(folder, "dated.csv", "--boosting", out="b.condmeta").exit_code == 0
    assert cm.load(folder / "b.condmeta").learner_.base == "boosting"
    done = fit(folder, "dated.csv", "--boosting", "--learner", "pooled")
    assert (done.exit_code, "levels, logistic and auto, not with pooled" in done.stderr) == (
        1,
        True,
    )
    done = fit(folder, "dated.csv", "--chunks", "--sort-by", "day")
    assert (done.exit_code, "leave --sort-by out" in done.stderr) == (1, True)
    done = fit(folder, "dated.csv", "--chunks", "--learner", "logistic")
    assert (done.exit_code, "logistic needs all rows at once" in done.stderr) == (1, True)
    done = fit(folder, "dated.csv", "--exclude", "dya")
    assert (done.exit_code, "'dya'" in done.stderr) == (1, True)


@pytest.mark.parametrize(("python", "command"), WORDS.items())
def test_sentences_of_python_are_those_of_the_command_line(python, command):
    """What is translated is said somewhere in the library, in these words."""
    sources = "".join(
        path.read_text(encoding="utf-8")
        for path in Path(cm.__file__).parent.rglob("*.py")
        if path.parent.name != "cli"
    )
    said = re.sub(r'"\s*\n\s*f?"', "", sources)
    composed = "missing from side_info", "name its key column with side_key="
    assert python in said or python in composed
    assert to_cli_wording(f"So: {python}.") == f"So: {command}."
