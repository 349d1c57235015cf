"""Which files a command may write: never one that it reads, nor one of another kind.

Light imports only: a mistyped name must be reported at once.
"""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from condmeta.errors import DataError, ModelFileError
from condmeta.tables.files.reader import names_in_file
from condmeta.tables.files.source import require_file
from condmeta.tables.files.writer import FORMATS, check_place

GENERATOR = b'<meta name="generator" content="condmeta"'  # in the head of our pages


class Kind(NamedTuple):
    """What a command writes: its name, the endings of its files, and how to recognise one."""

    name: str
    endings: Sequence[str]
    recognise: Callable[[str], bool]


def _is_model(path: str) -> bool:
    from condmeta.persistence import read_card

    try:
        read_card(path)
    except ModelFileError:
        return False
    return True


def _is_page(path: str) -> bool:
    with open(path, "rb") as file:
        return GENERATOR in file.read(4096)


def _table_with(name: str, *columns: str) -> Kind:
    return Kind(name, tuple(FORMATS), lambda path: {*columns} <= {*names_in_file(path)})


MODEL = Kind("a model", (".condmeta",), _is_model)
PAGE = Kind("a report of condmeta compare", (".html", ".htm"), _is_page)
ERRORS = _table_with("a table of condmeta compare", "learner", "shot", "error", "se", "behind")
PREDICTIONS = _table_with("a table of predictions", "prediction", "task_points", "task_kind")
COEFFICIENTS = _table_with("a table of coefficients", "n", "(intercept)")
SHRUNKEN = _table_with("a table of condmeta shrink", "feature", "own", "adapted", "std")
VERDICTS = _table_with("a table of condmeta check", "n", "z", "verdict")


def check_files(
    *inputs: str | None, output: str | None, kind: Kind, force: bool, changes: str | None = None
) -> None:
    """Refuse inputs that are not there, and an output that would destroy something.

    Parameters
    ----------
    *inputs : path, "-" or None
        What the command reads.
    output : path, "-" or None
        What it writes; None is nothing, "-" standard output.
    kind : Kind
        What the output is. A file of another kind is never replaced.
    force : bool
        Whether to replace any file.
    changes : path, optional
        The input that the command is meant to replace.
    """
    reads = [path for path in inputs if path not in (None, "-")]
    for path in reads:
        require_file(path)
    if output is None or (output == "-" and kind is not MODEL):
        return
    if output != changes and os.path.splitext(output)[1].lower() not in kind.endings:
        *others, last = kind.endings
        endings = f"{', '.join(others)} or {last}" if others else last
        raise DataError(f"The name of {kind.name} must end in {endings}. Got '{output}' instead.")
    check_place(output)
    if force or not os.path.exists(output):
        return
    remedy = "give another name with -o, or replace it with --force"
    for path in reads:
        if path != changes and os.path.samefile(path, output):
            raise DataError(
                f"'{output}' is an input of this command, which would overwrite it: {remedy}."
            )
    if output != changes and os.path.getsize(output) and not kind.recognise(output):
        raise DataError(f"'{output}' exists and is not {kind.name}: {remedy}.")
