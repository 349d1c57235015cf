"""What the file of a learner holds: its parameters, and one `Fitted`."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier

from condmeta import persistence
from condmeta.engine import active_engine, instruction_set
from condmeta.fitted.against_rest import AgainstRest
from condmeta.fitted.consistency import check_fitted
from condmeta.fitted.first_format import fitted_of_parts
from condmeta.fitted.kept_rows import KeptRows
from condmeta.fitted.shared_model import require_storable
from condmeta.inner.row_posterior import RowPosterior
from condmeta.learners.copies import with_fitted
from condmeta.learners.parameters import check_learner
from condmeta.losses import get_loss
from condmeta.meta.task_statistics import TaskStatistics
from condmeta.persistence.fields import ANY, InvalidFieldError, instance, mapping

MOST_JOBS = 1024


def storable(
    cls: Any = None, *, inner: Any = object, state: Any = (), info: Any = None, also: Any = None
):
    """Let model files hold a learner; used as a class decorator.

    Parameters
    ----------
    inner, state : classes that its inner algorithm and its state have in files
    info : dict of name -> Field, what `Fitted.info` must hold
    also : callable, ``also(learner, fitted)`` raises if the two do not fit
    """
    if cls is None:
        return lambda wrapped: storable(wrapped, inner=inner, state=state, info=info, also=also)

    def rule(stored: dict[str, Any], sizes: dict[str, int]) -> None:
        check_jobs(stored["params"])
        learner, whole = cls(**stored["params"]), stored["fitted"]
        check_learner(learner)
        if isinstance(whole, AgainstRest) and not learner._many_classes:
            raise InvalidFieldError("fitted", f"is none of {cls.__name__}")
        for fitted in whole.parts if isinstance(whole, AgainstRest) else [whole]:
            _check_kind(learner, fitted, inner, state)
            check_fitted(fitted, info or {})
            if also is not None:
                also(learner, fitted)

    fields = {"params": mapping(ANY), "fitted": instance("Fitted", "AgainstRest", n="n")}
    how = {"export": _export, "restore": _restore, "upgrade": _upgrade}
    return persistence.register(cls, **how, fields=fields, rule=rule)


def _export(learner: Any) -> dict[str, Any]:
    require_storable(learner.fitted_.predictor.shared)
    return {"params": learner.get_params(deep=False), "fitted": learner.fitted_}


def _upgrade(cls: Any, parts: dict[str, Any]) -> dict[str, Any]:
    if "public" not in parts:
        return parts
    fitted = fitted_of_parts(cls(**parts["params"]), parts)
    return {"params": parts["params"], "fitted": fitted}


def _restore(cls: Any, parts: dict[str, Any]):
    return with_fitted(cls(**parts["params"]), parts["fitted"])


def check_jobs(params: dict[str, Any]) -> None:
    """Refuse a number of threads that no one meant."""
    jobs = params.get("n_jobs")
    if isinstance(jobs, int) and abs(jobs) > MOST_JOBS:
        raise InvalidFieldError("params['n_jobs']", f"must be at most {MOST_JOBS}. Got {jobs}")


def _check_kind(learner: Any, fitted: Any, inner: Any, state: Any) -> None:
    """Raise if a value is not one that this class of learners makes."""
    predictor = fitted.predictor
    if not isinstance(predictor.inner, inner):
        raise InvalidFieldError("fitted.predictor.inner", f"is none of {type(learner).__name__}")
    if fitted.state is not None and not isinstance(fitted.state, state):
        raise InvalidFieldError("fitted.state", f"is none of {type(learner).__name__}")
    if is_classifier(learner) != (predictor.classes is not None):
        raise InvalidFieldError("fitted.predictor.classes", "must be kept by classifiers alone")
    theirs = getattr(getattr(predictor.inner, "loss", None), "name", None)
    if theirs is not None and theirs != getattr(get_loss(learner.loss), "name", None):
        raise InvalidFieldError("params['loss']", f"must be that of the inner algorithm, {theirs}")
    if getattr(fitted.state, "Phi", None) is not None and not fitted.reader.reads_points:
        raise InvalidFieldError("fitted.reader.map", "must read points, as their features are kept")
    if predictor.weighs != learner._weighs:
        raise InvalidFieldError("fitted.predictor.weighs", f"must be {learner._weighs}")


def card(learner: Any) -> dict[str, Any]:
    """Return what a reader of the file wants to know before opening it."""
    fitted = learner.fitted_
    predictor, columns, store = fitted.predictor, fitted.columns, fitted.tasks
    classes = [] if predictor.classes is None else predictor.classes
    kept = isinstance(fitted.state, TaskStatistics | KeptRows)
    if not isinstance(predictor.inner, RowPosterior):
        kept |= getattr(store, "state", None) is not None
    return {
        "engine": active_engine(),
        "instruction_set": instruction_set(),
        "sizes": {
            "training_tasks": fitted.n_tasks,
            "kept_tasks": 0 if store is None else len(store),
            "features": columns.n_features,
            "side_features": len(fitted.reader.names),
        },
        "resumable": predictor.resumable and kept,
        "schema": {
            "features": None if columns.names is None else list(columns.names),
            "task": columns.task_name,
            "side_columns": fitted.reader.columns,
            "classes": [str(label) for label in classes],
        },
        "settings": {name: repr(value) for name, value in learner.get_params(deep=False).items()},
    }
