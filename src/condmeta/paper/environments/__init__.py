"""Environments that draw random tasks with a known best conditioning function.

An environment is any object with a method ``sample(n_tasks, random_state)`` that returns a
`TaskSet`. The environments here, `Clusters`, `Circle` and `Latent`, also have ``tau``, ``w_rho``
and ``variances()``: the best conditioning function, the mean weights and three variances; and
``sample_points``, which draws further points of known tasks.
"""

from condmeta.paper.environments.circle import Circle
from condmeta.paper.environments.clusters import Clusters
from condmeta.paper.environments.latent import Latent
from condmeta.paper.environments.sampled import SampledTaskSet
from condmeta.paper.environments.settings import PAPER_SETTINGS, PaperSetting, paper_environment
from condmeta.paper.environments.variances import Variances

__all__ = [
    "PAPER_SETTINGS", "Circle", "Clusters", "Latent", "PaperSetting", "SampledTaskSet", "Variances",
    "paper_environment",
]  # fmt: skip
