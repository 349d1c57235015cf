"""What the paper's text leaves open, as named options; `docs/reproduction.md` gives the reasons."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from condmeta.environments import PAPER_SETTINGS, paper_environment
from condmeta.errors import DataError
from condmeta.experiments.paper import CONDITIONAL, RANDOM_FEATURES, Panel, get_panel
from condmeta.feature_maps import MeanFourier, MeanInput, RandomFourier

SCHOOLS_MAPS = {
    "features-and-mean": lambda: [MeanFourier(1000, std=100.0), MeanInput()],
    "features": lambda: MeanFourier(1000, std=100.0),
    "features-std-1": lambda: MeanFourier(1000, std=1.0),
    "mean": lambda: MeanInput(),
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
    """How the open passages are read; the defaults are the readings documented.

    Parameters
    ----------
    inner : {"online", "batch"}
        The inner algorithm; the paper's figures are online.
    inputs : {"paper", "gaussian", "unit"}
        Inputs of synthetic tasks; "paper" is Gaussian for clusters and unit for the circle.
    noise : float or None
        Standard deviation of the label noise of synthetic tasks; None is that of a task's own
        clean labels, a signal-to-noise ratio of 1 within each task.
    gradient_at : {"current", "average"}
        Algorithm 1 as printed, or as in the authors' released code.
    averaging : {"uniform", "linear"}
        Weights of the iterates in the map that is returned.
    scale : {"paper", "none", "rows"}
        Whether rows are scaled to norm 1; "paper" is rows on Schools alone.
    train_on : {"support", "all"}
        Whether training tasks show their support points alone, or all their points.
    circle_std : float
        Standard deviation of the frequencies of the circle's random features.
    schools_map : {"features-and-mean", "features", "features-std-1", "mean"}
        Side information of a school: random features (k = 1000, std 100) and the mean input, the
        random features alone as the text has it, random features of std 1, the mean input alone.

    Examples
    --------
    >>> from condmeta.experiments.readings import Readings
    >>> Readings(scale="none").panel("schools").scale
    'none'
    """

    inner: str = "online"
    inputs: str = "paper"
    noise: float | None = None
    gradient_at: str = "current"
    averaging: str = "uniform"
    scale: str = "paper"
    train_on: str = "support"
    circle_std: float = 10.0
    schools_map: str = "features-and-mean"

    def __post_init__(self):
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                listed = ", ".join(map(repr, allowed))
                raise DataError(
                    f"The {name!r} parameter of Readings must be one of {listed}. "
                    f"Got {getattr(self, name)!r} instead."
                )
        if not 0 < self.circle_std < float("inf"):
            raise DataError(
                "The 'circle_std' parameter of Readings must be a float in (0, inf). "
                f"Got {self.circle_std!r} instead."
            )
        if self.noise is not None and not 0 <= self.noise < float("inf"):
            raise DataError(
                "The 'noise' parameter of Readings must be None or a float in [0, inf). "
                f"Got {self.noise!r} instead."
            )

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
            panel = panel._replace(maps={CONDITIONAL: SCHOOLS_MAPS[self.schools_map]()})
        if name in PAPER_SETTINGS:
            changed: dict[str, Any] = {} if self.inputs == "paper" else {"inputs": self.inputs}
            if self.noise is not None:
                changed["noise"] = self.noise
            panel = panel._replace(source=lambda: paper_environment(name, **changed))
        return panel

    def methods(self, panel: Panel, source: Any) -> dict[str, Any]:
        """Return the competitors of a panel under these readings."""
        return panel.methods(
            source, inner=self.inner, gradient_at=self.gradient_at, averaging=self.averaging
        )

    def options(self) -> dict[str, Any]:
        """Return the readings as a dict, for provenance."""
        return asdict(self)
