"""Both engines choose the same pair on the paper's experiments, Lenk's ties included."""

import os

import numpy as np
import pytest

from condmeta.engine import compiled_core
from condmeta.experiments import PANELS, run

REAL = [
    pytest.mark.real_data,
    pytest.mark.skipif(
        not os.path.isdir(os.environ.get("CONDMETA_DATA", "")),
        reason="CONDMETA_DATA names no folder of data files",
    ),
]


@pytest.mark.skipif(compiled_core() is None, reason="the compiled core was not built")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=REAL if p.is_real else []) for name, p in PANELS.items()]
)
def test_same_pairs_and_errors(name, monkeypatch):
    panel = PANELS[name]
    source = panel.source()
    found = {}
    for engine in ("numpy", "native"):
        monkeypatch.setenv("CONDMETA_ENGINE", engine)
        grid = {"lam": panel.grid, "meta_step": panel.grid}
        found[engine] = run(
            source, panel.methods(source), setting=panel.setting, grid=grid, seeds=1
        )
    numpy, native = found["numpy"], found["native"]
    for method in numpy.methods:
        np.testing.assert_array_equal(numpy.chosen(method), native.chosen(method))
    test = numpy.columns["split"] == "test"
    one, two = numpy.columns["error"], native.columns["error"]
    np.testing.assert_allclose(two[test], one[test], rtol=1e-9)
    np.testing.assert_array_equal(np.isfinite(two), np.isfinite(one))
    finite = np.isfinite(one)
    np.testing.assert_allclose(two[finite], one[finite], rtol=1e-6)
