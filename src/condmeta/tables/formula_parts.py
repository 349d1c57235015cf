"""The parts of a formula: target and features, task columns, side columns, what differs by task."""

from __future__ import annotations

import re
from typing import NamedTuple

from condmeta.errors import DataError

SHAPE = (
    "'target ~ features | task ~ side columns', 'target ~ features | task', or, as in lme4, "
    "'target ~ features + (1 | task)'"
)


class FormulaParts(NamedTuple):
    """The parts of a formula: a formula of rows, the task columns, and one of side columns.

    `random` are the terms with coefficients that differ between tasks, besides the intercept: "" is
    the intercept alone, None all terms.

    Examples
    --------
    >>> FormulaParts.of("sold ~ price + promo + (1 + price | store ~ size)")
    FormulaParts(rows='sold ~ price + promo', task=['store'], side='size', random='price')
    """

    rows: str
    task: list[str]
    side: str | None
    random: str | None = None

    @classmethod
    def of(cls, formula: str) -> FormulaParts:
        """Split a formula at its bar, which may be in brackets."""
        text, random = str(formula), None
        begin, end = _brackets(text)
        if begin < 0:
            rows, bar, tasks = (part.strip() for part in text.partition("|"))
        else:
            random, bar, tasks = (part.strip() for part in text[begin + 1 : end].partition("|"))
            rows, random = _without_term(text[:begin], text[end + 1 :]), _random(random, formula)
        if "|" in tasks or "|" in rows:
            raise DataError(
                f"{formula!r} has several bars, and a model has one grouping: write one bar. For "
                "'||' give learner=ConditionalRidge(metric='diagonal', scale='none') as well; for "
                "tasks in groups take ConditionalLevels with '| group:task'."
            )
        task, tilde, side = (part.strip() for part in tasks.partition("~"))
        names = [name.strip() for name in re.split(r"[:+]", task)]
        if not (bar and rows.count("~") == 1 and all(names) and bool(tilde) == bool(side)):
            raise DataError(f"A formula has the form {SHAPE}. Got {formula!r}.")
        return cls(rows, names, side or None, random)

    @property
    def target(self) -> str:
        """The left side of the formula of rows."""
        return self.rows.split("~")[0].strip()

    @property
    def features(self) -> str:
        """The right side of the formula of rows."""
        return self.rows.split("~")[1].strip()

    def terms(self) -> list[str]:
        """Return the texts that are evaluated as Python."""
        return [self.target, self.features, *filter(None, (self.side, self.random))]


def _brackets(text: str) -> tuple[int, int]:
    """Return the places of the brackets around the first bar; -1 if it stands alone."""
    open_at: list[int] = []
    around = None
    for at, character in enumerate(text):
        if character == "(":
            open_at.append(at)
        elif character == "|" and around is None:
            if not open_at:
                return -1, -1
            around = open_at[-1]
        elif character == ")" and open_at and open_at.pop() == around:
            return around, at
    return -1, -1


def _without_term(before: str, after: str) -> str:
    """Return a formula of rows from what is around a term of it."""
    rows = re.sub(r"\+\s*$", "", before.strip()).strip()
    after = after.strip()
    if rows.endswith("~"):
        return f"{rows} {after.removeprefix('+').strip() or '1'}"
    return f"{rows} {after}".strip()


def _random(effects: str, formula: str) -> str:
    """Return the terms of random effects without the intercept."""
    terms = [term.strip() for term in effects.split("+")]
    if "0" in terms or "-1" in effects.replace(" ", ""):
        raise DataError(
            f"{formula!r} leaves the intercept of tasks out, which always differs between tasks "
            "here: write '(x | task)', or leave it out of the model with '~ 0 + x | task'."
        )
    return " + ".join(term for term in terms if term not in ("", "1"))
