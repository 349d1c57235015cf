"""`condmeta fit` of many files: the same model, also after it was killed."""

import os
import random
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

pytest.importorskip("duckdb")
T, N = 300, 8
ROLES = ["--task", "store", "--target", "sold"]


def write_files(folder, pieces=3):
    """Write shuffled rows as CSV files, and all of them as one file."""
    rng = np.random.default_rng(0)
    store = np.repeat(np.arange(T), N)
    price = rng.normal(5, 1, T * N)
    sold = 9 - (1 + rng.normal(size=T)[store]) * price + rng.normal(size=T * N)
    rows = pd.DataFrame({"store": store, "price": price, "sold": sold})
    rows = rows.iloc[rng.permutation(T * N)]
    (folder / "rows").mkdir()
    rows.to_csv(folder / "all.csv", index=False)
    for number, part in enumerate(np.array_split(np.arange(T * N), pieces)):
        rows.iloc[part].to_csv(folder / "rows" / f"{number:02d}.csv", index=False)


def arrays(path):
    """Return the numbers of a model, by task."""
    fitted = cm.load(path).learner_.fitted_
    order = np.argsort(fitted.tasks.ids.astype(str))
    return [fitted.tau.weights, fitted.inner.factor, fitted.tasks.coef[order]]


def run(*args):
    return CliRunner().invoke(app, [*map(str, args)], catch_exceptions=False)


def test_files_give_the_model_of_one_file(tmp_path):
    write_files(tmp_path)
    whole, files = tmp_path / "whole.condmeta", tmp_path / "files.condmeta"
    assert run("fit", tmp_path / "all.csv", *ROLES, "-o", whole).exit_code == 0
    result = run("fit", f"{tmp_path}/rows/*.csv", *ROLES, "--memory", "100MB", "-o", files)
    assert result.exit_code == 0
    assert f"Working in {files}.work. If it is stopped, the same command goes on" in result.output
    for found, expected in zip(arrays(files), arrays(whole), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert not os.path.exists(f"{files}.work")


@pytest.mark.filterwarnings("ignore")  # of the scheduler, in a thread of this process
def test_workers_give_the_model_of_one_file(tmp_path):
    pytest.importorskip("distributed")
    write_files(tmp_path)
    whole, files = tmp_path / "whole.condmeta", tmp_path / "files.condmeta"
    assert run("fit", tmp_path / "all.csv", *ROLES, "-o", whole).exit_code == 0
    result = run("fit", tmp_path / "rows", *ROLES, "--workers", "2", "-o", files)
    assert result.exit_code == 0, result.output
    for found, expected in zip(arrays(files), arrays(whole), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert not os.path.exists(f"{files}.work")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], "give one of them"),
        (["--workers", "2", "--memory", "1GB"], "--memory is for a fit in one process"),
        (["--learner", "erm"], "--learner erm needs all rows at once"),
        (["--sort-by", "price"], "Rows in files are ordered by task"),
        (["--chunks"], "--memory reads rows in any order"),
        (["--intervals"], "Intervals need all rows at once"),
        (["--memory", "lots"], "a size such as '2GB'"),
    ],
)
def test_options_that_do_not_go_with_files(tmp_path, options, sentence):
    write_files(tmp_path)
    result = run("fit", tmp_path / "rows", *ROLES, *options, "-o", tmp_path / "m.condmeta")
    assert result.exit_code == 1
    assert sentence in result.output
    assert not (tmp_path / "m.condmeta").exists()


def test_standard_input_is_not_in_files(tmp_path):
    result = run("fit", "-", *ROLES, "--memory", "1GB", "-o", tmp_path / "m.condmeta")
    assert "from files, not from standard input" in result.output


def test_a_fit_that_is_killed_goes_on_to_the_same_model(tmp_path):
    write_files(tmp_path, pieces=12)
    model = tmp_path / "model.condmeta"
    command = [sys.executable, "-c", "from condmeta.cli import main; main()", "fit"]
    command += [str(tmp_path / "rows"), *ROLES, "-o", str(model)]
    draw = random.Random(4)
    for _ in range(3):
        child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        time.sleep(draw.uniform(0.5, 3.0))
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0
    assert run("fit", tmp_path / "all.csv", *ROLES, "-o", tmp_path / "all.condmeta").exit_code == 0
    for found, expected in zip(arrays(model), arrays(tmp_path / "all.condmeta"), strict=True):
        np.testing.assert_array_equal(found, expected)
