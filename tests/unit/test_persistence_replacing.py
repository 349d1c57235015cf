"""Replacing a file: rights, owner, links, leftovers of killed writers, full disks."""

import errno
import os
import signal
import stat
import subprocess
import sys
import warnings

import pytest

import condmeta as cm
from condmeta.errors import ModelFileError
from condmeta.persistence import atomic, read_model, write_model
from condmeta.persistence.atomic import write_atomically

pytestmark = pytest.mark.skipif(os.name == "nt", reason="rights and links of POSIX")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "stores.condmeta"
    write_model(path, {"old": 1}, card={})
    return path


def temporaries(path):
    return sorted(path.parent.glob(f".{path.name}.*.tmp"))


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o644])
def test_the_temporary_file_has_the_rights_of_the_old_one_before_its_first_byte(path, mode):
    path.chmod(mode)
    seen = []

    def write(file):
        (temporary,) = temporaries(path)
        seen.append((stat.S_IMODE(temporary.stat().st_mode), temporary.stat().st_size))
        file.write(b"new")

    before = os.umask(0o022)
    try:
        write_atomically(path, write)
    finally:
        os.umask(before)
    assert seen == [(mode, 0)]
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_it_is_created_private_so_that_no_one_opens_it_before_it_has_its_group(path, monkeypatch):
    path.chmod(0o664)
    modes, create = [], os.open
    monkeypatch.setattr(atomic.os, "open", lambda *args: (modes.append(args[2:]), create(*args))[1])
    write_atomically(path, lambda file: None)
    assert modes[0] == (0o600,)


def test_a_new_file_has_the_usual_rights(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "new", lambda file: file.write(b"new"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


KILLED = """
import os, signal, sys
from condmeta.persistence.atomic import write_atomically
def write(file):
    file.write(b"half of it")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
write_atomically(sys.argv[1], write)
"""


def test_the_next_write_removes_what_a_killed_one_left(path):
    path.chmod(0o600)
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path)], timeout=60)
    assert ended.returncode == -signal.SIGKILL
    (left,) = temporaries(path)
    assert stat.S_IMODE(left.stat().st_mode) == 0o600
    assert read_model(path) == {"old": 1}
    write_model(path, {"new": 1}, card={})
    assert temporaries(path) == []
    assert read_model(path) == {"new": 1}


def test_the_temporary_file_of_a_living_writer_stays(path):
    def write_inside_a_write(file):
        write_model(path, {"between": 1}, card={})
        assert len(temporaries(path)) == 1
        file.write(b"last")

    write_atomically(path, write_inside_a_write)
    assert path.read_bytes() == b"last"
    assert temporaries(path) == []


def test_only_temporary_files_of_this_file_are_removed(path):
    others = [".stores.condmeta.tmp", ".other.condmeta.0123456789ab.tmp", "x.0123456789ab.tmp"]
    for name in others:
        (path.parent / name).touch()
    (path.parent / f".{path.name}.0123456789ab.tmp").symlink_to(path)
    write_model(path, {"new": 1}, card={})
    left = set(os.listdir(path.parent))
    assert left == {*others, path.name, f".{path.name}.0123456789ab.tmp"}


def test_without_locks_only_old_temporary_files_are_removed(path, monkeypatch):
    fresh, old = (path.parent / f".{path.name}.{n * 12}.tmp" for n in "ab")
    fresh.touch()
    old.touch()
    os.utime(old, (0, 0))

    def no_locks(*args):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    write_model(path, {"new": 1}, card={})
    assert temporaries(path) == [fresh]


def test_hard_links_keep_the_old_contents_and_a_warning_says_so(path):
    other = path.parent / "other"
    os.link(path, other)
    with pytest.warns(UserWarning, match=r"stores.condmeta' had other names \(hard links\): they"):
        write_model(path, {"new": 1}, card={})
    assert read_model(path) == {"new": 1}
    assert read_model(other) == {"old": 1}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_root_keeps_the_owner(path):
    os.chown(path, 12345, 12346)
    path.chmod(0o660)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_model(path, {"new": 1}, card={})
    about = path.stat()
    assert (about.st_uid, about.st_gid) == (12345, 12346)
    assert stat.S_IMODE(about.st_mode) == 0o660


def test_another_owner_is_said_and_another_group_gets_no_rights(path, monkeypatch):
    path.chmod(0o664)
    real = os.stat

    def belongs_to_another(name, *args, **kwargs):
        about = list(real(name, *args, **kwargs))
        about[4:6] = 12345, 12346
        return os.stat_result(about)

    def refuse(*args):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(atomic.os, "stat", belongs_to_another)
    monkeypatch.setattr(atomic.os, "fchown", refuse)
    with pytest.warns(UserWarning, match=r"belonged to user 12345 and group 12346; the new file"):
        write_atomically(path, lambda file: file.write(b"new"))
    monkeypatch.undo()
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_the_data_are_on_the_disk_before_the_rename_and_the_name_after(path, monkeypatch):
    done = []
    replace, fsync = os.replace, os.fsync

    def note_fsync(descriptor):
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        done.append("folder" if folder else f"{os.fstat(descriptor).st_size} bytes")
        fsync(descriptor)

    monkeypatch.setattr(atomic.os, "fsync", note_fsync)
    monkeypatch.setattr(
        atomic.os, "replace", lambda *names: (done.append("rename"), replace(*names))
    )
    write_atomically(path, lambda file: file.write(b"123"))
    assert done == ["3 bytes", "rename", "folder"]


LIMITED = """
import resource, signal, sys
import numpy as np
from condmeta.persistence import write_model
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write_model(sys.argv[1], {"M": np.zeros(100_000)}, card={})
except OSError as error:
    print(error)
"""


def test_a_full_disk_is_said_with_the_name_of_the_file(path):
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, timeout=60
    )
    assert ended.stderr == ""
    assert "Cannot write the file (File too large); nothing was changed" in ended.stdout
    assert f"'{path}'" in ended.stdout
    assert temporaries(path) == []
    assert read_model(path) == {"old": 1}


def test_save_replaces_models_but_no_table(tmp_path):
    model = cm.PooledRegressor(lam=1.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0], task=[0, 0, 1])
    table = tmp_path / "sales.csv"
    table.write_text("store,sold\na,1\n")
    with pytest.raises(
        ModelFileError, match=r"sales.csv' is not a model file, and save would overwrite it"
    ):
        model.save(table)
    assert table.read_text() == "store,sold\na,1\n"
    other = tmp_path / "model.bin"
    model.save(other)
    model.save(other)  # a model under any name
    assert cm.load(other).predict([[1.0]], task=[0]).shape == (1,)
