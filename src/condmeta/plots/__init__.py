"""Figures of models and results (needs matplotlib).

Displays follow scikit-learn: `from_...` makes one of a fitted model or a result, `plot(ax=None)`
draws it, sets `ax_` and `figure_` and returns it; `describe()` says in words what is drawn. Nothing
here touches the global state of pyplot.
"""

from condmeta.plots.advantage import AdvantageDisplay
from condmeta.plots.figures import curves_figure, published_figure
from condmeta.plots.final_errors import FinalErrorsDisplay
from condmeta.plots.learning_curve import LearningCurveDisplay
from condmeta.plots.save import save_figure
from condmeta.plots.shot_curve import ShotCurveDisplay

__all__ = [
    "AdvantageDisplay",
    "FinalErrorsDisplay",
    "LearningCurveDisplay",
    "ShotCurveDisplay",
    "curves_figure",
    "published_figure",
    "save_figure",
]
