"""The learner of a table model: make it, look inside."""

from typing import Any

from sklearn.base import clone

from condmeta.errors import DataError
from condmeta.evaluation import Calibrated
from condmeta.learners.count import ConditionalCount
from condmeta.learners.labels import kind_of
from condmeta.learners.logistic import ConditionalLogistic
from condmeta.learners.ordinal import ConditionalOrdinal
from condmeta.learners.ridge import ConditionalRidge

DEFAULTS = {
    "number": ConditionalRidge, "count": ConditionalCount, "class": ConditionalLogistic,
    "ordered": ConditionalOrdinal,
}  # fmt: skip


def kind_of_learner(learner: Any) -> str | None:
    """Return what a learner predicts (see `tables.values.Target`); None if there is none."""
    if learner is None:
        return None
    return "ordered" if isinstance(learner, ConditionalOrdinal) else kind_of(learner)


def make_learner(learner: Any, kind: str, missing_side: str) -> Any:
    """Return an unfitted copy of a learner, or the default for what the target holds.

    The labels of ordered classes are their numbers, so that their order is known.
    """
    learner = DEFAULTS[kind]() if learner is None else clone(learner)
    if kind == "ordered":
        learner.set_params(classes=None)
    if missing_side != "error" and "missing_side" in learner.get_params():
        learner.set_params(missing_side=missing_side)
    return learner


def uncalibrated(learner: Any) -> Any:
    """Return the learner itself, without its calibration."""
    return learner.model if isinstance(learner, Calibrated) else learner


def known_ids(learner: Any) -> list[Any]:
    """Return the ids of the tasks that a fitted learner has a model of."""
    learner = uncalibrated(learner)
    part = next(iter(getattr(learner, "learners_", {"": learner}).values()))
    return [] if part.fitted_.tasks is None else part.fitted_.tasks.ids.tolist()


def require_resumable(learner: Any) -> None:
    """Refuse a learner that cannot add rows to its tasks."""
    learner = uncalibrated(learner)
    for part in getattr(learner, "learners_", {"": learner}).values():
        if not part.fitted_.predictor.resumable:
            raise DataError(
                f"{type(part).__name__} cannot add rows to its tasks: fit the model again with "
                "all rows, or estimate the tasks with adapt, from all their rows."
            )
