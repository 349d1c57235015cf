"""What the file of an Auto learner holds: its parameters, and one `Chosen`."""

from __future__ import annotations

from typing import Any

import numpy as np

from condmeta import persistence
from condmeta.learners.auto_choice import Chosen, no_lines
from condmeta.learners.copies import with_fitted
from condmeta.learners.model_file import check_jobs
from condmeta.learners.parameters import check_parameters
from condmeta.persistence.fields import (
    ANY,
    FLAG,
    TEXT,
    InvalidFieldError,
    floats,
    instance,
    integers,
    labels,
    mapping,
    maybe,
    number,
    optional,
    record,
    sequence,
)

CHOSEN = record(
    {
        "candidates": sequence(TEXT, "c", distinct=True), "shots": integers("s"),
        "errors": floats("s c", nan=True), "weights": floats("s c"),
        "task_errors": maybe(floats("s 2", nan=True)), "report": TEXT,
        "learners": mapping(instance()),
        "columns": instance("InputColumns", n="n"), "n_tasks": number(low=0, whole=True),
        "classes": maybe(labels("k")), "lines": floats("s 2"), "offset": optional(FLAG),
        "least": optional(number(infinite=True)),
    }
)  # fmt: skip


def storable(cls: Any):
    """Let model files hold an Auto learner; used as a class decorator."""
    how = {"export": _export, "restore": _restore, "upgrade": _upgrade}
    fields = {"params": mapping(ANY), "chosen": CHOSEN}
    return persistence.register(cls, **how, fields=fields, rule=_check_choice)


def _export(auto: Any) -> dict[str, Any]:
    return {"params": auto.get_params(deep=False), "chosen": auto.chosen_._asdict()}


def _upgrade(cls: Any, parts: dict[str, Any]) -> dict[str, Any]:
    params = dict(parts["params"])
    if "support" in params:  # the name of `order` in files of the first format
        params["order"] = params.pop("support")
    chosen = _chosen_of_parts(parts) if "public" in parts else dict(parts["chosen"])
    chosen.setdefault("lines", no_lines(len(chosen["shots"])))
    return {"params": params, "chosen": chosen}


def _restore(cls: Any, parts: dict[str, Any]):
    auto = cls(**parts["params"])
    check_parameters(auto)
    return with_fitted(auto, Chosen(**parts["chosen"]))


def _check_choice(state: dict[str, Any], sizes: dict[str, int]) -> None:
    """Raise if the learners are not the candidates that have a weight."""
    check_jobs(state["params"])
    chosen = Chosen(**state["chosen"])
    shots = chosen.shots
    if not len(shots) or (np.diff(shots) <= 0).any() or shots[0] < 0:
        raise InvalidFieldError("chosen['shots']", "must rise from 0 or more")
    if not chosen.learners or not set(chosen.learners) <= set(chosen.candidates):
        raise InvalidFieldError("chosen['learners']", "must be some of the candidates")
    for name, learner in chosen.learners.items():
        if not hasattr(learner, "fitted_") or learner.n_features_in_ != sizes["n"]:
            raise InvalidFieldError(f"chosen['learners'][{name!r}]", "must be a learner like it")
        classes = learner.fitted_.predictor.classes
        same = (classes is None) == (chosen.classes is None)
        if not same or (classes is not None and classes.tolist() != chosen.classes.tolist()):
            raise InvalidFieldError("chosen['classes']", "must be those of the learners")


def _chosen_of_parts(parts: dict[str, Any]) -> dict[str, Any]:
    """Return the value of an Auto learner from a file of the first format."""
    public, learners = parts["public"], dict(parts["learners"])
    names = "candidates", "shots", "errors", "weights", "task_errors", "report", "n_tasks"
    first = next(iter(learners.values())).fitted_
    return {name: public[f"{name}_"] for name in names} | {
        "learners": learners,
        "columns": first.columns,
        "classes": public.get("classes_"),
    }
