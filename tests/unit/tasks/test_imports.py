"""Importing tasks and feature maps loads NumPy alone."""

import subprocess
import sys

import pytest

HEAVY = ("sklearn", "scipy", "pandas", "polars", "pyarrow", "narwhals", "matplotlib")


def loaded_after(code):
    script = f"{code}\nimport sys\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return run.stdout.strip()


@pytest.mark.parametrize("module", ["condmeta.tasks", "condmeta.feature_maps"])
def test_import_is_light(module):
    assert loaded_after(f"import {module}") == "[]"


def test_arrays_never_load_a_dataframe_library():
    code = """
import numpy as np
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.side_table import read_side_row
from condmeta.feature_maps import ComposedMap
side = TaskTable(np.ones((2, 1)), ["a", "b"])
tasks = TaskSet.from_arrays(np.ones((3, 2)), [1, 2, 3], ["a", "b", "a"], side)
phi = ComposedMap("auto").fit(tasks.side)
phi.transform(1, table=read_side_row([2.0], columns=phi.columns_))
"""
    assert loaded_after(code) == "[]"


def test_a_lazy_frame_is_recognised_without_resolving_it():
    code = """
import warnings
warnings.simplefilter("error")
import polars as pl
from condmeta.tasks.frames import is_frame
assert is_frame(pl.LazyFrame({"a": [1]}))
"""
    assert loaded_after(code) == "['polars']"
