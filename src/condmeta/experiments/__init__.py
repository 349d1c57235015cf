"""The paper's protocol and experiments, for anyone's methods and environments."""

from condmeta.experiments.paper import PANELS, Panel, Published, get_panel
from condmeta.experiments.protocol import Setting, run
from condmeta.experiments.results import Curve, Results

__all__ = ["PANELS", "Curve", "Panel", "Published", "Results", "Setting", "get_panel", "run"]
