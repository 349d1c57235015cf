"""Figures of results: learning curves, and final errors beside published ones (needs matplotlib).

Displays follow scikit-learn: `from_results` makes one, `plot(ax=None)` draws it and sets `ax_` and
`figure_`. Nothing here touches the global state of pyplot.
"""

from condmeta.plots.figures import curves_figure, published_figure
from condmeta.plots.final_errors import FinalErrorsDisplay
from condmeta.plots.learning_curve import LearningCurveDisplay
from condmeta.plots.save import save_figure

__all__ = [
    "FinalErrorsDisplay",
    "LearningCurveDisplay",
    "curves_figure",
    "published_figure",
    "save_figure",
]
