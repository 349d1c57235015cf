"""`condmeta update`: rows are counted once, also when several run at once or one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import condmeta as cm
from condmeta.cli.app import app
from condmeta.cli.lock import locked
from condmeta.errors import DataError

COMMAND = [sys.executable, "-c", "from condmeta.cli import main; main()"]


def read_csv(path):
    """Read the numbers that are written; pandas before 3 rounds their last digit otherwise.

    `float_precision="round_trip"` does so too, but pandas 3.1 warns of it.
    """
    return pd.read_csv(path, engine="pyarrow")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a model of 25 stores and four tables of two new rows each."""
    rng = np.random.default_rng(0)
    store = np.repeat([f"s{t:02d}" for t in range(25)], 4)
    sales = pd.DataFrame({"store": store, "price": rng.normal(size=100)})
    sales["sold"] = sales["price"] + rng.normal(size=100)
    sales.to_csv(tmp_path / "sales.csv", index=False)
    for day in range(4):
        rows = sales[2 * day : 2 * day + 2].assign(sold=float(day))
        rows.to_csv(tmp_path / f"day{day}.csv", index=False)
    model = cm.TableModel(task="store", target="sold").fit(read_csv(tmp_path / "sales.csv"))
    model.save(tmp_path / "m.condmeta")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, list(words))


def test_updates_at_once_are_all_kept(folder):
    commands = [
        [*COMMAND, "update", "m.condmeta", f"day{day}.csv", "--wait", "500"] for day in range(4)
    ]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE) for command in commands]
    said = [process.communicate(timeout=500)[1].decode() for process in running]
    assert [process.returncode for process in running] == [0] * 4, said
    assert all("2 rows added" in text for text in said)
    together = cm.load("m.condmeta")
    assert together.n_rows_ == 108
    assert len(together.added_) == 5
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == []


def test_a_second_time_is_an_error_unless_meant(folder):
    assert run("update", "m.condmeta", "day0.csv").exit_code == 0
    before = (folder / "m.condmeta").read_bytes()
    read_csv("day0.csv").to_parquet("same.parquet")  # the same rows in another file
    for table, rows in (("day0.csv", 2), ("same.parquet", 2), ("sales.csv", 100)):
        done = run("update", "m.condmeta", table)
        assert done.exit_code == 1
        assert f"The model already holds these {rows} rows" in done.stderr
        assert "or use --again if" in done.stderr
    assert (folder / "m.condmeta").read_bytes() == before
    assert run("update", "m.condmeta", "day1.csv").exit_code == 0
    assert run("update", "m.condmeta", "day0.csv", "--again").exit_code == 0
    assert cm.load("m.condmeta").n_rows_ == 106
    assert "rows 100" in run("inspect", "m.condmeta").stdout


def test_python_has_the_rule_of_the_command(folder):
    model, rows = cm.load("m.condmeta"), pd.read_csv("day0.csv")
    model.update(rows)
    with pytest.raises(DataError, match="already holds these 2 rows"):
        model.update(rows)
    assert (model.n_rows_, len(model.added_)) == (102, 2)
    for _ in range(2):  # a table of one row is a reading, not a file that was given twice
        rows[:1].to_csv("row.csv", index=False)
        assert run("update", "m.condmeta", "row.csv").exit_code == 0
    model.save("shared.condmeta", resume=False)
    assert cm.load("shared.condmeta").added_ == {}  # a digest could confirm a guess of the rows


def test_a_busy_model_is_waited_for_then_a_sentence(folder):
    before = (folder / "m.condmeta").read_bytes()
    with locked("m.condmeta", 1):
        done = run("update", "m.condmeta", "day0.csv", "--wait", "0.2")
    assert done.exit_code == 1
    assert "Another process is changing 'm.condmeta' and did not finish within 0.2 s" in done.stderr
    assert (folder / "m.condmeta").read_bytes() == before
    assert run("update", "m.condmeta", "day0.csv", "--wait", "0.2").exit_code == 0


@pytest.mark.skipif(os.name == "nt", reason="kills with a signal")
def test_a_killed_process_leaves_no_lock(folder):
    holds = "from condmeta.cli.lock import locked\nimport time\n"
    holds += "with locked('m.condmeta', 1):\n    print('held', flush=True)\n    time.sleep(60)\n"
    process = subprocess.Popen([sys.executable, "-c", holds], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    assert run("update", "m.condmeta", "day0.csv", "--wait", "0").exit_code == 1
    process.send_signal(signal.SIGKILL)
    process.communicate()
    start = time.monotonic()
    assert run("update", "m.condmeta", "day0.csv").exit_code == 0
    assert time.monotonic() - start < 30
