"""Options for what the paper does not specify; `docs/reproduction.md` explains the defaults."""

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

from condmeta.feature_maps import MeanFourier, MeanInput, RandomFourier
from condmeta.paper.environments import PAPER_SETTINGS, drawing, paper_environment
from condmeta.paper.experiments.panels import CONDITIONAL, RANDOM_FEATURES, Panel, get_panel
from condmeta.tasks import TaskSet
from condmeta.typing import Averaging, Environment, GradientAt, InnerName, Inputs, Scale

SCHOOLS_MAPS = {
    "features-and-mean": [MeanFourier(1000, std=100.0), MeanInput()],
    "features": MeanFourier(1000, std=100.0),
    "features-std-1": MeanFourier(1000, std=1.0),
    "mean": MeanInput(),
}
CHOICES = {
    "inner": ("online", "batch"),
    "inputs": ("paper", "gaussian", "unit"),
    "gradient_at": ("current", "average"),
    "averaging": ("uniform", "linear"),
    "scale": ("paper", "none", "rows"),
    "train_on": ("support", "all"),
    "schools_map": tuple(SCHOOLS_MAPS),
}


@dataclass(frozen=True)
class Readings:
    """Hold one interpretation of the passages in which the paper is not specific.

    The defaults are the interpretation behind the published tables of this package.

    Parameters
    ----------
    inner : {"online", "batch"}
        The inner algorithm; the paper's figures use online.
    inputs : {"paper", "gaussian", "unit"}
        Inputs of synthetic tasks; "paper" means Gaussian for clusters and unit for the circle.
    noise : float or None
        Standard deviation of the label noise of synthetic tasks. None means the standard deviation
        of a task's own noise-free labels: a signal-to-noise ratio of 1 within each task.
    gradient_at : {"current", "average"}
        Algorithm 1 as printed, or as in the authors' released code.
    averaging : {"uniform", "linear"}
        Weights of the iterates in the learned map.
    scale : {"paper", "none", "rows"}
        Whether rows are scaled to norm 1; "paper" means "rows" for Schools and "none" otherwise.
    train_on : {"support", "all"}
        Whether training tasks use only their support points, or all their points.
    circle_std : float
        Standard deviation of the frequencies of the circle's random features.
    schools_map : {"features-and-mean", "features", "features-std-1", "mean"}
        Side information of a school: random features (k = 1000, std 100) and the mean input; only
        these random features, as in the paper; only random features with std 1; only the mean
        input.

    Examples
    --------
    >>> from condmeta.experiments import Readings
    >>> Readings(scale="none").panel("schools").scale
    'none'
    """

    inner: InnerName = "online"
    inputs: Inputs | Literal["paper"] = "paper"
    noise: float | None = None
    gradient_at: GradientAt = "current"
    averaging: Averaging = "uniform"
    scale: Scale | Literal["paper"] = "paper"
    train_on: str = "support"
    circle_std: float = 10.0
    schools_map: str = "features-and-mean"

    def __post_init__(self):
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                wanted = f"one of {', '.join(map(repr, allowed))}"
                raise drawing.invalid(name, "Readings", wanted, getattr(self, name))
        drawing.check_spread(self.circle_std, "circle_std", "Readings")
        if self.noise is not None:
            drawing.check_spread(self.noise, "noise", "Readings", zero=True)

    def panel(self, name: str) -> Panel:
        """Return an experiment of the paper under these readings."""
        panel = get_panel(name)
        panel = panel._replace(setting=panel.setting._replace(train_on=self.train_on))
        if self.scale != "paper":
            panel = panel._replace(scale=self.scale)
        if name == "circle":
            random = {RANDOM_FEATURES: RandomFourier(50, std=self.circle_std)}
            panel = panel._replace(maps=panel.maps | random)
        if name == "schools":
            panel = panel._replace(maps={CONDITIONAL: SCHOOLS_MAPS[self.schools_map]})
        if name in PAPER_SETTINGS:
            inputs = {} if self.inputs == "paper" else {"inputs": self.inputs}
            source = partial(paper_environment, name, noise=self.noise, **inputs)
            panel = panel._replace(source=source)
        return panel

    def methods(self, panel: Panel, source: Environment | TaskSet) -> dict[str, Any]:
        """Return the methods of a panel under these readings."""
        return panel.methods(
            source, inner=self.inner, gradient_at=self.gradient_at, averaging=self.averaging
        )

    def options(self) -> dict[str, Any]:
        """Return the readings as a dict, for provenance."""
        return asdict(self)
