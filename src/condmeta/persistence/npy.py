"""Arrays as `.npy` bytes, with a header parser that trusts nothing.

`numpy.load` allocates what a header asks for. Here a header has to agree with the number of bytes
that are really there before anything is allocated, and only plain numbers, booleans and fixed-width
text pass: no objects, no records, no Fortran order.
"""

from __future__ import annotations

import math
import re
import struct
from typing import BinaryIO

import numpy as np

from condmeta.persistence.refusal import DAMAGED, RefusalError

DTYPE = re.compile(r"[<>|](?:f[248]|[iu][1248]|b1|U[1-9]\d{0,8})")

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rf"\{{'descr': '({DTYPE.pattern})', 'fortran_order': False, "
    r"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n"
)
_PREFIX = len(_MAGIC) + 2
_HEADER_LIMIT = 4096


def is_plain(dtype: np.dtype) -> bool:
    """Tell whether arrays of this dtype can stand in a model file."""
    return DTYPE.fullmatch(dtype.str) is not None


def npy_header(array: np.ndarray) -> bytes:
    """Return the header that, followed by the bytes of a C-ordered array, makes a `.npy` file."""
    shape = tuple(int(n) for n in array.shape)
    text = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': {shape!r}, }}"
    # NumPy's rule: the data start at a multiple of 64 bytes.
    text += " " * (-(_PREFIX + len(text) + 1) % 64) + "\n"
    return _MAGIC + struct.pack("<H", len(text)) + text.encode("ascii")


def raw_bytes(array: np.ndarray) -> np.ndarray:
    """View a C-ordered array as its bytes, without a copy."""
    return array.reshape(-1).view(np.uint8)


def read_npy(file: BinaryIO, size: int) -> tuple[bytes, np.ndarray]:
    """Read one `.npy` member of `size` bytes; return its header and its array."""
    prefix = file.read(min(_PREFIX, size))
    if len(prefix) < _PREFIX or not prefix.startswith(_MAGIC):
        raise RefusalError(f"is damaged: one of its arrays is not in NumPy's format. {DAMAGED}")
    length = int.from_bytes(prefix[-2:], "little")
    if length > min(_HEADER_LIMIT, size - _PREFIX):
        raise RefusalError(f"is damaged: the header of an array is too long. {DAMAGED}")
    header = file.read(length)
    match = _HEADER.fullmatch(header.decode("latin-1"))
    if match is None:
        raise RefusalError(
            "holds an array that is not of plain numbers, booleans or text in C order. "
            f"It was not written by condmeta, or is damaged. {DAMAGED}"
        )
    dtype = np.dtype(match[1])
    shape = tuple(int(n) for n in match[2].split(",") if n.strip())
    left = size - _PREFIX - length
    if math.prod(shape) * dtype.itemsize != left:
        raise RefusalError(
            f"is damaged: an array declares shape {shape} of {dtype}, "
            f"which does not match the {left} bytes stored for it. {DAMAGED}"
        )
    array = np.empty(shape, dtype)
    if file.readinto(raw_bytes(array).data) != left:  # type: ignore[attr-defined]
        raise RefusalError(f"is truncated. {DAMAGED}")
    _check_values(array)
    return prefix + header, array


def _check_values(array: np.ndarray) -> None:
    """Refuse bytes that are no value of their dtype: NumPy would only fail on them later."""
    if array.dtype.kind == "b" and array.size:
        wrong = raw_bytes(array).max() > 1
    elif array.dtype.kind == "U" and array.size:
        wrong = array.reshape(-1).view(array.dtype.str[0] + "u4").max() > 0x10FFFF
    else:
        return
    if wrong:
        raise RefusalError(
            f"is damaged: an array of {array.dtype} holds impossible values. {DAMAGED}"
        )
