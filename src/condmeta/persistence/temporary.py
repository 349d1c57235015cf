"""Temporary files beside the file that they will replace, and what a killed process left of them.

A writer holds a lock on its temporary file, and the system drops the lock when the writer ends in
any way. So a temporary file without a lock is a leftover, and the next writer removes it.
"""

import contextlib
import os
import re
import time

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_FLAGS = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
_LOOK = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_DAY = 86_400.0


def create_temporary(target: str, mode: int) -> tuple[int, str]:
    """Create a locked file beside `target`; return its descriptor and its path."""
    folder, name = os.path.split(target)
    while True:
        path = os.path.join(folder, f".{name}.{os.urandom(6).hex()}.tmp")
        descriptor = os.open(path, _FLAGS, mode)
        if not _lock(descriptor, wait=True) or os.path.exists(path):
            return descriptor, path
        os.close(descriptor)  # another writer took it for a leftover before we had the lock


def remove_leftovers(target: str) -> None:
    """Remove the temporary files of `target` that no process writes any more."""
    folder, name = os.path.split(target)
    ours = re.compile(rf"\.{re.escape(name)}\.[0-9a-f]{{12}}\.tmp")
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if ours.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    _remove_if_left(entry.path)


def _remove_if_left(path: str) -> None:
    descriptor = os.open(path, _LOOK)
    try:
        left = _lock(descriptor, wait=False)
        if left is None:  # no locks here: a file of today may still be in use
            left = time.time() - os.fstat(descriptor).st_mtime > _DAY
        if left and fcntl is not None:
            os.unlink(path)
    finally:
        os.close(descriptor)
    if left and fcntl is None:  # Windows removes closed files only
        os.unlink(path)


def _lock(descriptor: int, wait: bool) -> bool | None:
    """Lock a file for this writer; False if another one has it, None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # some network folders
        return None
    return True
