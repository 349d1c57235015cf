"""The paper's protocol and experiments, for any methods and environments.

The code is in `condmeta.paper.experiments`; this module is its public name.
"""

from condmeta.paper.experiments import *  # noqa: F403
from condmeta.paper.experiments import __all__  # noqa: F401
