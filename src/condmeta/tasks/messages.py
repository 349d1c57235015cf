"""Errors of parameters, names of tasks in messages, and why an id was not found."""

from collections.abc import Iterable
from datetime import date
from numbers import Real
from typing import Any

from condmeta.errors import DataError


def bad_parameter(name: str, valid: str, value: Any) -> DataError:
    """Return the error of a parameter that must be `valid`; `name` is "x", or "x of Owner".

    Examples
    --------
    >>> print(bad_parameter("std of RandomFourier", "a float in (0, inf)", -1))
    The 'std' parameter of RandomFourier must be a float in (0, inf). Got -1 instead.
    """
    word, of, owner = name.partition(" of ")
    return DataError(f"The '{word}' parameter{of}{owner} must be {valid}. Got {value!r} instead.")


def show_id(task_id: Any) -> str:
    """Return an id for a message: text in quotes, dates without."""
    if isinstance(task_id, tuple):
        return "(" + ", ".join(map(show_id, task_id)) + ")"
    return str(task_id) if isinstance(task_id, date) else repr(task_id)


def name_task(task_id: Any) -> str:
    """Return the subject of a sentence about a task; a single new task has no id (None)."""
    return "The task" if task_id is None else f"Task {show_id(task_id)}"


def show_ids(ids: Iterable[Any]) -> str:
    """Return the first five ids for a message, and the number of others."""
    listed = list(ids)
    rest = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
    return ", ".join(map(show_id, listed[:5])) + rest


def _text(task_id: Any) -> str:
    """Return an id as text; ids that look the same to a reader have the same text."""
    if isinstance(task_id, tuple):
        return str(tuple(map(_text, task_id)))
    if isinstance(task_id, float) and task_id.is_integer():
        return str(int(task_id))
    return str(task_id).strip().removesuffix(" 00:00:00")


def explain_mismatch(ids: Iterable[Any], absent: Iterable[Any]) -> str:
    """Name an absent id that differs from a known one only by its type or its leading zeros.

    Examples
    --------
    >>> explain_mismatch(["7", "12"], ["007"])
    "Ids '007' and '7' do not match: leading zeros were lost on one side, so read both as text."
    """
    by_text = {_text(known): known for known in ids}
    by_digits = {text.lstrip("0"): text for text in by_text if text.isdigit()}
    for task_id in absent:
        twin = by_text.get(_text(task_id))
        if twin is not None and twin != task_id:
            return (
                f"Ids {show_id(task_id)} ({type(task_id).__name__}) and {show_id(twin)} "
                f"({type(twin).__name__}) do not match: convert one of them."
            )
        text = _text(task_id)
        near = by_digits.get(text.lstrip("0")) if text.isdigit() else None
        if near is not None and near != text:
            return (
                f"Ids {text!r} and {near!r} do not match: leading zeros were lost on one side, "
                "so read both as text."
            )
    return ""


def explain_absent(ids: Iterable[Any], absent: Iterable[Any], where: str) -> str:
    """Name the tasks that are missing from a table, and ids that differ only by their type.

    Examples
    --------
    >>> explain_absent(["b"], ["a", "c"], "the side table")
    "2 tasks are missing from the side table: 'a', 'c'."
    """
    gone = sorted(absent, key=_order)
    count = "1 task is" if len(gone) == 1 else f"{len(gone)} tasks are"
    sentence = f"{count} missing from {where}: {show_ids(gone)}."
    return f"{sentence} {explain_mismatch(ids, gone)}".rstrip()


def _order(task_id: Any) -> tuple[str, Any]:
    """Sort ids of a kind together: numbers by size, others as they read."""
    return type(task_id).__name__, task_id if isinstance(task_id, Real) else _text(task_id)
