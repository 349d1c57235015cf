"""Readings: each option reaches the experiment, and wrong options are refused."""

from __future__ import annotations

import pytest

from condmeta.errors import DataError
from condmeta.experiments import PANELS
from condmeta.paper.experiments.readings import CHOICES, SCHOOLS_MAPS, Readings


def test_each_reading_reaches_the_experiment():
    assert Readings(inputs="unit").panel("one-cluster").source().inputs == "unit"
    assert Readings().panel("one-cluster").source().inputs == "gaussian"
    assert Readings().panel("circle").source().inputs == "unit"
    assert Readings(noise=0.2).panel("circle").source().noise == 0.2
    assert Readings(scale="rows").panel("lenk").scale == "rows"
    assert [Readings().panel(name).scale for name in ("lenk", "schools")] == ["none", "rows"]
    assert Readings(train_on="all").panel("lenk").setting.train_on == "all"
    features = Readings(circle_std=3.0).panel("circle").maps
    assert features["conditional, random features"].std == 3.0
    assert list(features) == list(PANELS["circle"].maps)
    maps = [Readings(schools_map=name).panel("schools").maps for name in SCHOOLS_MAPS]
    assert [list(found) for found in maps] == [["conditional"]] * len(SCHOOLS_MAPS)
    assert len({repr(found) for found in maps}) == len(SCHOOLS_MAPS)
    readings = Readings(inner="batch", gradient_at="average")
    panel = readings.panel("circle")
    methods = readings.methods(panel, panel.source())
    assert {method.inner for method in methods.values()} == {"batch"}
    assert methods["unconditional"].gradient_at == "average"


def test_readings_are_checked():
    for name in CHOICES:
        with pytest.raises(DataError, match=f"'{name}' parameter of Readings must be one of"):
            Readings(**{name: "other"})
    with pytest.raises(DataError, match="'noise' parameter of Readings"):
        Readings(noise=-1.0)
    with pytest.raises(DataError, match="'circle_std' parameter of Readings"):
        Readings(circle_std=0.0)
