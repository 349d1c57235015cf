"""Displays: each draws one result on matplotlib axes.

The code is in `condmeta.display.plots`; this module is its public name.
"""

from condmeta.display.plots import *  # noqa: F403
from condmeta.display.plots import __all__  # noqa: F401
