"""Digests of the tables whose rows a model holds: the same rows are not added twice unnoticed."""

import hashlib

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks import TaskSet
from condmeta.tasks.times import as_clock
from condmeta.tasks.weights import repeats
from condmeta.text import pluralize


def digest_of(tasks: TaskSet) -> str:
    """Return the SHA-256 of the rows of tasks: ids, features, targets, times and weights.

    The order of the tasks counts, the format of the file that they came from does not.
    """
    found = hashlib.sha256(repr((tasks.ids.tolist(), tasks.sizes.tolist())).encode())
    times = () if tasks.time is None else (as_clock(tasks.time),)
    weights = () if tasks.weight is None else (repeats(tasks.weight),)
    weights = [weight for weight in weights if (weight != 1).any()]
    for array in (tasks.X, tasks.y, *times, *weights):
        found.update(np.ascontiguousarray(array, np.float64).data)
    return found.hexdigest()


def refuse_again(digest: str, added: dict[str, int]) -> None:
    """Refuse rows that a model holds already."""
    if digest in added:
        raise DataError(
            f"The model holds these {pluralize(added[digest], 'row')} already, so that each would "
            "count twice: give new rows, or set again=True if they are further observations with "
            "the same values."
        )
