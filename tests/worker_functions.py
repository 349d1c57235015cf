"""Functions that tests run in the worker processes of a Dask cluster."""

import os
import signal
import time


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
