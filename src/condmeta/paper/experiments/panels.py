"""The six experiments of the paper, and the errors that its authors published with their code.

Where the paper is not specific, this module makes the choice; `docs/reproduction.md` gives the
reasons.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from condmeta.datasets import load_lenk, load_schools
from condmeta.errors import DataError
from condmeta.feature_maps import CircleMap, MeanFourier, MeanInput, MeanInputOutput, RandomFourier
from condmeta.learners.baselines import FixedBiasRegressor
from condmeta.learners.sgd import ConditionalSGDRegressor
from condmeta.paper.environments import PAPER_SETTINGS, paper_environment
from condmeta.paper.experiments.seed_tasks import Setting
from condmeta.tasks import TaskSet
from condmeta.typing import Environment, Scale

ITL, MEAN, UNCONDITIONAL, CONDITIONAL = "ITL", "mean", "unconditional", "conditional"
TRUE_MAP, RANDOM_FEATURES = "conditional, true map", "conditional, random features"
GRID = np.geomspace(1e-5, 1e5, 14)  # of the real data


class Published(NamedTuple):
    """An error that the authors published: mean and standard deviation over their 10 trials.

    `at` maps a number of training tasks to the mean error after them, where it is known.
    """

    mean: float
    std: float
    at: dict[int, float] = {}


class Panel(NamedTuple):
    """One experiment of the paper: the source of its tasks, its methods and its protocol.

    Attributes
    ----------
    title, figure : str
        The title, and the number of the figure in the paper.
    source : callable
        Returns the environment, or the TaskSet of real tasks.
    setting : Setting
        How tasks and points are split.
    grid : array
        Candidate values of lam and of meta_step.
    maps : dict of method -> feature map
        The conditional methods.
    published : dict of method -> Published
        The errors of the authors.
    is_real : bool
        Whether the tasks are real data, which may have to be downloaded.
    scale : {"none", "rows"}
        How the learners scale their inputs.
    """

    title: str
    figure: str
    source: Callable[[], Any]
    setting: Setting
    grid: np.ndarray
    maps: dict[str, Any]
    published: dict[str, Published]
    is_real: bool = False
    scale: Scale = "none"

    def methods(self, source: Environment | TaskSet, **options: Any) -> dict[str, Any]:
        """Return the methods by name; all get the `options` they have (inner, gradient_at, ...)."""
        shared = {"scale": self.scale, **options}
        plain = {key: value for key, value in shared.items() if key in ("scale", "inner", "loss")}
        methods = {ITL: FixedBiasRegressor(**plain)}
        if hasattr(source, "w_rho"):
            methods[MEAN] = FixedBiasRegressor(theta=source.w_rho, **plain)
        methods[UNCONDITIONAL] = ConditionalSGDRegressor(None, **shared)
        for name, feature_map in self.maps.items():
            methods[name] = ConditionalSGDRegressor(feature_map, **shared)
        return methods


def _synthetic(name: str, maps: dict, published: dict) -> Panel:
    paper = PAPER_SETTINGS[name]
    count, low, high = paper.grid
    setting, grid = Setting(paper.n_tasks, paper.train_points), np.geomspace(low, high, count)
    source = partial(paper_environment, name)
    return Panel(paper.title, "1", source, setting, grid, maps, published)


PANELS: dict[str, Panel] = {
    "one-cluster": _synthetic("one-cluster", {CONDITIONAL: MeanInput()}, {
        ITL: Published(27.25, 0.90),
        MEAN: Published(15.48, 0.36),
        UNCONDITIONAL: Published(15.57, 0.38, {10: 17.83, 30: 16.29, 100: 15.78}),
        CONDITIONAL: Published(16.04, 0.35, {10: 44.74, 30: 18.11, 100: 16.52}),
    }),
    "two-clusters-mean-4": _synthetic("two-clusters-mean-4", {CONDITIONAL: MeanInput()}, {
        ITL: Published(39.68, 1.34),
        MEAN: Published(30.75, 1.02),
        UNCONDITIONAL: Published(31.34, 1.47, {10: 36.88, 30: 34.86, 100: 32.19}),
        CONDITIONAL: Published(19.99, 0.87, {10: 41.41, 30: 33.84, 100: 23.08}),
    }),
    "two-clusters-mean-0": _synthetic("two-clusters-mean-0", {CONDITIONAL: MeanInput()}, {
        ITL: Published(27.65, 0.91),
        MEAN: Published(27.65, 0.91),
        UNCONDITIONAL: Published(27.72, 0.84, {10: 27.57, 30: 27.61, 100: 27.64}),
        CONDITIONAL: Published(15.90, 0.40, {10: 44.12, 30: 17.23, 100: 15.94}),
    }),
    "circle": _synthetic("circle", {
        TRUE_MAP: CircleMap(),
        RANDOM_FEATURES: RandomFourier(50, std=10.0),
    }, {
        ITL: Published(4.28, 0.27),
        MEAN: Published(4.28, 0.27),
        UNCONDITIONAL: Published(4.27, 0.25, {10: 4.22, 30: 4.30, 100: 4.29}),
        TRUE_MAP: Published(2.69, 0.11, {10: 3.52, 30: 3.14, 100: 2.76}),
        RANDOM_FEATURES: Published(3.02, 0.18, {10: 4.02, 30: 3.88, 100: 3.53}),
    }),
    "lenk": Panel(
        "Lenk: computer survey", "2", load_lenk, Setting((100, 40, 30), 16, "first"), GRID,
        {CONDITIONAL: MeanInputOutput()},
        {ITL: Published(3.56, 0.19), UNCONDITIONAL: Published(1.81, 0.10),
         CONDITIONAL: Published(1.49, 0.09)},
        is_real=True,
    ),
    "schools": Panel(
        "Schools: exam scores", "2", load_schools, Setting((70, 39, 30), 0.75), GRID,
        # The paper has only the random features; the authors' code appended the mean input.
        {CONDITIONAL: [MeanFourier(1000, std=100.0), MeanInput()]},
        {ITL: Published(10.11, 0.54), UNCONDITIONAL: Published(9.71, 0.48),
         CONDITIONAL: Published(9.27, 0.45)},
        is_real=True, scale="rows",
    ),
}  # fmt: skip


def get_panel(name: str) -> Panel:
    """Return an experiment of the paper by name.

    Examples
    --------
    >>> from condmeta.experiments import get_panel
    >>> get_panel("circle").setting.sizes
    (300, 100, 80)
    """
    if name not in PANELS:
        raise DataError(f"There is no experiment {name!r}. The paper has: {', '.join(PANELS)}.")
    return PANELS[name]
