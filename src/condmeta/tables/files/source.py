"""Open a file or a pipe, and detect the format from its first bytes."""

import codecs
import io
import os
import stat
import sys
import zlib
from difflib import get_close_matches
from typing import Any, BinaryIO

from condmeta.errors import DataError
from condmeta.tables.files import arrow

HEAD = 1 << 18  # bytes in which format, delimiter and codes with leading zeros are detected
_FORMATS = {b"PAR1": "parquet", b"ARROW1": "feather", b"FEA1": "feather"}
_FOREIGN = {
    b"PK\x03\x04": "is a zip archive, an Excel workbook or a condmeta model, not a table: save the "
    "sheet of a workbook as CSV (UTF-8)",
    b"\xd0\xcf\x11\xe0": "is an old Excel workbook: save the sheet as CSV (UTF-8)",
    b"SQLite": "is a database: export the table as CSV or Parquet",
    b"%PDF": "is a PDF: save the table as CSV or Parquet",
    b"RDX": "is an R file: write the table as CSV or Parquet",
}

_MARKUP = {
    (b"<!doctype", b"<html", b"<head", b"<body", b"<table"): "an HTML page",
    (b"<?xml",): "an XML file",
    (b'{"', b"{\n", b"{\r", b"{ ", b"[{", b"[["): "a JSON file",
}


class Source:
    """An open table: its name for messages, its first bytes, and ways to read all of it."""

    def __init__(self, path: str | os.PathLike):
        path = os.fspath(path)
        self.path: str | None = None
        self.pipe: BinaryIO | None = None
        if path == "-":
            self.name, self.pipe = "Standard input", sys.stdin.buffer
            self.head = self.pipe.read(HEAD)
        else:
            self.name = f"'{path}'"
            self._open(path)
        self._raw = self.head
        self.gzipped = self.head[:2] == b"\x1f\x8b"
        if self.gzipped:
            try:
                self.head = zlib.decompressobj(31).decompress(self.head, HEAD)
            except zlib.error as error:
                raise DataError(
                    f"{self.name} is damaged ({error}): copy it again from its source."
                ) from None
        self.whole = len(self.head) < HEAD and (not self.gzipped or len(self._raw) < HEAD)
        self.format = self._find_format(path)

    def _open(self, path: str) -> None:
        try:
            mode = os.stat(path).st_mode
            if stat.S_ISDIR(mode):
                raise DataError(f"{self.name} is a folder: name one file in it.")
            file = open(path, "rb")  # noqa: SIM115  (a pipe stays open)
        except FileNotFoundError:
            raise no_file(path) from None
        except PermissionError:
            raise DataError(
                f"{self.name} cannot be read: no permission. Ask for it, or copy the file."
            ) from None
        except OSError as error:
            raise DataError(f"{self.name} cannot be opened: {error.strerror}.") from None
        self.head = file.read(HEAD)
        if stat.S_ISREG(mode):
            self.path = path
            file.close()
        else:  # a pipe can be read once only
            self.pipe = file

    def _find_format(self, path: str) -> str:
        for magic, found in _FORMATS.items():
            if self.head.startswith(magic):
                return found
        for magic, what in _FOREIGN.items():
            if self.head.startswith(magic):
                raise DataError(f"{self.name} {what}.")
        begin = self.head.lstrip(b"\xef\xbb\xbf\r\n\t ")[:64].lower()
        for marks, what in _MARKUP.items():
            if begin.startswith(marks):
                raise DataError(f"{self.name} is {what}, not a table: save the table in it as CSV.")
        suffix = os.path.splitext(path)[1].lower()
        if not self.head.strip(b"\xef\xbb\xbf\r\n\t "):
            raise DataError(f"{self.name} is empty: a table has a row of column names, then rows.")
        if suffix in (".parquet", ".pq", ".feather", ".arrow"):
            raise DataError(
                f"{self.name} is not a {suffix[1:]} file: it is damaged, or has another format. "
                "Copy it again, or rename it with the ending of its format."
            )
        return "csv"

    def stream(self) -> Any:
        """Return a stream of all bytes, decompressed; it can be read once."""
        pa = arrow.pa
        if self.path is not None:
            raw = pa.OSFile(self.path)
        else:
            raw = pa.PythonFile(_Joined(self._raw, self.pipe), mode="r")
        return pa.CompressedInputStream(raw, "gzip") if self.gzipped else raw

    def seekable(self) -> Any:
        """Return a file that can be read in any order; a pipe is read to its end."""
        if self.path is not None and not self.gzipped:
            return self.stream()
        return _in_memory(self._read())

    def utf8(self, encoding: str) -> Any:
        """Return a stream of all bytes as UTF-8, without Python.

        A thread of Arrow could hold an object of Python at the end of the process, which then ended
        with SIGABRT. So pipes and other encodings are read into memory first.
        """
        is_utf8 = codecs.lookup(encoding).name == "utf-8"
        if self.path is not None and is_utf8:
            return self.stream()
        data = self._read()
        return _in_memory(data if is_utf8 else data.decode(encoding).encode())

    def _read(self) -> bytes:
        """Return all bytes, decompressed."""
        if self.pipe is None:
            return self.stream().read()
        data = _Joined(self._raw, self.pipe).read()
        if not self.gzipped:
            return data
        return arrow.pa.CompressedInputStream(arrow.pa.BufferReader(data), "gzip").read()


def _in_memory(data: bytes) -> Any:
    """Return a file of bytes that belong to Arrow, not to Python."""
    memory = arrow.pa.BufferOutputStream()
    memory.write(data)
    return arrow.pa.BufferReader(memory.getvalue())


class _Joined(io.RawIOBase):
    """The first bytes, which were read already, then the rest of a pipe; closes the pipe."""

    def __init__(self, head: bytes, rest: BinaryIO):
        self._parts = [io.BytesIO(head), rest]

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Return `size` bytes, fewer only at the end; -1 is all."""
        left, out = -1 if size is None else size, []
        while self._parts and left:
            out.append(self._parts[0].read(left))
            if left < 0 or len(out[-1]) < left:
                part = self._parts.pop(0)
                if part is not sys.stdin.buffer:
                    part.close()
            left -= len(out[-1]) * (left > 0)
        return b"".join(out)


def require_file(path: str | os.PathLike) -> None:
    """Refuse a path where there is no file."""
    if not os.path.exists(path):
        raise no_file(path)


def no_file(path: str | os.PathLike) -> DataError:
    """Return an error for a missing file; it suggests a file of the folder with a similar name."""
    path = os.fspath(path)
    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return DataError(f"There is no file '{path}': the folder '{folder}' does not exist.")
    close = get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        near = os.path.join(folder, close[0])
        return DataError(f"There is no file '{path}': did you mean '{near}'?")
    return DataError(f"There is no file '{path}' in the folder '{os.path.abspath(folder or '.')}'.")
