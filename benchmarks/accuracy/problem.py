"""A data set with its protocol, and how one split of it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from condmeta.tasks import TaskSet

FEWEST_QUERIES = 2  # a task with fewer points beyond the largest support only trains


class Problem(NamedTuple):
    """Tasks, how many train and test, and what a new task shows.

    Attributes
    ----------
    title : str
        Task, inputs, target and side columns in a line.
    draw : callable
        Seed -> TaskSet; data that exist do not depend on the seed.
    n_train, n_test : int
    sizes : tuple of int
        Support sizes, rising.
    n_query : int
        The most query points of a task.
    classes : bool
        Whether the target is 0 or 1; errors are then log losses.
    """

    title: str
    draw: Callable[[int], TaskSet]
    n_train: int
    n_test: int
    sizes: tuple[int, ...]
    n_query: int = 20
    classes: bool = False


class Split(NamedTuple):
    """Training tasks; the support of each size and the query points of the same new tasks."""

    train: TaskSet
    supports: tuple[TaskSet, ...]
    query: TaskSet


def split(problem: Problem, seed: int) -> Split:
    """Draw a split; supports are nested, and the query points are in none of them."""
    tasks = problem.draw(seed)
    rng = np.random.default_rng([seed, 1])
    order = rng.permutation(len(tasks))
    most = problem.sizes[-1]
    can_test = order[tasks.sizes[order] >= most + FEWEST_QUERIES][: problem.n_test]
    rest = order[~np.isin(order, can_test)][: problem.n_train]
    new = tasks.subset(can_test)
    rank = _random_ranks(new, rng)
    supports = tuple(new.where(rank < size) for size in problem.sizes)
    query = new.where((rank >= most) & (rank < most + problem.n_query))
    return Split(tasks.subset(rest), supports, query)


def _random_ranks(tasks: TaskSet, rng: np.random.Generator) -> np.ndarray:
    """Return the place of each row in a random order of its task, (N,)."""
    ranks = np.empty(len(tasks.X), np.int64)
    for start, end in pairwise(tasks.offsets):
        ranks[start:end] = rng.permutation(end - start)
    return ranks
