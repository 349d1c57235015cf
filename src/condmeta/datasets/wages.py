"""The wage panel of Vella and Verbeek (1998): every man is a task."""

from condmeta.datasets.packages import package_file, read_csv, tasks_of_numbers
from condmeta.tasks import TaskSet


def load_wages() -> TaskSet:
    """Load the log wages of 545 young men over eight years; from the package linearmodels.

    Returns
    -------
    TaskSet
        A task is a man; its id is his number. Its rows are the years 1980 to 1987, in order.
        Features: years of experience and their square, union member, married. Target: ``lwage``,
        log of the hourly wage in dollars. Side information: years of education, black, hispanic.

    Notes
    -----
    ``pip install linearmodels`` (NCSA licence). The file is read; the package is not imported.

    Examples
    --------
    >>> load_wages()
    TaskSet(545 tasks, 4360 rows, 8 a task, 4 features, side: 3 columns)
    """
    file = package_file("linearmodels", "datasets", "wage_panel", "wage_panel.csv.bz2")
    return tasks_of_numbers(read_csv(file), "nr", "lwage", ["exper", "expersq", "union", "married"],
                            ["educ", "black", "hisp"])  # fmt: skip
