"""How two models differ: settings, columns, tasks, coefficients."""

from typing import Any

import numpy as np

from condmeta.fitted.fitted import Fitted
from condmeta.fitted.tables import coefficient_names
from condmeta.tables.learner import uncalibrated
from condmeta.tasks.ids import positions

MAX_LISTED = 10  # tasks and coefficients


def differences(first: Any, second: Any) -> dict[str, Any]:
    """Return the differences of two models as a dict.

    Parameters
    ----------
    first, second : TableModel or learner

    Returns
    -------
    dict
        `same`: whether nothing differs; `settings`, `chosen`, `columns`, `sizes`: name -> [first,
        second], where they differ; `tasks`: how many tasks both models have, and which only one
        has; `coefficients`: differences of the coefficients of common tasks, the largest first.
    """
    cards = first.card(), second.card()
    learners = [uncalibrated(getattr(model, "learner_", model)) for model in (first, second)]
    found = {
        "class": _unequal(*({"learner": type(learner).__name__} for learner in learners)),
        "settings": _unequal(*(card["settings"] for card in cards)),
        "chosen": _unequal(*(card.get("chosen", {}) for card in cards)),
        "columns": _unequal(*(_columns(card) for card in cards)),
        "sizes": _unequal(*(card["sizes"] for card in cards)),
        "tasks": None,
        "coefficients": None,
    }
    values = [getattr(learner, "fitted_", None) for learner in learners]
    if all(value is not None and value.tasks is not None for value in values):
        found["tasks"] = _tasks(*(value.tasks for value in values))
        found["coefficients"] = _coefficients(*values)
    differ = any(found[name] for name in ("class", "settings", "chosen", "columns", "sizes"))
    moved = (found["coefficients"] or {}).get("largest", 0) != 0
    unshared = any((found["tasks"] or {}).get(name) for name in ("only_first", "only_second"))
    return {"same": not (differ or moved or unshared)} | found


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
    only_first = first.ids[positions(b, a) < 0].tolist()
    only_second = second.ids[positions(a, b) < 0].tolist()
    return {
        "in_both": len(a) - len(only_first),
        "only_first": len(only_first),
        "only_second": len(only_second),
        "examples": [*only_first[:MAX_LISTED], *only_second[:MAX_LISTED]],
    }


def _coefficients(first: Fitted, second: Fitted) -> dict[str, Any] | None:
    names, others = coefficient_names(first), coefficient_names(second)
    shared = [name for name in names if name in others]
    a, b = first.tasks, second.tasks
    at = positions(b.ids.tolist(), a.ids.tolist())
    if not shared or (at < 0).all():
        return None
    mine, theirs = first.scales.user_vector(a.coef), second.scales.user_vector(b.coef)
    mine = mine[at >= 0][:, list(map(names.index, shared))]
    theirs = theirs[at[at >= 0]][:, list(map(others.index, shared))]
    distance = np.abs(mine - theirs)
    largest = distance.max(axis=1)
    ids = a.ids[at >= 0]
    furthest = []
    for t in np.argsort(-largest, kind="stable")[:MAX_LISTED].tolist():
        if largest[t] > 0:
            j = int(distance[t].argmax())
            pair = {"first": float(mine[t, j]), "second": float(theirs[t, j])}
            furthest.append({"task": str(ids[t]), "coefficient": shared[j]} | pair)
    return {
        "largest": float(distance.max()),
        "mean": float(distance.mean()),
        "tasks_that_differ": int((largest > 0).sum()),
        "furthest": furthest,
    }
