"""A model file: `meta.json` and `arrays/<n>.npy` in an uncompressed zip with a signed-off end.

The zip comment, the last bytes of the file, reads `condmeta-model <format> <version of condmeta>
<bytes of meta.json> <sha256 of meta.json>`; meta.json holds size, CRC-32 and sha256 of each array.
So every byte of the file is either hashed or follows from the others: damage anywhere is found.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import zlib
from typing import Any, BinaryIO

import numpy as np

from condmeta.persistence.atomic import write_atomically
from condmeta.persistence.npy import npy_header, raw_bytes, read_npy
from condmeta.persistence.refusal import DAMAGED, WRITTEN, RefusalError
from condmeta.persistence.zip_layout import FIRST_MEMBER, Member, directory, local_header

FORMAT = "condmeta-model"
FORMAT_VERSION = 1

_COMMENT = re.compile(rb"condmeta-model (\d{1,9}) ([\x21-\x7e]{1,80}) (\d{1,15}) ([0-9a-f]{64})")
_COMMENT_LIMIT = 256
_FREE_VALUES = 4096
_BYTES_A_VALUE = 32


def write_container(
    path: str | os.PathLike, card: dict[str, Any], model: Any, arrays: list[np.ndarray]
) -> None:
    """Write card, encoded model and C-ordered arrays to a model file, atomically."""
    headers = [npy_header(array) for array in arrays]
    table = [_array_row(header, array) for header, array in zip(headers, arrays, strict=True)]
    content = {"card": card, "model": model, "arrays": table}
    text = json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
    # Blanks, where needed, so that the file is never small for the number of values in it: the
    # reader can then bound what parsing costs by the size of the file (see `_load_json`).
    stored = sum(size for size, _, _ in table) + len(text)
    text = text.ljust(len(text) + _BYTES_A_VALUE * (_values(text) - _FREE_VALUES) - stored)
    meta = Member("meta.json", len(text), zlib.crc32(text))
    members = [meta, *_array_members(table)]
    tail = directory(members, _comment(card["condmeta_version"], text))

    def write(file: BinaryIO) -> None:
        file.write(local_header(meta))
        file.write(text)
        for member, header, array in zip(members[1:], headers, arrays, strict=True):
            file.write(local_header(member))
            file.write(header)
            file.write(raw_bytes(array).data)
        file.write(tail)

    write_atomically(path, write)


def read_container(
    path: str | os.PathLike, *, card_only: bool = False
) -> tuple[dict[str, Any], Any, list[np.ndarray]]:
    """Check a model file and return its card, its encoded model and its arrays.

    Raises `RefusalError` with the reason. With `card_only` the arrays are left alone: the cost is
    that of meta.json, whatever the size of the file.
    """
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise RefusalError(f"is {kind}. Give the path of a model file.")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        text, comment = _read_meta(file, size)
        content = _load_json(text, size)
        card, model, table = content["card"], content["model"], content["arrays"]
        _check_table(table)
        meta = Member("meta.json", len(text), zlib.crc32(text))
        members = [meta, *_array_members(table)]
        tail = directory(members, comment)
        total = sum(len(local_header(m)) + m.size for m in members) + len(tail)
        if total != size or comment != _comment(card["condmeta_version"], text):
            raise RefusalError(f"is damaged: its size or its end is not what it says. {DAMAGED}")
        file.seek(0)
        _expect(file, local_header(meta))
        arrays = []
        if not card_only:
            file.seek(len(text), os.SEEK_CUR)
            for member, (_, _, sha256) in zip(members[1:], table, strict=True):
                _expect(file, local_header(member))
                arrays.append(_read_array(file, member.size, sha256))
            _expect(file, tail)
    return card, model, arrays


def _comment(version: str, text: bytes) -> bytes:
    digest = hashlib.sha256(text).hexdigest()
    return f"{FORMAT} {FORMAT_VERSION} {version} {len(text)} {digest}".encode("ascii")


def _array_row(header: bytes, array: np.ndarray) -> list[Any]:
    data = raw_bytes(array).data
    digest = hashlib.sha256(header)
    digest.update(data)
    crc = zlib.crc32(data, zlib.crc32(header))
    return [len(header) + data.nbytes, crc, digest.hexdigest()]


def _array_members(table: list[list[Any]]) -> list[Member]:
    return [Member(f"arrays/{i}.npy", size, crc) for i, (size, crc, _) in enumerate(table)]


def _read_array(file: BinaryIO, size: int, sha256: str) -> np.ndarray:
    header, array = read_npy(file, size)
    digest = hashlib.sha256(header)
    digest.update(raw_bytes(array).data)
    if digest.hexdigest() != sha256:
        raise RefusalError(f"is damaged: the checksum of an array is wrong. {DAMAGED}")
    return array


def _expect(file: BinaryIO, expected: bytes) -> None:
    if file.read(len(expected)) != expected:
        raise RefusalError(
            "is damaged or was packed again by another program: "
            f"its zip headers do not match its contents. {DAMAGED}"
        )


def _read_meta(file: BinaryIO, size: int) -> tuple[bytes, bytes]:
    """Return meta.json, checked against its sha256, and the zip comment."""
    head = file.read(len(local_header(Member("meta.json", 0, 0))))
    file.seek(max(0, size - _COMMENT_LIMIT))
    end = file.read(_COMMENT_LIMIT)
    start = end.rfind(FORMAT.encode("ascii"))
    match = _COMMENT.fullmatch(end, start) if start >= 0 else None
    if match is None:
        raise RefusalError(_diagnose(head, size))
    version, writer, length = int(match[1]), match[2].decode("ascii"), int(match[3])
    if version > FORMAT_VERSION:
        raise RefusalError(
            f"has model format {version}, written by condmeta {writer}; this condmeta reads "
            f"formats up to {FORMAT_VERSION}. Upgrade condmeta to {writer} or later."
        )
    if version != FORMAT_VERSION or length > size:
        raise RefusalError(f"is damaged: its last bytes make no sense. {DAMAGED}")
    file.seek(len(local_header(Member("meta.json", length, 0))))
    text = file.read(length)
    if hashlib.sha256(text).hexdigest().encode("ascii") != match[4]:
        raise RefusalError(f"is damaged: the checksum of its meta.json is wrong. {DAMAGED}")
    return text, match[0]


def _diagnose(head: bytes, size: int) -> str:
    if size == 0:
        return f"is empty. {DAMAGED}"
    if FIRST_MEMBER.startswith(head[: len(FIRST_MEMBER)]) and b"meta.json".startswith(head[30:]):
        return f"is truncated or damaged at its end. {DAMAGED}"
    if head.startswith(b"PK"):
        return f"is a zip file, but not a condmeta model. {WRITTEN}"
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return (
            "is a pickle, not a condmeta model. Opening a pickle can run any code: use pickle or "
            "joblib, and only if you trust where it comes from."
        )
    return f"is not a condmeta model. {WRITTEN}"


def _values(text: bytes) -> int:
    """Return an upper bound of the number of values in a JSON text, short of one."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _load_json(text: bytes, size: int) -> dict[str, Any]:
    # `[],[],[]` takes 3 bytes a value on disk and 70 in memory, hence a limit on their number.
    if _values(text) > _FREE_VALUES + size // _BYTES_A_VALUE:
        raise RefusalError(f"is damaged: its meta.json holds more values than it can. {DAMAGED}")
    content = json.loads(text.decode("ascii"))
    if not isinstance(content, dict) or set(content) != {"card", "model", "arrays"}:
        raise RefusalError(f"is damaged: its meta.json has the wrong parts. {DAMAGED}")
    card = content["card"]
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise RefusalError(f"is not a condmeta model. {WRITTEN}")
    return content


def _check_table(table: Any) -> None:
    for size, crc, sha256 in table:
        if not (type(size) is int and size >= 0 and type(crc) is int and 0 <= crc < 2**32):
            raise RefusalError(f"is damaged: its list of arrays makes no sense. {DAMAGED}")
        if not isinstance(sha256, str):
            raise RefusalError(f"is damaged: its list of arrays makes no sense. {DAMAGED}")
