"""What the file of a learner holds: its parameters, and one `Fitted`."""

from __future__ import annotations

from condmeta import persistence
from condmeta.engine import active_engine, instruction_set
from condmeta.errors import ModelFileError
from condmeta.fitted.first_format import fitted_of_parts
from condmeta.fitted.shared_model import require_storable


def storable(cls):
    """Let model files hold a learner; used as a class decorator."""
    return persistence.register(cls, export=_export, restore=_restore)


def _export(learner) -> dict:
    require_storable(learner.fitted_.predictor.shared)
    return {"params": learner.get_params(deep=False), "fitted": learner.fitted_}


def _restore(cls, parts: dict):
    """Return a learner from its parts, or say that they do not fit each other."""
    try:
        learner = cls(**parts["params"])
        fitted = parts["fitted"] if "fitted" in parts else fitted_of_parts(learner, parts)
        learner._model = fitted.check()
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise ModelFileError(
            f"The parts of the stored {cls.__name__} do not fit: {error}"
        ) from None
    return learner


def card(learner) -> dict:
    """Return what a reader of the file wants to know before opening it."""
    fitted = learner.fitted_
    predictor, columns, store = fitted.predictor, fitted.columns, fitted.tasks
    classes = [] if predictor.classes is None else predictor.classes
    return {
        "engine": active_engine(),
        "instruction_set": instruction_set(),
        "sizes": {
            "training_tasks": fitted.n_tasks,
            "kept_tasks": 0 if store is None else len(store),
            "features": columns.n_features,
            "side_features": len(fitted.reader.names),
        },
        "resumable": predictor.resumable and store is not None and store.state is not None,
        "schema": {
            "features": None if columns.names is None else list(columns.names),
            "task": columns.task_name,
            "side_columns": fitted.reader.columns,
            "classes": [str(label) for label in classes],
        },
        "settings": {name: repr(value) for name, value in learner.get_params(deep=False).items()},
    }
