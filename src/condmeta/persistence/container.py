"""A model file: `meta.json` and `arrays/<n>.npy` in an uncompressed zip.

The zip comment, the last bytes of the file, is `condmeta-model <format> <version of condmeta>
<bytes of meta.json> <sha256 of meta.json>`; meta.json holds size, CRC-32 and sha256 of each array.
Every byte of the file is either hashed or determined by the others, so any damage is found.
"""

import json
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from condmeta.persistence.atomic import write_atomically
from condmeta.persistence.file_errors import COPY_AGAIN, WRITTEN_BY, InvalidFileError, damaged
from condmeta.persistence.members import (
    DIGEST,
    LARGE,
    PIECE,
    StoredArray,
    checksum,
    expect,
    pieces,
)
from condmeta.persistence.npy import npy_header, raw_bytes
from condmeta.persistence.registry import State
from condmeta.persistence.zip_layout import FIRST_MEMBER, Member, directory, local_header

AnyPath = str | os.PathLike
FORMAT = "condmeta-model"
FORMAT_VERSION = 2  # docs/files.md says what each version holds
WITH_PIECES = 3  # the version of files with large arrays

_COMMENT = re.compile(rb"condmeta-model (\d{1,9}) ([\x21-\x7e]{1,80}) (\d{1,15}) ([0-9a-f]{64})")
_COMMENT_LIMIT = 256
_FREE_VALUES = 4096
_BYTES_A_VALUE = 32


def write_container(path: AnyPath, card: State, model: Any, arrays: list[np.ndarray]) -> None:
    """Write card, encoded model and C-ordered arrays to a model file, atomically."""
    headers = [npy_header(array) for array in arrays]
    table = [_array_row(header, array) for header, array in zip(headers, arrays, strict=True)]
    version = WITH_PIECES if any(len(row) > 3 for row in table) else FORMAT_VERSION
    content = {"card": card | {"format_version": version}, "model": model, "arrays": table}
    text = json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
    # Pad with blanks if the file is small for the number of its values: the reader limits the
    # number of values by the size of the file (see `_load_json`).
    stored = sum(row[0] for row in table) + len(text)
    text = text.ljust(len(text) + _BYTES_A_VALUE * (_values(text) - _FREE_VALUES) - stored)
    meta, *members = _members(text, table)
    tail = directory([meta, *members], _comment(card["condmeta_version"], text, version))

    def write(file: BinaryIO) -> None:
        file.write(local_header(meta) + text)
        for member, header, array in zip(members, headers, arrays, strict=True):
            file.write(local_header(member) + header)
            file.write(raw_bytes(array).data)
        file.write(tail)

    write_atomically(path, write)


class Contents(NamedTuple):
    """A model file that is open: its card, its encoded model and its arrays."""

    card: State
    model: Any
    arrays: list[StoredArray]


@contextmanager
def open_container(path: AnyPath) -> Iterator[Contents]:
    """Open a model file and check all but its arrays, which are checked when they are read.

    Raise `InvalidFileError` with the reason if it is invalid.
    """
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise InvalidFileError(f"is {kind}. Give the path of a model file.")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        text, comment = _read_meta(file, size)
        content = _load_json(text, size)
        card, model, table = content["card"], content["model"], content["arrays"]
        members = _members(text, table)
        tail = directory(members, comment)
        begins = [0]
        for member in members:
            begins.append(begins[-1] + len(local_header(member)) + member.size)
        written = int(comment.split()[1])
        wrong = comment != _comment(card["condmeta_version"], text, written)
        if begins[-1] + len(tail) != size or wrong:
            raise damaged("its size or its end is wrong")
        for begin, expected in ((0, local_header(members[0])), (begins[-1], tail)):
            file.seek(begin)
            expect(file, expected)
        places = zip(begins[1:-1], members[1:], table, strict=True)
        arrays = [StoredArray(file, begin, member, *row[2:]) for begin, member, row in places]
        yield Contents(card, model, arrays)


