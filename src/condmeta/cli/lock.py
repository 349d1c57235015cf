"""One writer at a time: a lock beside a model file, which ends with the process that holds it."""

import contextlib
import errno
import os
import time
from collections.abc import Iterator

from condmeta.errors import DataError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

PAUSE = 0.05  # seconds between two attempts
_BUSY = errno.EACCES, errno.EAGAIN, errno.EDEADLK


@contextlib.contextmanager
def locked(path: str, wait: float) -> Iterator[None]:
    """Hold the lock of a file that will be read and replaced; wait for it at most so long.

    The lock is that of an open file `.NAME.lock` in the same folder: the system frees it when the
    process ends, also after a kill. Raise a DataError if another process keeps it for longer.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    lock, end = os.path.join(folder, f".{name}.lock"), time.monotonic() + wait
    while (descriptor := _attempt(lock)) is None:
        if time.monotonic() >= end:
            raise DataError(
                f"Another process is changing '{path}' and did not finish within {wait:g} s, so "
                "this command changed nothing. Run it again later, or wait longer with --wait "
                "SECONDS."
            )
        time.sleep(PAUSE)
    try:
        yield
    finally:
        if os.name == "nt":  # an open file cannot be removed there
            os.close(descriptor)
        with contextlib.suppress(OSError):  # on Windows the next process may hold it already
            os.unlink(lock)
        if os.name != "nt":
            os.close(descriptor)


def _attempt(lock: str) -> int | None:
    """Return the descriptor of the locked file, or None if another process holds the lock."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    except PermissionError:
        if os.name == "nt":  # being removed by the process that held it
            return None
        raise DataError(
            f"'{os.path.dirname(lock)}' cannot be written: no permission to change a model in it."
        ) from None
    try:
        _lock(descriptor)
        # The process that held the lock has removed its file: then this is the lock of no one.
        if os.path.samestat(os.fstat(descriptor), os.stat(lock)):
            return descriptor
    except OSError as error:
        if error.errno not in (*_BUSY, errno.ENOENT):
            os.close(descriptor)
            raise
    os.close(descriptor)
    return None


def _lock(descriptor: int) -> None:
    """Lock an open file, or raise an OSError at once if another process has locked it."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
