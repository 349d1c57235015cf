"""Replace a file all at once: a reader sees the old file or the new one, never a mixture."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from typing import BinaryIO

from condmeta.errors import ModelFileError


def write_atomically(path: str | os.PathLike, write: Callable[[BinaryIO], None]) -> None:
    """Call `write` with a temporary file beside `path`, then rename that file to `path`.

    If anything fails, the temporary file is removed and an old file stays unchanged.
    """
    target = os.path.realpath(os.fspath(path))  # write through a link, do not replace it
    folder = os.path.dirname(target)
    mode = _mode_of_old_file(path, target)
    temporary = os.path.join(folder, f".{os.path.basename(target)}.{os.urandom(6).hex()}.tmp")
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(temporary, flags, 0o666)
    except OSError as error:
        # Name the folder: the name of a temporary file would confuse.
        reason = f"Cannot write a model into the folder '{folder}' ({error.strerror})"
        raise OSError(error.errno, reason, os.fspath(path)) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    # Make the new name durable; Windows and some file systems cannot.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _mode_of_old_file(path: str | os.PathLike, target: str) -> int | None:
    try:
        old = os.stat(target).st_mode
    except OSError:
        return None
    if not stat.S_ISREG(old):
        kind = "a folder" if stat.S_ISDIR(old) else "not a regular file"
        raise ModelFileError(
            f"'{os.fspath(path)}' is {kind}. Give the path of a file to save the model to."
        )
    if not os.access(target, os.W_OK):
        # Replacing works without write permission, but a protected file should be kept.
        raise PermissionError(errno.EACCES, "The old model is write-protected", os.fspath(path))
    return stat.S_IMODE(old)
