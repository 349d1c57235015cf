"""A comparison in the words of an analyst, for the terminal and the page.

A task is called by the name of its column, such as store; its points are rows that are known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from condmeta.evaluation.advantage import in_percent
from condmeta.evaluation.gains import Gain, gains_in_words
from condmeta.text import rows_known

if TYPE_CHECKING:
    from condmeta.evaluation.comparison import Comparison

LABELS = {  # of the learners
    "own data": "own rows alone",
    "pooled": "one model for all",
    "unconditional": "shared start",
    "conditional": "start by side information",
    "never forgets": "old rows count in full",
    "forgets": "old rows count less",
    "transformed": "curves, or another scale",
    "unconditional on base": "trees, then shared start",
    "conditional on base": "trees, then start by side information",
    "task mean on base": "trees, then own mean",
    "constant on base": "trees alone",
    "unconditional counts": "counts, shared start",
    "conditional counts": "counts, start by side information",
    "auto": "auto: best mix",
}


class Words(NamedTuple):
    """What the report of a comparison says.

    Attributes
    ----------
    noun : str
        What a task is: the name of its column, or "task".
    labels : dict of learner -> its name in the report
    advice, side : str
        Which learner to use; what side information gains, "" without it.
    ahead : str
        Errors of known tasks one step ahead, "" without times.
    """

    noun: str
    labels: dict[str, str]
    advice: str
    side: str
    ahead: str = ""


def words_of(found: Comparison) -> Words:
    """Return the words of a report."""
    noun = noun_of(found.tasks.task_name)
    labels = {name: LABELS.get(name, name) for name in found.names}
    side, ahead = _side(found, noun), _ahead(found, noun, labels)
    return Words(noun, labels, _advice(found, noun, labels), side, ahead)


def _ahead(found: Comparison, noun: str, labels: dict[str, str]) -> str:
    """Return the errors of known tasks one step ahead, the best first."""
    ranked = sorted(found.ahead_rows, key=lambda row: row["error"])
    errors = "; ".join(f"{labels[row['learner']]} {row['error']:.4g}" for row in ranked)
    title = f"Mean {found.criterion.title} for the next rows of a known {noun}"
    return f"{title}: {errors}." if ranked else ""


def noun_of(task_name: object) -> str:
    """Return what one task is called: the name of its column without "id".

    Examples
    --------
    >>> noun_of("store_id"), noun_of("Patient"), noun_of(("school", "class")), noun_of("id")
    ('store', 'Patient', 'task', 'task')
    """
    name = task_name if isinstance(task_name, str) else ""
    short = re.sub(r"[ _-]?(ids?|key|no|nr|code)$", "", name, flags=re.IGNORECASE)
    return short if re.fullmatch(r"[^\W\d]{2,}", short) else "task"


def _advice(found: Comparison, noun: str, labels: dict[str, str]) -> str:
    worst = found.worst_row
    what = f"Use {labels[found.advised]!r}, {found.call}: its error for a new {noun} is"
    if worst is None:
        shots = ", ".join(map(str, found.shots))
        return (
            f"{what} the lowest, or within noise of it, with every number of rows known: {shots}."
        )
    behind = f"at most {100 * worst['behind']:.1f} % above the lowest"
    if "shot" not in worst:
        start = what.removesuffix(f" for a new {noun} is")
        return f"{start} is {behind}, for the next rows of a known {noun}."
    return f"{what} {behind}, with {rows_known(worst['shot'])}."


def _side(found: Comparison, noun: str) -> str:
    def at(one: Gain) -> str:
        return f"with {rows_known(one.n_support)}"

    gained = gains_in_words(found.gains, f"for a new {noun}", at)
    if found.advantage is None:
        return f"Side information: {gained}." if gained else ""
    share = in_percent(found.advantage.share)
    unclear = "" if found.advantage.pays else ", which may be chance"
    text = f"Side information explains {share} of how one {noun} differs from another{unclear}"
    return f"{text}; {gained}." if gained else f"{text}."
