"""The bytes around the members of an uncompressed zip, as a pure function of names and sizes.

A model file has exactly one valid layout. The reader computes it again and compares. Members that
overlap, repeat, are compressed, encrypted or extra need no rules of their own: the bytes differ.
"""

import struct
from typing import NamedTuple

FIRST_MEMBER = b"PK\x03\x04\x14\x00\x00\x00\x00\x00\x00\x00\x21\x00"

_LIMIT32 = 0xFFFFFFFF  # from here on a size or an offset needs a zip64 record
_LIMIT16 = 0xFFFF
_DATE = 0x21  # 1 January 1980, the first date of zip: the same model has the same bytes
_UNIX = 3 << 8
_MODE = 0o100644 << 16


class Member(NamedTuple):
    """One member of a zip: its name, size in bytes and CRC-32."""

    name: str
    size: int
    crc: int


def local_header(member: Member) -> bytes:
    """Return the header before the bytes of a member."""
    name = member.name.encode("ascii")
    wide = [member.size, member.size] if member.size >= _LIMIT32 else []
    size = min(member.size, _LIMIT32)
    extra = _zip64_extra(wide)
    version = 45 if wide else 20
    fields = (version, 0, 0, 0, _DATE, member.crc, size, size, len(name), len(extra))
    return b"PK\x03\x04" + struct.pack("<5H3L2H", *fields) + name + extra


def directory(members: list[Member], comment: bytes) -> bytes:
    """Return everything after the last member: central directory, end records, comment."""
    entries = []
    offset = 0
    for member in members:
        entries.append(_central_header(member, offset))
        offset += len(local_header(member)) + member.size
    central = b"".join(entries)
    count, size = len(members), len(central)
    end64 = b""
    if count >= _LIMIT16 or size >= _LIMIT32 or offset >= _LIMIT32:
        fields = (44, 45 | _UNIX, 45, 0, 0, count, count, size, offset)
        end64 = b"PK\x06\x06" + struct.pack("<Q2H2L4Q", *fields)
        end64 += b"PK\x06\x07" + struct.pack("<LQL", 0, offset + size, 1)
    count, size, offset = min(count, _LIMIT16), min(size, _LIMIT32), min(offset, _LIMIT32)
    end = struct.pack("<4H2LH", 0, 0, count, count, size, offset, len(comment))
    return central + end64 + b"PK\x05\x06" + end + comment


def _central_header(member: Member, offset: int) -> bytes:
    name = member.name.encode("ascii")
    wide = [member.size, member.size] if member.size >= _LIMIT32 else []
    wide += [offset] if offset >= _LIMIT32 else []
    size, offset = min(member.size, _LIMIT32), min(offset, _LIMIT32)
    extra = _zip64_extra(wide)
    version = 45 if wide else 20
    fields = (version | _UNIX, version, 0, 0, 0, _DATE, member.crc, size, size, len(name))
    fields += (len(extra), 0, 0, 0, _MODE, offset)
    return b"PK\x01\x02" + struct.pack("<6H3L5H2L", *fields) + name + extra


def _zip64_extra(values: list[int]) -> bytes:
    if not values:
        return b""
    return struct.pack(f"<2H{len(values)}Q", 1, 8 * len(values), *values)
