"""What the file of a table model holds, and its card."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import clone

from condmeta import persistence
from condmeta.errors import DataError, ModelFileError
from condmeta.evaluation import Calibrated

CHOSEN = ("metric_", "noise_", "kappa_", "lam_", "meta_step_", "s2_")
PARAMETERS = (
    "task", "target", "features", "exclude", "side", "side_key", "missing", "missing_side",
    "intervals", "order",
)  # fmt: skip


def core(learner: Any) -> Any:
    """Return the learner within, without its calibration."""
    return learner.model if isinstance(learner, Calibrated) else learner


def require_resumable(learner: Any) -> None:
    """Say so where a learner cannot take further rows in."""
    inner = core(learner)
    for part in getattr(inner, "_learners", {"": inner}).values():
        if not part._head.resumable:
            raise DataError(
                f"{type(part).__name__} cannot take further rows in: fit the model again with all "
                "rows, or solve tasks from their own rows with adapt."
            )


def about(model: Any) -> dict[str, Any]:
    """Return the card of a table model, without what a file adds by itself."""
    learner = core(model.learner_)
    card = model.learner_.card()
    chosen = {n.rstrip("_"): getattr(learner, n) for n in CHOSEN if hasattr(learner, n)}
    return card | {
        "learner": type(learner).__name__,
        "sizes": card["sizes"] | {"rows": model.n_rows_},
        "schema": model.schema_.describe(),
        "encoded_features": model.schema_.feature_names,
        "side_features": list(getattr(learner, "side_features_", [])),
        "chosen": {name: _plain(value) for name, value in chosen.items()},
    }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def save(model: Any, path: Any, tasks: bool, resume: bool) -> None:
    """Write a table model (see `TableModel.save`)."""
    slim = copy.copy(model)
    slim.learner_ = model.learner_.slim(tasks, resume)
    persistence.write_model(path, slim, card=about(slim))


def export(model: Any) -> dict[str, Any]:
    """Return the parts of a table model."""
    parts = {name: getattr(model, name) for name in PARAMETERS}
    return {"params": parts} | {n: getattr(model, n) for n in ("learner_", "schema_", "n_rows_")}


def restore(cls: type, state: dict[str, Any]) -> Any:
    """Build a table model from its parts."""
    try:
        learner = state["learner_"]
        model = cls(clone(core(learner)), **state["params"])
        model.learner_, model.schema_ = learner, state["schema_"]
        model.n_rows_ = state["n_rows_"]
        width, names = core(learner).n_features_in_, model.schema_.feature_names
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ModelFileError(f"The parts of the stored TableModel do not fit: {error}") from None
    if width != len(names):
        raise ModelFileError(
            f"The parts of the stored TableModel do not fit: {len(names)} features for a learner "
            f"of {width}."
        )
    return model


def register(cls: type) -> None:
    """Let model files hold table models."""
    persistence.register(cls, export=export, restore=restore)
