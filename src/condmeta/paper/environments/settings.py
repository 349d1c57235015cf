"""The four synthetic settings of the paper, by name."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from condmeta.paper.environments import drawing
from condmeta.paper.environments.circle import Circle
from condmeta.paper.environments.clusters import Clusters

D, N = 20, 20  # features, and points of a task


class PaperSetting(NamedTuple):
    """Hold one synthetic setting of the paper: its environment, splits and parameter grid.

    Attributes
    ----------
    title : str
    make : callable
        Returns the environment; keyword arguments override its options.
    n_tasks : (int, int, int)
        Numbers of training, validation and test tasks, 480 in total.
    train_points : float
        The fraction of a task's points used for training; the rest is used for testing.
    grid : (int, float, float)
        Number, minimum and maximum of the candidate values of lam and of meta_step, on a
        logarithmic scale.

    Examples
    --------
    >>> from condmeta.environments import PAPER_SETTINGS
    >>> setting = PAPER_SETTINGS["circle"]
    >>> sum(setting.n_tasks), setting.train_points, setting.grid
    (480, 0.5, (16, 1e-07, 10000000.0))
    """

    title: str
    make: Callable[..., Any]
    n_tasks: tuple[int, int, int] = (300, 100, 80)
    train_points: float = 0.5
    grid: tuple[int, float, float] = (14, 1e-5, 1e5)


def _clusters(w: list[float], x: list[float]) -> Callable[..., Clusters]:
    """Return a function that makes clusters with centres w (1, ..., 1) and x (1, ..., 1)."""
    return partial(Clusters, np.outer(w, np.ones(D)), np.outer(x, np.ones(D)), n=N)


PAPER_SETTINGS: dict[str, PaperSetting] = {
    "one-cluster": PaperSetting("One cluster", _clusters([4], [1])),
    "two-clusters-mean-4": PaperSetting("Two clusters, w_rho = 4", _clusters([8, 0], [1, -1])),
    "two-clusters-mean-0": PaperSetting("Two clusters, w_rho = 0", _clusters([4, -4], [1, -1])),
    "circle": PaperSetting("Circle", partial(Circle, radius=8.0, d=D, n=N), grid=(16, 1e-7, 1e7)),
}


def paper_environment(name: str, **options: Any) -> Clusters | Circle:
    """Return the environment of one of the paper's settings: d = 20, 20 points a task.

    Parameters
    ----------
    name : {"one-cluster", "two-clusters-mean-4", "two-clusters-mean-0", "circle"}
        The panel of Figure 1. All coordinates of a centre are equal. The centres are, in the order
        of the names: w = 4 and x = 1; w = 8, 0 and x = 1, -1; w = 4, -4 and x = 1, -1; and a circle
        of radius 8 around w = 0 with x = 1.
    **options
        Options of `Clusters` or `Circle` that replace the defaults, for what the paper does not
        specify: ``inputs`` (Gaussian for clusters, unit for the circle), ``snr``, ``noise``, ...

    Examples
    --------
    >>> from condmeta.environments import paper_environment
    >>> paper_environment("two-clusters-mean-4").variances(n=10)[:2]
    (660.0, 340.0)
    """
    if not isinstance(name, str) or name not in PAPER_SETTINGS:
        listed = ", ".join(map(repr, PAPER_SETTINGS))
        raise drawing.invalid("name", "paper_environment", f"one of {listed}", name)
    return PAPER_SETTINGS[name].make(**options)
