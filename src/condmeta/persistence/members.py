"""The arrays of a model file, read when they are needed: whole, or some rows of a large one.

A large array has a checksum for each 64 KiB of its bytes. To read some of its rows, the pieces that
hold them are read and checked: what is used was checked, and the rest of the file is not touched.
"""

from __future__ import annotations

import hashlib
import io
import math
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from condmeta.persistence.file_errors import COPY_AGAIN, InvalidFileError, damaged
from condmeta.persistence.npy import raw_bytes, read_header, read_npy, require_valid
from condmeta.persistence.zip_layout import Member, local_header

LARGE = 1 << 20  # bytes from which an array has checksums of its pieces
PIECE = 1 << 16
DIGEST = 64  # characters of a checksum


def checksum(*parts: Any) -> str:
    """Return the SHA-256 of some bytes."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def pieces(header: bytes, data: memoryview) -> str:
    """Return the checksums of the pieces of an array, one after another."""
    first = PIECE - len(header)
    rest = range(first, data.nbytes, PIECE)
    found = [checksum(header, data[:first]), *(checksum(data[lo : lo + PIECE]) for lo in rest)]
    return "".join(found)


def expect(file: BinaryIO, expected: bytes) -> None:
    """Raise if the next bytes are others."""
    if file.read(len(expected)) != expected:
        raise InvalidFileError(
            "is damaged or was packed again by another program: "
            f"its zip headers do not match its contents. {COPY_AGAIN}"
        )


class StoredArray(NamedTuple):
    """An array in an open file: where its member begins, and its checksums."""

    file: BinaryIO
    begin: int
    member: Member
    sha256: str
    pieces: str | None = None

    def read(self) -> np.ndarray:
        """Return the array."""
        self._enter()
        header, array = read_npy(self.file, self.member.size)
        if checksum(header, raw_bytes(array).data) != self.sha256:
            raise damaged("the checksum of an array is wrong")
        return array

    def rows(self, at: np.ndarray) -> np.ndarray:
        """Return the rows at positions `at`, which rise."""
        if self.pieces is None:
            array = self.read()
            return array[_within(at, array.shape)]
        self._enter()
        first = self._piece(0)
        header, dtype, shape = read_header(io.BytesIO(first), self.member.size)
        width = dtype.itemsize * math.prod(shape[1:])
        begins = len(header) + _within(at, shape) * width
        found = np.empty((len(at), *shape[1:]), dtype)  # not more than the array: rows differ
        if not found.size:
            return found
        known: dict[int, bytes] = {0: first}
        flat, out = memoryview(raw_bytes(found).data), 0
        for begin in begins.tolist():
            inner = range(begin // PIECE, (begin + width - 1) // PIECE + 1)
            known = {i: known[i] if i in known else self._piece(i) for i in inner}
            row = b"".join(known.values())[begin - inner[0] * PIECE :][:width]
            flat[out : out + width] = row
            out += width
        require_valid(found)
        return found

    def _enter(self) -> None:
        """Go to the first byte of the array's member, past its zip header."""
        self.file.seek(self.begin)
        expect(self.file, local_header(self.member))

    def _piece(self, i: int) -> bytes:
        self.file.seek(self.begin + len(local_header(self.member)) + i * PIECE)
        data = self.file.read(min(PIECE, self.member.size - i * PIECE))
        if checksum(data) != (self.pieces or "")[i * DIGEST : (i + 1) * DIGEST]:
            raise damaged("the checksum of an array is wrong")
        return data


def _within(at: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if not shape or (len(at) and at[-1] >= shape[0]):
        raise ValueError("an array has fewer rows than there are tasks")
    return at
