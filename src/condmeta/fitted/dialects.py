"""How databases write names, text and numbers."""

from typing import Any, NamedTuple

from condmeta.errors import DataError


class SqlDialect(NamedTuple):
    """How a database writes names and text.

    quote : the mark around names
    backslash : whether a backslash in text starts an escape
    fence : ends a subquery whose expressions would else be written into the outer query, and
        computed there again and again
    """

    quote: str
    backslash: bool
    fence: str = ""

    def name(self, *parts: str) -> str:
        """Return a name, with the table that it belongs to before it."""
        q = self.quote
        return ".".join(f"{q}{part.replace(q, q + q)}{q}" for part in parts)

    def text(self, value: str) -> str:
        """Return text as a literal."""
        if not self.backslash:
            return "'" + value.replace("'", "''") + "'"
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def value(self, label: Any) -> str:
        """Return a label of a class as a literal: text, True, False or a number."""
        if isinstance(label, str):
            return self.text(label)
        return str(label).upper() if isinstance(label, bool) else repr(label)


DIALECTS = {
    "duckdb": SqlDialect('"', False),
    "postgres": SqlDialect('"', False, "OFFSET 0"),
    "sqlite": SqlDialect('"', False, "LIMIT -1 OFFSET 0"),
    "snowflake": SqlDialect('"', True),
    "bigquery": SqlDialect("`", True),
    "spark": SqlDialect("`", True),
}


def find_dialect(name: str) -> SqlDialect:
    """Return a dialect by its name."""
    if name not in DIALECTS:
        raise DataError(f"The 'dialect' must be one of {', '.join(DIALECTS)}. Got {name!r}.")
    return DIALECTS[name]


def number(value: float) -> str:
    """Return a number with an exponent: without one, databases may read a decimal."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"
