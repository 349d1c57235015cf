"""Arrays as `.npy` bytes, with a parser for headers that may be hostile.

`numpy.load` allocates what a header declares. Here a header must agree with the number of bytes in
the file before any memory is allocated. Only plain numbers, booleans and fixed-width text are read:
no objects, no records, no Fortran order.
"""

import math
import re
import struct
from typing import BinaryIO

import numpy as np

from condmeta.persistence.file_errors import COPY_AGAIN, InvalidFileError, damaged

DTYPE = re.compile(r"[<>|](?:f[248]|[iu][1248]|b1|U[1-9]\d{0,8})")

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rf"\{{'descr': '({DTYPE.pattern})', 'fortran_order': False, "
    r"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n"
)
_PREFIX = len(_MAGIC) + 2
_HEADER_LIMIT = 4096


def is_plain(dtype: np.dtype) -> bool:
    """Return whether a model file can hold arrays of this dtype."""
    return DTYPE.fullmatch(dtype.str) is not None


def npy_header(array: np.ndarray) -> bytes:
    """Return the header that, followed by the bytes of a C-ordered array, makes a `.npy` file."""
    text = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': {array.shape!r}, }}"
    # NumPy's rule: the data start at a multiple of 64 bytes.
    text += " " * (-(_PREFIX + len(text) + 1) % 64) + "\n"
    return _MAGIC + struct.pack("<H", len(text)) + text.encode("ascii")


def raw_bytes(array: np.ndarray) -> np.ndarray:
    """View a C-ordered array as its bytes, without a copy."""
    return array.reshape(-1).view(np.uint8)


def read_npy(file: BinaryIO, size: int) -> tuple[bytes, np.ndarray]:
    """Read one `.npy` member of `size` bytes; return its header and its array."""
    header, dtype, shape = read_header(file, size)
    array = np.empty(shape, dtype)
    if file.readinto(raw_bytes(array).data) != size - len(header):  # type: ignore[attr-defined]
        raise InvalidFileError(f"is truncated. {COPY_AGAIN}")
    require_valid(array)
    return header, array


def read_header(file: BinaryIO, size: int) -> tuple[bytes, np.dtype, tuple[int, ...]]:
    """Read the header of a member of `size` bytes; return it, and the dtype and shape it tells."""
    prefix = file.read(min(_PREFIX, size))
    if len(prefix) < _PREFIX or not prefix.startswith(_MAGIC):
        raise damaged("one of its arrays is not in NumPy's format")
    length = int.from_bytes(prefix[-2:], "little")
    if length > min(_HEADER_LIMIT, size - _PREFIX):
        raise damaged("the header of an array is too long")
    header = file.read(length)
    match = _HEADER.fullmatch(header.decode("latin-1"))
    if match is None:
        raise InvalidFileError(
            "holds an array that is not of plain numbers, booleans or text in C order. "
            f"It was not written by condmeta, or is damaged. {COPY_AGAIN}"
        )
    dtype = np.dtype(match[1])
    shape = tuple(int(n) for n in match[2].split(",") if n.strip())
    left = size - _PREFIX - length
    if math.prod(shape) * dtype.itemsize != left:
        declared = f"an array declares shape {shape} of {dtype}"
        raise damaged(f"{declared}, which does not match the {left} bytes stored for it")
    return prefix + header, dtype, shape


def require_valid(array: np.ndarray) -> None:
    """Raise if bytes are not valid for their dtype; NumPy would fail later."""
    valid = True
    if array.dtype.kind == "b":
        valid = raw_bytes(array).max(initial=0) <= 1
    if array.dtype.kind == "U" and array.size:
        valid = array.reshape(-1).view(array.dtype.str[0] + "u4").max() <= 0x10FFFF
    if not valid:
        raise damaged(f"an array of {array.dtype} holds impossible values")
