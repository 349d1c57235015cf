"""The paper's theory as functions of an environment, a sample of weights, or real tasks.

The code is in `condmeta.paper.theory`; this module is its public name.
"""

from condmeta.paper.theory import *  # noqa: F403
from condmeta.paper.theory import __all__  # noqa: F401
