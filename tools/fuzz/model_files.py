"""Damaged model files: they are refused with a sentence, or open and can be used."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from hypothesis import strategies as st

import condmeta as cm
from condmeta.errors import ModelFileError

MODELS = Path(__file__).resolve().parents[2] / "tests" / "data" / "models"


class Damage(NamedTuple):
    """A model file, and changes: (kind, where as a share of the length, bytes)."""

    name: str
    changes: list[tuple[str, float, bytes]]


def damages() -> st.SearchStrategy[Damage]:
    """Return files with some bytes changed, inserted, removed, doubled, or cut off."""
    names = sorted(path.name for path in MODELS.glob("*.condmeta"))
    change = st.tuples(
        st.sampled_from(["put", "insert", "remove", "cut", "double"]),
        st.floats(0, 1),
        st.binary(min_size=1, max_size=40),
    )
    return st.builds(Damage, st.sampled_from(names), st.lists(change, min_size=1, max_size=3))


@cache
def _bytes(name: str) -> bytes:
    return (MODELS / name).read_bytes()


def _apply(data: bytes, kind: str, where: float, part: bytes) -> bytes:
    at = int(where * len(data))
    tail = {
        "put": part + data[at + len(part) :],
        "insert": part + data[at:],
        "remove": data[at + len(part) :],
        "cut": b"",
        "double": data[max(at - len(part), 0) :],
    }[kind]
    return data[:at] + tail


def check(damage: Damage) -> None:
    """Open the file: a ModelFileError, or the model that was saved."""
    whole = data = _bytes(damage.name)
    for change in damage.changes:
        data = _apply(data, *change)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.condmeta"
        path.write_bytes(data)
        try:
            cm.load(path)
        except ModelFileError as error:
            sentence = str(error)
        else:
            assert data == whole, "the damage is not seen"
            return
    assert str(path) in sentence, f"the sentence does not name the file: {sentence}"
