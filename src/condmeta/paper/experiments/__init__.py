"""The paper's protocol and experiments, for any methods and environments."""

from condmeta.paper.experiments import claims
from condmeta.paper.experiments.claims import CLAIMS
from condmeta.paper.experiments.page import write_report
from condmeta.paper.experiments.panels import PANELS, Panel, Published, get_panel
from condmeta.paper.experiments.protocol import run
from condmeta.paper.experiments.readings import Readings
from condmeta.paper.experiments.reproduction import reproduce
from condmeta.paper.experiments.results import Curve, Results
from condmeta.paper.experiments.seed_tasks import Setting

__all__ = [
    "CLAIMS", "PANELS", "Curve", "Panel", "Published", "Readings", "Results", "Setting", "claims",
    "get_panel", "reproduce", "run", "write_report",
]  # fmt: skip
