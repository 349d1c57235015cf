"""The package as a user gets it: built, installed in a clean environment, and used there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")

USE = """
import sys
import condmeta as cm
from condmeta.engine import active_engine

assert "site-packages" in cm.__file__, cm.__file__
X = [[0.0], [1.0], [0.0], [1.0]]
side = cm.TaskTable([[0.0], [1.0]], ids=["a", "b"])
model = cm.ConditionalSGDRegressor(lam=0.1).fit(X, [0, 1, 0, 2], task=list("aabb"), side_info=side)
model.save("model.condmeta")
again = cm.load("model.condmeta")
assert (again.predict(X, task=list("aabb")) == model.predict(X, task=list("aabb"))).all()
assert len(cm.datasets.load_flights()) == 100
assert "pandas" not in sys.modules
print(active_engine())
"""


def run(*command, cwd, **environment):
    """Run a command and return what it printed; its error output is the message of a failure."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout.strip()


def build(tmp_path, *what, **environment):
    """Build into tmp_path/dist from a copy of the checkout, so that nothing is left in it."""
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns(".venv", "build", "dist", ".git", ".*_cache", "__pycache__")
    shutil.copytree(ROOT, source, ignore=ignored)
    dist = tmp_path / "dist"
    run(sys.executable, "-m", "build", *what, "--outdir", dist, cwd=source, **environment)
    return {path.suffix: path for path in dist.iterdir()}


def use_in_clean_environment(wheel, tmp_path):
    """Install a wheel and its dependencies alone, use it, and return the engine that it ran on."""
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    return run(python, "-W", "error", "-c", USE, cwd=tmp_path, CONDMETA_ENGINE="")


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")
def test_sdist_and_wheel_with_a_compiler(tmp_path):
    built = build(tmp_path)  # the sdist, and the wheel from the sdist
    with tarfile.open(built[".gz"]) as sdist:
        names = [name.split("/", 1)[-1] for name in sdist.getnames()]
    assert "src/condmeta/native/kernels.cpp" in names
    assert "CMakeLists.txt" in names
    assert not [name for name in names if name.endswith((".mat", ".so")) or ".venv" in name]
    with zipfile.ZipFile(built[".whl"]) as wheel:
        files = wheel.namelist()
        bundled = [f for f in wheel.infolist() if "datasets/bundled/" in f.filename]
    assert any("native/_core" in name for name in files)
    assert "condmeta/py.typed" in files
    assert {Path(f.filename).name for f in bundled} >= {"flights.csv.gz", "airports.csv", "LICENSE"}
    assert sum(f.compress_size for f in bundled) <= 200_000
    assert not [name for name in files if name.endswith((".cpp", ".h"))]
    assert use_in_clean_environment(built[".whl"], tmp_path) == "native"


def test_wheel_without_a_compiler(tmp_path):
    built = build(tmp_path, "--wheel", CXX="/bin/false", CC="/bin/false")
    with zipfile.ZipFile(built[".whl"]) as wheel:
        assert not [name for name in wheel.namelist() if "_core" in name]
    assert use_in_clean_environment(built[".whl"], tmp_path) == "numpy"
