"""`condmeta fit` of many files: the same model, also after it was killed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

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
    assert run("fit", tmp_path / "all.csv", *ROLES, "--linear", "-o", whole).exit_code == 0
    result = run("fit", f"{tmp_path}/rows/*.csv", *ROLES, "--memory", "100MB", "-o", files)
    assert result.exit_code == 0
    assert f"Working in {files}.work. If you stop the command, run it again" in result.output
    for found, expected in zip(arrays(files), arrays(whole), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert not os.path.exists(f"{files}.work")


@pytest.mark.filterwarnings("ignore")  # of the scheduler, in a thread of this process
def test_workers_give_the_model_of_one_file(tmp_path):
    pytest.importorskip("distributed")
    write_files(tmp_path)
    whole, files = tmp_path / "whole.condmeta", tmp_path / "files.condmeta"
    assert run("fit", tmp_path / "all.csv", *ROLES, "--linear", "-o", whole).exit_code == 0
    result = run("fit", tmp_path / "rows", *ROLES, "--workers", "2", "-o", files)
    assert result.exit_code == 0, result.output
    for found, expected in zip(arrays(files), arrays(whole), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert not os.path.exists(f"{files}.work")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], "give only one of them"),
        (["--workers", "2", "--memory", "1GB"], "--memory does not work with a cluster"),
        (["--learner", "erm"], "--learner erm needs all rows at once"),
        (["--sort-by", "price"], "orders the rows of several files by task"),
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


def test_classes_in_files(tmp_path):
    write_files(tmp_path)
    for path in [tmp_path / "all.csv", *(tmp_path / "rows").iterdir()]:
        frame = pd.read_csv(path)
        frame.assign(sold=(frame["sold"] > frame["sold"].median()).astype(int)).to_csv(
            path, index=False
        )
    files = tmp_path / "files.condmeta"
    result = run("fit", tmp_path / "rows", *ROLES, "--prior-tasks", "30", "-o", files)
    assert result.exit_code == 0, result.output
    model = cm.load(files)
    assert type(model.learner_) is cm.ConditionalLogistic
    assert model.learner_.n_tasks_ == 30
    assert run("predict", files, tmp_path / "all.csv", "-o", tmp_path / "p.csv").exit_code == 0
    result = run("fit", tmp_path / "all.csv", *ROLES, "--prior-tasks", "30", "-o", files, "--force")
    assert "--prior-tasks is for several files" in result.output


@pytest.mark.filterwarnings("ignore")
def test_a_running_scheduler(tmp_path):
    """A scheduler and two workers are processes of their own, as on a cluster."""
    pytest.importorskip("distributed")
    write_files(tmp_path)
    whole, files = tmp_path / "whole.condmeta", tmp_path / "files.condmeta"
    assert run("fit", tmp_path / "all.csv", *ROLES, "--linear", "-o", whole).exit_code == 0
    with cluster(tmp_path) as address:
        options = ["--scheduler", address, "-o", files]
        result = run("fit", tmp_path / "rows", *ROLES, *options)
        assert result.exit_code == 0, result.output
    for found, expected in zip(arrays(files), arrays(whole), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert not os.path.exists(f"{files}.work")


@contextmanager
def cluster(folder, *options, n_workers=2):
    """Start a scheduler and workers; give its address."""
    known, here = folder / "scheduler.json", ["--host", "127.0.0.1"]
    python = [sys.executable, "-m"]
    commands = [[*python, "distributed.cli.dask_scheduler", *here, "--port", "0",
                 "--no-dashboard", "--scheduler-file", str(known)]]  # fmt: skip
    commands += [[*python, "distributed.cli.dask_worker", *here, "--no-dashboard", "--nthreads",
                  "1", "--scheduler-file", str(known), *options]] * n_workers  # fmt: skip
    started = []
    try:
        for command in commands:
            started.append(subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=folder))
            while not known.exists():
                assert started[0].poll() is None
                time.sleep(0.1)
        yield json.loads(known.read_text())["address"]
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait()


def test_standard_input_is_not_in_files(tmp_path):
    result = run("fit", "-", *ROLES, "--memory", "1GB", "-o", tmp_path / "m.condmeta")
    assert "read files, not standard input" in result.output


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
    whole = tmp_path / "all.condmeta"
    assert run("fit", tmp_path / "all.csv", *ROLES, "--linear", "-o", whole).exit_code == 0
    for found, expected in zip(arrays(model), arrays(whole), strict=True):
        np.testing.assert_array_equal(found, expected)
