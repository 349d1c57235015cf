"""Figures of models and results (needs matplotlib).

Displays follow scikit-learn: `from_...` makes one of a fitted model or a result, `plot(ax=None)`
draws it, sets `ax_` and `figure_` and returns it; `describe()` says in words what is drawn. Nothing
here touches the global state of pyplot.
"""

from condmeta.plots.advantage import AdvantageDisplay
from condmeta.plots.coverage import CoverageDisplay
from condmeta.plots.figures import curves_figure, published_figure
from condmeta.plots.final_errors import FinalErrorsDisplay
from condmeta.plots.learning_curve import LearningCurveDisplay
from condmeta.plots.save import save_figure
from condmeta.plots.shot_curve import ShotCurveDisplay
from condmeta.plots.shrinkage import ShrinkageDisplay
from condmeta.plots.side_map import MapDisplay
from condmeta.plots.task_map import TaskMapDisplay

__all__ = [
    "AdvantageDisplay",
    "CoverageDisplay",
    "FinalErrorsDisplay",
    "LearningCurveDisplay",
    "MapDisplay",
    "ShotCurveDisplay",
    "ShrinkageDisplay",
    "TaskMapDisplay",
    "curves_figure",
    "published_figure",
    "save_figure",
]