def read_container(path: AnyPath, *, card_only: bool = False) -> tuple[State, Any, list]:
    """Return the card, the encoded model and the arrays of a model file, all of it checked.

    With `card_only` the arrays are not read: the cost does not depend on their size.
    """
    with open_container(path) as (card, model, arrays):
        return card, model, [] if card_only else [array.read() for array in arrays]


def _comment(version: str, text: bytes, format_version: int = FORMAT_VERSION) -> bytes:
    digest = checksum(text)
    return f"{FORMAT} {format_version} {version} {len(text)} {digest}".encode("ascii")


def _array_row(header: bytes, array: np.ndarray) -> list[Any]:
    data = raw_bytes(array).data
    crc = zlib.crc32(data, zlib.crc32(header))
    row = [len(header) + data.nbytes, crc, checksum(header, data)]
    return row if row[0] < LARGE else [*row, pieces(header, data)]


def _members(text: bytes, table: list[list[Any]]) -> list[Member]:
    """Return the members of the zip: meta.json, then the arrays."""
    meta = Member("meta.json", len(text), zlib.crc32(text))
    arrays = (Member(f"arrays/{i}.npy", size, crc) for i, (size, crc, *_) in enumerate(table))
    return [meta, *arrays]


def _read_meta(file: BinaryIO, size: int) -> tuple[bytes, bytes]:
    """Return meta.json, checked against its sha256, and the zip comment."""
    head = file.read(len(local_header(Member("meta.json", 0, 0))))
    file.seek(max(0, size - _COMMENT_LIMIT))
    end = file.read(_COMMENT_LIMIT)
    start = end.rfind(FORMAT.encode("ascii"))
    match = _COMMENT.fullmatch(end, start) if start >= 0 else None
    if match is None:
        raise InvalidFileError(_diagnose(head, size))
    version, writer, length = int(match[1]), match[2].decode("ascii"), int(match[3])
    if version > WITH_PIECES:
        raise InvalidFileError(
            f"has model format {version}, written by condmeta {writer}; this condmeta reads "
            f"formats up to {WITH_PIECES}. Upgrade condmeta to {writer} or later."
        )
    if version < 1 or length > size:
        raise damaged("its last bytes make no sense")
    file.seek(len(local_header(Member("meta.json", length, 0))))
    text = file.read(length)
    if checksum(text).encode("ascii") != match[4]:
        raise damaged("the checksum of its meta.json is wrong")
    return text, match[0]


def _diagnose(head: bytes, size: int) -> str:
    if size == 0:
        return f"is empty. {COPY_AGAIN}"
    if FIRST_MEMBER.startswith(head[: len(FIRST_MEMBER)]) and b"meta.json".startswith(head[30:]):
        return f"is truncated or damaged at its end. {COPY_AGAIN}"
    if head.startswith(b"PK"):
        return f"is a zip file, but not a condmeta model. {WRITTEN_BY}"
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return (
            "is a pickle, not a condmeta model. Opening a pickle can run any code: use pickle or "
            "joblib, and only if you trust where it comes from."
        )
    return f"is not a condmeta model. {WRITTEN_BY}"


def _values(text: bytes) -> int:
    """Return an upper bound, less one, of the number of values in a JSON text."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _load_json(text: bytes, size: int) -> dict[str, Any]:
    # A value such as `[]` takes 3 bytes on disk and 70 in memory: limit the number of values.
    if _values(text) > _FREE_VALUES + size // _BYTES_A_VALUE:
        raise damaged("its meta.json holds too many values")
    content = json.loads(text.decode("ascii"))
    if not isinstance(content, dict) or set(content) != {"card", "model", "arrays"}:
        raise damaged("its meta.json has the wrong parts")
    card = content["card"]
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise InvalidFileError(f"is not a condmeta model. {WRITTEN_BY}")
    for size, crc, sha256, *rest in content["arrays"]:
        numbers = type(size) is int and size >= 0 and type(crc) is int and 0 <= crc < 2**32
        texts = all(isinstance(text, str) for text in (sha256, *rest)) and len(rest) <= 1
        if not (numbers and texts and all(len(p) == -(-size // PIECE) * DIGEST for p in rest)):
            raise damaged("its list of arrays makes no sense")
    return content
