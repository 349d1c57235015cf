"""The six experiments of the paper, and the numbers that its authors published with their code.

What the text leaves open is decided here, once; `docs/reproduction.md` gives the reasons.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from condmeta.datasets import load_lenk, load_schools
from condmeta.environments import PAPER_SETTINGS, paper_environment
from condmeta.errors import DataError
from condmeta.estimators import ConditionalSGDRegressor, FixedBiasRegressor
from condmeta.experiments.protocol import Setting
from condmeta.feature_maps import (
    CircleMap,
    MeanFourier,
    MeanInput,
    MeanInputOutput,
    RandomFourier,
)

ITL, MEAN, UNCONDITIONAL, CONDITIONAL = "ITL", "mean", "unconditional", "conditional"
TRUE_MAP, RANDOM_FEATURES = "conditional, true map", "conditional, random features"


class Published(NamedTuple):
    """An error that the authors published: mean and standard deviation over their 10 trials.

    `at` holds the means after some numbers of training tasks, where they are known.
    """

    mean: float
    std: float
    at: dict[int, float] = {}


class Panel(NamedTuple):
    """One experiment: where the tasks come from, who competes, how they are judged.

    maps : dict of method -> feature map, for the conditional methods
    scale : "none" or "rows", how a learner scales its inputs
    """

    title: str
    figure: str
    source: Callable[[], Any]
    setting: Setting
    grid: np.ndarray
    maps: dict[str, Any]
    published: dict[str, Published]
    is_real: bool = False
    scale: str = "none"

    def methods(self, source, **options) -> dict[str, Any]:
        """Return the competitors; `options` go to all of them (inner, gradient_at, ...)."""
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
    return Panel(
        title=paper.title,
        figure="1",
        source=lambda: paper_environment(name),
        setting=Setting(paper.n_tasks, paper.train_points),
        grid=np.geomspace(low, high, count),
        maps=maps,
        published=published,
    )


PANELS: dict[str, Panel] = {
    "one-cluster": _synthetic(
        "one-cluster",
        {CONDITIONAL: MeanInput()},
        {
            ITL: Published(27.25, 0.90),
            MEAN: Published(15.48, 0.36),
            UNCONDITIONAL: Published(15.57, 0.38, {10: 17.83, 30: 16.29, 100: 15.78}),
            CONDITIONAL: Published(16.04, 0.35, {10: 44.74, 30: 18.11, 100: 16.52}),
        },
    ),
    "two-clusters-mean-4": _synthetic(
        "two-clusters-mean-4",
        {CONDITIONAL: MeanInput()},
        {
            ITL: Published(39.68, 1.34),
            MEAN: Published(30.75, 1.02),
            UNCONDITIONAL: Published(31.34, 1.47, {10: 36.88, 30: 34.86, 100: 32.19}),
            CONDITIONAL: Published(19.99, 0.87, {10: 41.41, 30: 33.84, 100: 23.08}),
        },
    ),
    "two-clusters-mean-0": _synthetic(
        "two-clusters-mean-0",
        {CONDITIONAL: MeanInput()},
        {
            ITL: Published(27.65, 0.91),
            MEAN: Published(27.65, 0.91),
            UNCONDITIONAL: Published(27.72, 0.84, {10: 27.57, 30: 27.61, 100: 27.64}),
            CONDITIONAL: Published(15.90, 0.40, {10: 44.12, 30: 17.23, 100: 15.94}),
        },
    ),
    "circle": _synthetic(
        "circle",
        {TRUE_MAP: CircleMap(), RANDOM_FEATURES: RandomFourier(50, std=10.0)},
        {
            ITL: Published(4.28, 0.27),
            MEAN: Published(4.28, 0.27),
            UNCONDITIONAL: Published(4.27, 0.25, {10: 4.22, 30: 4.30, 100: 4.29}),
            TRUE_MAP: Published(2.69, 0.11, {10: 3.52, 30: 3.14, 100: 2.76}),
            RANDOM_FEATURES: Published(3.02, 0.18, {10: 4.02, 30: 3.88, 100: 3.53}),
        },
    ),
    "lenk": Panel(
        title="Lenk: computer survey",
        figure="2",
        source=load_lenk,
        setting=Setting((100, 40, 30), 16, "first"),
        grid=np.geomspace(1e-5, 1e5, 14),
        maps={CONDITIONAL: MeanInputOutput()},
        published={
            ITL: Published(3.56, 0.19),
            UNCONDITIONAL: Published(1.81, 0.10),
            CONDITIONAL: Published(1.49, 0.09),
        },
        is_real=True,
    ),
    "schools": Panel(
        title="Schools: exam scores",
        figure="2",
        source=load_schools,
        setting=Setting((70, 39, 30), 0.75),
        grid=np.geomspace(1e-5, 1e5, 14),
        # The text has the random features alone; the authors' code appended the mean input.
        maps={CONDITIONAL: [MeanFourier(1000, std=100.0), MeanInput()]},
        published={
            ITL: Published(10.11, 0.54),
            UNCONDITIONAL: Published(9.71, 0.48),
            CONDITIONAL: Published(9.27, 0.45),
        },
        is_real=True,
        scale="rows",
    ),
}


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
