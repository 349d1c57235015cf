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
    the intercept alone, None all terms. `nested`: the task columns are those of groups in groups,
    the largest first. `independent`: coefficients vary independently, by "||".

    Examples
    --------
    >>> FormulaParts.of("sold ~ price + promo + (1 + price | store ~ size)")[:4]
    ('sold ~ price + promo', ['store'], 'size', 'price')
    """

    rows: str
    task: list[str]
    side: str | None
    random: str | None = None
    nested: bool = False
    independent: bool = False

    @classmethod
    def of(cls, formula: str) -> FormulaParts:
        """Split a formula at its bar, which may be in brackets."""
        text, random = _with_powers(str(formula)), None
        begin, end = _brackets(text)
        if begin < 0:
            rows, bar, tasks = (part.strip() for part in text.partition("|"))
        else:
            random, bar, tasks = (part.strip() for part in text[begin + 1 : end].partition("|"))
            rows, random = _without_term(text[:begin], text[end + 1 :]), _random(random, formula)
        independent = random is not None and tasks.startswith("|")
        tasks = tasks[1:].strip() if independent else tasks
        if "|" in tasks or "|" in rows:
            raise DataError(
                f"{formula!r} has several bars, and a model has one grouping: write one bar. For "
                "stores in regions write '(1 | region/store)'. For two groupings that cross, "
                "such as stores and products, see 'Two groupings that cross' in the "
                "documentation."
            )
        if re.search(r"\boffset\s*\(", rows):
            raise DataError(
                f"{formula!r} has an offset among its terms: name its column in offset=, or, for "
                "ConditionalCount, the column of exp(offset) in exposure=."
            )
        task, tilde, side = (part.strip() for part in tasks.partition("~"))
        names = [name.strip() for name in re.split(r"[:+/]", task)]
        if not (bar and rows.count("~") == 1 and all(names) and bool(tilde) == bool(side)):
            raise DataError(f"A formula must look like {SHAPE}. Got {formula!r}.")
        return cls(rows, names, side or None, random, "/" in task, independent)

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


def _with_powers(text: str) -> str:
    """Return a formula in which I(x^2) is I(x**2), as R means it; Python's ^ is another operator.

    >>> _with_powers("y ~ (a + b)^2 + I(log(x)^2) + C(z, levels=['^'])")
    "y ~ (a + b)^2 + I(log(x)**2) + C(z, levels=['^'])"
    """
    made, in_function, quote = "", [False], ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"`":
            quote = letter
        elif letter in "({":
            in_function.append(in_function[-1] or letter == "{" or bool(re.search(r"\w$", made)))
        elif letter in ")}" and len(in_function) > 1:
            in_function.pop()
        elif letter == "^" and in_function[-1]:
            letter = "**"
        made += letter
    return made


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
            f"{formula!r} leaves the intercept out of the brackets, but the intercept always "
            "differs between tasks here: write '(x | task)', or leave the intercept out of the "
            "model with '~ 0 + x | task'."
        )
    return " + ".join(term for term in terms if term not in ("", "1"))
