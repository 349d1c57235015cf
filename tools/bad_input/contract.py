"""What a call with bad input must do, and the record of what it did."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import NotFittedError

from condmeta.errors import DataError, DivergenceError, ModelFileError

OWN = DataError, DivergenceError, ModelFileError, NotFittedError
# Sentences that the checks of scikit-learn require word for word, and those of Python about paths.
STANDARD = re.compile(
    r"0 sample\(s\)|0 feature\(s\)|y should be a 1d array|Expected 2D array|Found array with dim"
    r"|holds objects|[Ss]parse|X has \d+ features?, but|feature names should match|os.PathLike"
    r"|Unknown label type: continuous"
)
SECONDS = 10.0
SHOWN = {"'": "'", "0": "0x...", "(": "(...)"}
# Parts of sentences that differ from run to run, or with the versions of other packages.
PLACES = re.compile(r"'[^' ]*/(?=[^'/ ]*')|0x[0-9a-f]{6,}|\(.*\)(?=: copy it again)")


class Case(NamedTuple):
    """A call with bad input.

    call : the function or command
    given : what is bad about its input
    run : makes the call
    watched : returns a value that the call must leave as it is
    """

    call: str
    given: str
    run: Callable[[], Any]
    watched: Callable[[], Any] = lambda: None


class Answer(NamedTuple):
    """The sentence that a case got, and what is wrong with the answer; "" if nothing is."""

    sentence: str
    fault: str


def ask(case: Case) -> Answer:
    """Make the call of a case and judge the answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, start, error = case.watched(), time.monotonic(), None
        try:
            case.run()
        except Exception as caught:
            error = caught
        took, after = time.monotonic() - start, case.watched()
    sentence = PLACES.sub(lambda found: SHOWN[found[0][0]], str(error))
    faults = [
        (error is None, "the call was accepted"),
        (not isinstance(error, OWN) and not _allowed(error), f"{type(error).__name__} is foreign"),
        (len(sentence) < 15, "there is no sentence"),
        (took > SECONDS, f"it took {took:.0f} s"),
        (not _same(before, after), "the call changed something"),
    ]
    return Answer(" ".join(sentence.split()), "; ".join(text for bad, text in faults if bad))


def _allowed(error: Exception | None) -> bool:
    if isinstance(error, OSError):
        return error.filename is not None
    return isinstance(error, ValueError | TypeError) and bool(STANDARD.search(str(error)))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, np.ndarray):
        return one.tobytes() == other.tobytes()
    return one is other or one == other
