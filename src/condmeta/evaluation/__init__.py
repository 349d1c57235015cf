"""Tools that judge a learner on tasks that it has not seen."""

from condmeta.evaluation.advantage import Advantage, advantage
from condmeta.evaluation.cross_validate import cross_validate_tasks

__all__ = ["Advantage", "advantage", "cross_validate_tasks"]
