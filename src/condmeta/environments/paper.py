"""The four synthetic settings of the paper, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from condmeta.environments import drawing
from condmeta.environments.circle import Circle
from condmeta.environments.clusters import Clusters

D = 20
N_TOTAL = 20


class PaperSetting(NamedTuple):
    """Hold a setting of the paper: its environment and how its tasks and points are used.

    Attributes
    ----------
    title : str
    make : callable
        Gives the environment; options of it can be overridden by name.
    n_tasks : (int, int, int)
        Training, validation and test tasks, 480 in all.
    train_points : float
        The fraction of a task's points that trains; the rest tests.
    grid : (int, float, float)
        Number, least and greatest of the candidate values of both lam and meta_step,
        logarithmically spaced.

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


def _one_cluster(**options: Any) -> Clusters:
    return _clusters([4.0], [1.0], options)


def _two_clusters_mean_4(**options: Any) -> Clusters:
    return _clusters([8.0, 0.0], [1.0, -1.0], options)


def _two_clusters_mean_0(**options: Any) -> Clusters:
    return _clusters([4.0, -4.0], [1.0, -1.0], options)


def _clusters(w: list[float], x: list[float], options: dict[str, Any]) -> Clusters:
    """Return clusters whose centres have all their coordinates the same."""
    w_centers, x_centers = (np.outer(values, np.ones(D)) for values in (w, x))
    return Clusters(w_centers, x_centers, **({"n": N_TOTAL} | options))


def _circle(**options: Any) -> Circle:
    return Circle(**({"radius": 8.0, "d": D, "n": N_TOTAL} | options))


PAPER_SETTINGS: dict[str, PaperSetting] = {
    "one-cluster": PaperSetting("One cluster", _one_cluster),
    "two-clusters-mean-4": PaperSetting("Two clusters, w_rho = 4", _two_clusters_mean_4),
    "two-clusters-mean-0": PaperSetting("Two clusters, w_rho = 0", _two_clusters_mean_0),
    "circle": PaperSetting("Circle", _circle, grid=(16, 1e-7, 1e7)),
}


def paper_environment(name: str, **options: Any) -> Clusters | Circle:
    """Return the environment of one of the paper's settings: d = 20, 20 points a task.

    Parameters
    ----------
    name : {"one-cluster", "two-clusters-mean-4", "two-clusters-mean-0", "circle"}
        Panels of Figure 1. Centres have all their coordinates the same: w = 4 and x = 1;
        w = 8, 0 and x = 1, -1; w = 4, -4 and x = 1, -1; radius 8 around 0 and x = 1.
    **options
        Options of `Clusters` or `Circle` to change, for what the text leaves open: ``inputs``
        (Gaussian for clusters, unit for the circle), ``snr`` or ``noise``, ``n``, ...

    Examples
    --------
    >>> from condmeta.environments import paper_environment
    >>> paper_environment("two-clusters-mean-4").variances(n=10)[:2]
    (660.0, 340.0)
    """
    if not isinstance(name, str) or name not in PAPER_SETTINGS:
        listed = ", ".join(map(repr, PAPER_SETTINGS))
        raise drawing.wrong("name", "paper_environment", f"one of {listed}", name)
    return PAPER_SETTINGS[name].make(**options)
