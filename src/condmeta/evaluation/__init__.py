"""Tools that judge a learner on tasks that it has not seen."""

from condmeta.evaluation.advantage import Advantage, advantage
from condmeta.evaluation.calibrate import Calibrated, calibrate
from condmeta.evaluation.check import CheckReport, check
from condmeta.evaluation.compare import compare
from condmeta.evaluation.comparison import Comparison
from condmeta.evaluation.cross_validate import cross_validate_tasks
from condmeta.evaluation.explain import explain
from condmeta.evaluation.explanation import Explanation

__all__ = [
    "Advantage", "Calibrated", "CheckReport", "Comparison", "Explanation", "advantage",
    "calibrate", "check", "compare", "cross_validate_tasks", "explain",
]  # fmt: skip
