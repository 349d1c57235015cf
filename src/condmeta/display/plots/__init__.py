"""Figures of models and results (needs matplotlib).

Displays follow scikit-learn: `from_...` makes a display from a fitted model or a result;
`plot(ax=None)` draws it, sets `ax_` and `figure_` and returns the display; `describe()` describes
the figure in words. The global state of pyplot is never changed.
"""

from condmeta.display.plots.advantage import AdvantageDisplay
from condmeta.display.plots.canvas import save_figure
from condmeta.display.plots.coverage import CoverageDisplay
from condmeta.display.plots.figures import curves_figure, published_figure
from condmeta.display.plots.final_errors import FinalErrorsDisplay
from condmeta.display.plots.learning_curve import LearningCurveDisplay
from condmeta.display.plots.shot_curve import ShotCurveDisplay
from condmeta.display.plots.shrinkage import ShrinkageDisplay
from condmeta.display.plots.side_map import MapDisplay
from condmeta.display.plots.task_map import TaskMapDisplay

__all__ = [
    "AdvantageDisplay", "CoverageDisplay", "FinalErrorsDisplay", "LearningCurveDisplay",
    "MapDisplay", "ShotCurveDisplay", "ShrinkageDisplay", "TaskMapDisplay", "curves_figure",
    "published_figure", "save_figure",
]  # fmt: skip
