"""Replace a file all at once: a reader sees the old file or the new one, never a mixture."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from typing import BinaryIO

from condmeta.errors import ModelFileError
from condmeta.persistence.temporary import create_temporary, remove_leftovers
from condmeta.warn import warn

_ACCESS_LIST = "system.posix_acl_access"  # rights beyond the nine bits of the mode
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def write_atomically(path: str | os.PathLike, write: Callable[[BinaryIO], object]) -> None:
    """Call `write` with a temporary file beside `path`, then rename that file to `path`.

    If anything fails, the temporary file is removed and an old file stays unchanged. A temporary
    file that a killed process left is removed at the next call. From its first byte on the new file
    has the mode and the owner of the old one; where the system does not allow this, it has fewer
    rights, and a warning says so. The data are on the disk before the rename. A symbolic link
    stays one; other hard links keep the old contents, with a warning.
    """
    name = os.fspath(path)
    target = os.path.realpath(name)  # write through a link, do not replace it
    folder = os.path.dirname(target)
    old = _old_file(name, target)
    remove_leftovers(target)
    try:
        descriptor, temporary = create_temporary(target, 0o666 if old is None else 0o600)
    except OSError as error:
        # Name the folder: the name of a temporary file would confuse.
        reason = f"Cannot write into the folder '{folder}' ({error.strerror})"
        raise OSError(error.errno, reason, name) from error
    notes: list[str] = []
    try:
        with os.fdopen(descriptor, "wb") as file:
            if old is not None:
                notes = _copy_rights(file.fileno(), target, old)
            _write_durably(file, write, name)
            if os.name != "nt":  # still open, so that no one takes it for a leftover
                os.replace(temporary, target)
        if os.name == "nt":
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)
    for note in notes:
        warn(f"'{name}' {note}", UserWarning)


def _old_file(name: str, target: str) -> os.stat_result | None:
    try:
        old = os.stat(target)
    except OSError:
        return None
    if not stat.S_ISREG(old.st_mode):
        kind = "a folder" if stat.S_ISDIR(old.st_mode) else "not a regular file"
        raise ModelFileError(f"'{name}' is {kind}. Give the path of a file to write to.")
    if not os.access(target, os.W_OK):
        # Replacing works without write permission, but a protected file should be kept.
        raise PermissionError(errno.EACCES, "The old file is write-protected", name)
    return old


def _copy_rights(descriptor: int, target: str, old: os.stat_result) -> list[str]:
    """Give the new file the owner and the rights of the old one; return what differs, in words."""
    notes = []
    if old.st_nlink > 1:
        notes.append("had other names (hard links): they keep the old contents.")
    if not hasattr(os, "fchown"):
        return notes
    mode = stat.S_IMODE(old.st_mode)
    for owner in (old.st_uid, old.st_gid), (-1, old.st_gid):  # at least the group
        with contextlib.suppress(OSError):
            os.fchown(descriptor, *owner)
            break
    new = os.fstat(descriptor)
    if new.st_gid != old.st_gid:
        mode &= ~stat.S_IRWXG  # another group than before must not read it
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        notes.append(
            f"belonged to user {old.st_uid} and group {old.st_gid}; the new file belongs to user "
            f"{new.st_uid} and group {new.st_gid}, because only root may give files away."
        )
    os.fchmod(descriptor, mode)
    with contextlib.suppress(OSError, AttributeError):  # most files and systems have none
        os.setxattr(descriptor, _ACCESS_LIST, os.getxattr(target, _ACCESS_LIST))
    return notes


def _write_durably(file: BinaryIO, write: Callable[[BinaryIO], object], name: str) -> None:
    """Write the contents and flush them to the disk; an error of the disk names the file."""
    try:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        # What is left in the buffer must not be written when the file is closed.
        with contextlib.suppress(OSError):
            file.close()
        reason = f"Cannot write the file ({error.strerror}); nothing was changed"
        raise OSError(error.errno, reason, name) from error


def _sync_folder(folder: str) -> None:
    """Make the new name durable; Windows and some file systems cannot."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
