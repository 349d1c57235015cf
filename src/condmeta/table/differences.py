"""In what two models differ: settings, columns, tasks, coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from condmeta.estimators.tables import coefficient_names
from condmeta.estimators.task_model import user_vector
from condmeta.table.storage import core
from condmeta.tasks.ids import positions

MOST = 10  # tasks and coefficients that are listed


def differences(first: Any, second: Any) -> dict[str, Any]:
    """Return what two models differ in, as a dict of what a reader asks for.

    Parameters
    ----------
    first, second : TableModel or learner

    Returns
    -------
    dict
        `same`: whether nothing differs; `settings`, `chosen`, `columns`, `sizes`: name -> [first,
        second], where they differ; `tasks`: how many both have, and who is in one alone;
        `coefficients`: how far those of common tasks are apart, and where furthest.
    """
    cards = first.card(), second.card()
    found = {
        "class": _class_of(first, second),
        "settings": _unequal(*(card["settings"] for card in cards)),
        "chosen": _unequal(*(card.get("chosen", {}) for card in cards)),
        "columns": _unequal(*(_columns(card) for card in cards)),
        "sizes": _unequal(*(card["sizes"] for card in cards)),
        "tasks": None,
        "coefficients": None,
    }
    stores = [getattr(core(_learner(model)), "_store", None) for model in (first, second)]
    if None not in stores:
        found["tasks"] = _tasks(*stores)
        found["coefficients"] = _coefficients(_learner(first), _learner(second))
    told = (found["class"], found["settings"], found["chosen"], found["columns"], found["sizes"])
    moved = (found["coefficients"] or {}).get("largest", 0) != 0
    alone = any((found["tasks"] or {}).get(name) for name in ("only_first", "only_second"))
    return {"same": not (any(told) or moved or alone)} | found


def _learner(model: Any) -> Any:
    return core(getattr(model, "learner_", model))


def _class_of(first: Any, second: Any) -> dict:
    names = [type(_learner(model)).__name__ for model in (first, second)]
    return {} if names[0] == names[1] else {"learner": names}


def _unequal(first: dict, second: dict) -> dict[str, list]:
    names = dict.fromkeys([*first, *second])
    pairs = {name: [first.get(name), second.get(name)] for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _columns(card: dict) -> dict[str, Any]:
    """Return the columns of a card by role; features by name, with their kinds and levels."""
    schema = dict(card["schema"])
    for feature in schema.pop("features") or []:
        if isinstance(feature, dict):
            levels = feature.get("levels")
            kind = feature["kind"] if levels is None else f"{feature['kind']} of {len(levels)}"
            schema[feature["name"]] = kind
        else:
            schema[feature] = "feature"
    return schema


def _tasks(first: Any, second: Any) -> dict[str, Any]:
    a, b = first.ids.tolist(), second.ids.tolist()
    in_both = positions(b, a) >= 0
    mine = [task for task, both in zip(a, in_both.tolist(), strict=True) if not both]
    theirs = [task for task, at in zip(b, positions(a, b).tolist(), strict=True) if at < 0]
    return {
        "in_both": int(in_both.sum()),
        "only_first": len(mine),
        "only_second": len(theirs),
        "examples": [*mine[:MOST], *theirs[:MOST]],
    }


def _coefficients(first: Any, second: Any) -> dict[str, Any] | None:
    names, others = coefficient_names(first), coefficient_names(second)
    shared = [name for name in names if name in others]
    a, b = first._store, second._store
    at = positions(b.ids.tolist(), a.ids.tolist())
    if not shared or (at < 0).all():
        return None
    mine = user_vector(first._head.preparation, a.coef)[at >= 0][:, _at(names, shared)]
    theirs = user_vector(second._head.preparation, b.coef)[at[at >= 0]][:, _at(others, shared)]
    apart = np.abs(mine - theirs)
    ids = a.ids[at >= 0]
    worst = np.argsort(-apart.max(axis=1), kind="stable")[:MOST]
    moved = [
        {
            "task": str(ids[t]),
            "coefficient": shared[int(apart[t].argmax())],
            "first": float(mine[t, apart[t].argmax()]),
            "second": float(theirs[t, apart[t].argmax()]),
        }
        for t in worst.tolist()
        if apart[t].max() > 0
    ]
    return {
        "largest": float(apart.max()),
        "mean": float(apart.mean()),
        "tasks_that_differ": int((apart.max(axis=1) > 0).sum()),
        "furthest": moved,
    }


def _at(names: list[str], wanted: list[str]) -> list[int]:
    return [names.index(name) for name in wanted]
