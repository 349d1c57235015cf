"""Feature maps Phi: they describe a task by k numbers.

Maps of the side table have `fit` and `transform`, like scikit-learn's transformers, which can be
used in their place; they work for a task without points. Maps of points have ``reads_points =
True`` and ``transform_tasks(X, y, offsets)``; they need at least one point.
"""

from condmeta.feature_maps.composed import ComposedMap
from condmeta.feature_maps.point_maps import MeanFourier, MeanInput, MeanInputOutput
from condmeta.feature_maps.table_maps import CircleMap, Identity, RandomFourier

__all__ = ["CircleMap", "ComposedMap", "Identity", "MeanFourier", "MeanInput", "MeanInputOutput"]
__all__ += ["RandomFourier"]
