"""Name tasks in messages, and explain why an id was not found."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any


def show_id(task_id: Any) -> str:
    """Write an id for a message: text in quotes, dates as dates."""
    if isinstance(task_id, tuple):
        return "(" + ", ".join(map(show_id, task_id)) + ")"
    return str(task_id) if isinstance(task_id, date) else repr(task_id)


def name_task(task_id: Any) -> str:
    """Begin a sentence about a task; a new task given alone has no id."""
    return "The task" if task_id is None else f"Task {show_id(task_id)}"


def show_ids(ids: Iterable[Any]) -> str:
    """List the first five ids for a message."""
    listed = list(ids)
    rest = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
    return ", ".join(map(show_id, listed[:5])) + rest


def _text(task_id: Any) -> str:
    """Write an id so that those a reader would call the same look the same."""
    if isinstance(task_id, tuple):
        return str(tuple(map(_text, task_id)))
    if isinstance(task_id, float) and task_id.is_integer():
        return str(int(task_id))
    return str(task_id).strip().removesuffix(" 00:00:00")


def explain_mismatch(ids: Iterable[Any], absent: Iterable[Any]) -> str:
    """Say which absent id differs from a known one only by its type, or by zeros before it.

    Examples
    --------
    >>> explain_mismatch(["7", "12"], ["007"])
    "Ids '007' and '7' do not match: zeros before it were lost on one side, so read both as text."
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
                f"Ids {text!r} and {near!r} do not match: zeros before it were lost on one side, "
                "so read both as text."
            )
    return ""


def explain_absent(ids: Iterable[Any], absent: Iterable[Any], where: str) -> str:
    """Say which tasks are missing from somewhere, and whether only the type differs.

    Examples
    --------
    >>> explain_absent(["b"], ["a", "c"], "the side table")
    "2 tasks are missing from the side table: 'a', 'c'."
    """
    gone = list(absent)
    count = "1 task is" if len(gone) == 1 else f"{len(gone)} tasks are"
    sentence = f"{count} missing from {where}: {show_ids(gone)}."
    return f"{sentence} {explain_mismatch(ids, gone)}".rstrip()
