"""The data sets: name -> `Problem`. A loader raises an error if its package or file is missing.

Twelve are written out here. The learners were designed on them, so that they belong to no half.
`registry.py` lists more; `halves.py` says which half each belongs to. The tables of `fresh.py` are
a third group.

Side columns are constant within a task and known before it has a labelled point.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from benchmarks.accuracy import fresh, registry, tables
from benchmarks.accuracy.halves import HALVES, half
from benchmarks.accuracy.problem import Problem
from condmeta import datasets
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
def load(name: str) -> TaskSet:
    """Load a data set of the library once."""
    return getattr(datasets, name)()


@cache
def lenk() -> TaskSet:
    """Load the computer survey, without its constant column."""
    return datasets.load_lenk(constant=False)


@cache
def schools() -> TaskSet:
    """Load the London schools; what is constant within every school is side information."""
    tasks = datasets.load_schools()
    names = list(tasks.feature_names)
    first = tasks.X[tasks.offsets[:-1]]
    side = {name: first[:, names.index(name)] for name in SCHOOL_SIDE}
    rows = [name for name in names if name not in (*SCHOOL_SIDE, *SCHOOL_LEFT_OUT)]
    X = tasks.X[:, [names.index(name) for name in rows]]
    table = TaskTable(side, ids=tasks.ids)
    return TaskSet(X, tasks.y, tasks.offsets, tasks.ids, table, feature_names=rows)


def _cluster_problem(name: str, title: str) -> Problem:
    title = f"{title} (d = 20); the mean of {SHOWN} other, unlabelled inputs is side information"
    return Problem(title, lambda seed: clusters(name, seed), 100, 100, (0, 1, 3, 5, 10), 10)


FIRST: dict[str, Problem] = {
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
        lambda _: load("load_planes"), 300, 300, (0, 1, 3, 5, 10, 20),
    ),
    "flights-destination": Problem(
        "Flights by destination: air time by hour and season; latitude, longitude, altitude, zone",
        lambda _: load("load_flights"), 60, 33, (0, 1, 3, 5, 10, 20),
    ),
    "wages": Problem(
        "Wages of men: log wage by experience, its square, union and marriage; education, race",
        lambda _: load("load_wages"), 345, 200, (0, 1, 3, 5),
    ),
    "hsb82": Problem(
        "Hsb82: mathematics of a pupil by status, minority and sex; mean status and sector",
        lambda _: load("load_hsb82"), 110, 50, (0, 1, 3, 5, 10),
    ),
    "exam": Problem(
        "Exam: score of a pupil by intake test and sex; mean intake and gender of the school",
        lambda _: load("load_exam"), 43, 22, (0, 1, 3, 5, 10),
    ),
    "growth": Problem(
        "Growth: mathematics of a child by year and repetition; sex, race, three school columns",
        lambda _: load("load_growth"), 600, 400, (0, 1, 2, 3),
    ),
}  # fmt: skip


TABLES = registry.TABLES | fresh.TABLES


@cache
def read(name: str) -> TaskSet:
    """Load a table once."""
    return tables.read(TABLES[name])


def _table_problem(name: str) -> Problem:
    table = TABLES[name]
    return Problem(
        table.title, lambda _: read(name), table.train, table.test, table.points,
        classes=table.classes,
    )  # fmt: skip


PROBLEMS: dict[str, Problem] = FIRST | {name: _table_problem(name) for name in TABLES}
GROUPS = "first", *HALVES, "fresh"


def group(name: str) -> str:
    """Return "first" for the twelve, "fresh" for tables of `fresh.py`, else the half."""
    if name in FIRST:
        return "first"
    return "fresh" if name in fresh.TABLES else half(name)
