"""Random environments of tasks whose best conditioning function is known: clusters and circle.

An environment is anything with ``sample(n_tasks, random_state)`` that returns a `TaskSet`; those
here also know ``tau``, ``w_rho`` and ``variances()`` in closed form.
"""

from condmeta.environments.circle import Circle
from condmeta.environments.clusters import Clusters
from condmeta.environments.paper import PAPER_SETTINGS, PaperSetting, paper_environment
from condmeta.environments.sampled import SampledTaskSet
from condmeta.environments.variances import Variances

__all__ = [
    "PAPER_SETTINGS",
    "Circle",
    "Clusters",
    "PaperSetting",
    "SampledTaskSet",
    "Variances",
    "paper_environment",
]
