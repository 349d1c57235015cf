"""Environments that draw random tasks with known weights.

The code is in `condmeta.paper.environments`; this module is its public name.
"""

from condmeta.paper.environments import *  # noqa: F403
from condmeta.paper.environments import __all__  # noqa: F401
