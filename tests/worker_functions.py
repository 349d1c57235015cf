"""Functions that tests run in the worker processes of a Dask cluster."""

import os
import resource
import signal
import time

import numpy as np

from condmeta.tables.cluster.stream import go_on_with


def slowly(function, job):
    """Return function(*job) after a while."""
    time.sleep(0.3)
    return function(*job)


def die(*_):
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def about_another_machine(probe):
    """Answer like a worker that does not reach a folder."""
    return "", "", False


def page_faults(times, size):
    """Make, fill and free an array of so many bytes; return the page faults of all times."""
    np.zeros(size, np.uint8).fill(1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        np.empty(size, np.uint8).fill(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def many_times(frame, count):
    """Return a table with each row many times."""
    return frame.loc[frame.index.repeat(count)]


def go_on_slowly(before, *job):
    """Go through a partition after a while."""
    time.sleep(0.3)
    return go_on_with(before, *job)
