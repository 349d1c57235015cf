"""What the file of a `FormulaModel` holds: the formula, the learner, and what its terms learned.

A formula is evaluated as Python, so that a file could run code by it. Only formulas of columns,
numbers, operators and the functions of `FUNCTIONS` are stored and read; nothing else is evaluated.
Terms that learned numbers from the training table, such as `poly(x, 2)`, keep them as JSON; the
levels of text columns are kept by their names.
"""

from __future__ import annotations

import ast
import json
from typing import Any

import numpy as np

from condmeta.errors import DataError

FUNCTIONS = {
    "C", "I", "bs", "cc", "center", "cr", "cs", "exp", "exp10", "exp2", "log", "log10", "log1p",
    "log2", "poly", "scale", "sqrt",
}  # fmt: skip
ALLOWED = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Name, ast.Load,
    ast.Constant, ast.Call, ast.keyword,
)  # fmt: skip
LONGEST = 10_000  # letters of a formula


def unsafe_part(terms: str) -> str | None:
    """Return the first part of some terms that a file must not hold; None if there is none.

    Examples
    --------
    >>> unsafe_part("log(price) + C(city):poly(size, 2)"), unsafe_part("exec('1')")
    (None, "exec('1')")
    """
    tree = _parsed(terms)
    if tree is None:
        return terms[:80]
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        plain = isinstance(node, ALLOWED)
        if isinstance(node, ast.Name):
            plain = node.id in FUNCTIONS if id(node) in calls else not node.id.startswith("__")
        elif isinstance(node, ast.Call):
            plain = isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS
        elif isinstance(node, ast.Constant):
            plain = isinstance(node.value, int | float | str)
        if not plain:
            return ast.unparse(node)
    return None


def names_in(terms: str) -> set[str]:
    """Return the names of the columns in terms; none if they are no expression of Python.

    Examples
    --------
    >>> sorted(names_in("log(price) + city:poly(size, 2)"))
    ['city', 'price', 'size']
    """
    tree = _parsed(terms)
    if tree is None:
        return set()
    calls = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.id for node in names if id(node) not in calls}


def _parsed(terms: str) -> ast.Expression | None:
    if len(terms) > LONGEST:
        return None
    try:
        return ast.parse(terms.replace(":", "@").replace("^", "**").strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def learned_to_text(states: dict[str, Any]) -> str:
    """Return the numbers that terms have learned as JSON, by part of the formula."""
    return json.dumps(_plain(states))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {"pairs": [[_plain(key), _plain(part)] for key, part in value.items()]}
    if isinstance(value, np.ndarray):
        return {"array": _plain(value.tolist())}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise DataError(
        f"A term of the formula has learned a {type(value).__name__}, which a model file cannot "
        "hold. Compute its column first, and fit again."
    )


def learned_of_text(text: str) -> dict[str, Any]:
    """Return what `learned_to_text` wrote; a ValueError for anything else."""
    found = _restored(json.loads(text))
    if not isinstance(found, dict) or not all(isinstance(part, dict) for part in found.values()):
        raise ValueError("must hold a table of numbers for each part of the formula")
    return found


def _restored(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"array"} and isinstance(value["array"], list):
            return np.asarray(_restored(value["array"]), dtype=float)
        if set(value) != {"pairs"} or not all(len(pair) == 2 for pair in value["pairs"]):
            raise ValueError("must hold pairs, arrays and numbers")
        return {_key(key): _restored(part) for key, part in value["pairs"]}
    return [_restored(part) for part in value] if isinstance(value, list) else value


def _key(value: Any) -> Any:
    if not isinstance(value, str | int):
        raise ValueError("must have texts and whole numbers as names")
    return value
