"""The paper's protocol and experiments, for anyone's methods and environments."""

from condmeta.experiments.claims import CLAIMS
from condmeta.experiments.paper import PANELS, Panel, Published, get_panel
from condmeta.experiments.protocol import Setting, run
from condmeta.experiments.readings import Readings
from condmeta.experiments.reproduction import reproduce
from condmeta.experiments.results import Curve, Results

__all__ = [
    "CLAIMS",
    "PANELS",
    "Curve",
    "Panel",
    "Published",
    "Readings",
    "Results",
    "Setting",
    "get_panel",
    "reproduce",
    "run",
]
