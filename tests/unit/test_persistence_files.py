"""Model files as a user sees them: complete or absent, the same bytes, a card, clear errors."""

import errno
import json
import os
import subprocess
import sys
import zipfile
from datetime import UTC, datetime

import numpy as np
import pytest

from condmeta.errors import ModelFileError
from condmeta.persistence import (
    atomic,
    container,
    model_file,
    read_card,
    read_model,
    write_model,
    zip_layout,
)

MODEL = {
    "M": np.arange(12.0).reshape(3, 4),
    "ids": np.array(["a", "b", 3, None], object),
    "names": ("x1", "x2"),
    "empty": np.zeros((0, 2)),
}


def equal(a, b):
    return list(a) == list(b) and all(np.array_equal(a[k], b[k]) for k in a)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "stores.condmeta"


def test_round_trip(path):
    write_model(path, MODEL, card={})
    assert equal(read_model(path), MODEL)
    assert read_model(str(path))["M"].flags.writeable


def test_any_zip_reader_opens_it(path):
    write_model(path, MODEL, card={"engine": "numpy"})
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())
        assert archive.namelist()[:2] == ["meta.json", "arrays/0.npy"]
        assert json.loads(archive.read("meta.json"))["card"]["engine"] == "numpy"
        with archive.open("arrays/0.npy") as member:
            assert np.array_equal(np.load(member, allow_pickle=False), MODEL["M"])


def test_card(path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    settings = {"lam": np.float64(0.5), "step": float("inf"), "sizes": (3, 4), "M": None}
    write_model(path, MODEL, card={"engine": "numpy", "settings": settings})
    card = read_card(path)
    assert card["format"] == "condmeta-model"
    assert card["format_version"] == 2
    assert card["created"] == "1970-01-02T00:00:00+00:00"
    assert card["class"] == "dict"
    assert card["engine"] == "numpy"
    assert card["settings"] == {"lam": 0.5, "step": "inf", "sizes": [3, 4], "M": None}
    assert card["numpy_version"] == np.__version__
    assert card["scikit_learn_version"].count(".") >= 1
    assert {"condmeta_version", "python_version"} <= card.keys()


def test_created_is_now_in_utc(path, monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    write_model(path, MODEL, card={})
    age = datetime.now(UTC) - datetime.fromisoformat(read_card(path)["created"])
    assert -1 <= age.total_seconds() < 60


def test_an_uninstalled_condmeta_still_saves(path, monkeypatch):
    monkeypatch.setattr(model_file, "_version", lambda package: "0+unknown")
    write_model(path, MODEL, card={})
    assert read_card(path)["condmeta_version"] == "0+unknown"


def test_version_of_a_missing_package():
    assert model_file._version("condmeta-no-such-package") == "0+unknown"


@pytest.mark.parametrize(
    ("card", "error", "sentence"),
    [
        ({"created": 1}, ValueError, "must not set created"),
        (
            {"a": {"b": [object()]}},
            ModelFileError,
            r"card\['a'\]\['b'\]\[0\] is an object of class",
        ),
        ({"a": {1: 2}}, ModelFileError, r"card\['a'\] has the key 1"),
    ],
)
def test_bad_cards(path, card, error, sentence):
    with pytest.raises(error, match=sentence):
        write_model(path, MODEL, card=card)
    assert not path.exists()


def test_bad_epoch(path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(
        ModelFileError, match=r"SOURCE_DATE_EPOCH must be .* Got 'yesterday' instead"
    ):
        write_model(path, MODEL, card={})


def test_same_object_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    for name in "ab":
        write_model(tmp_path / name, MODEL, card={})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_card_is_read_without_the_arrays(path):
    write_model(path, {"M": np.zeros(1_000_000)}, card={"engine": "numpy"})
    data = bytearray(path.read_bytes())
    data[4_000_000] ^= 1
    path.write_bytes(data)
    assert read_card(path)["engine"] == "numpy"
    with pytest.raises(ModelFileError, match=r"checksum of an array"):
        read_model(path)


class CrashError(Exception):
    pass


def crash(*args, **kwargs):
    raise CrashError


@pytest.mark.parametrize("place", ["replace", "fsync", "header", "half"])
def test_a_crash_while_writing_leaves_the_old_file(path, monkeypatch, place):
    write_model(path, {"old": 1}, card={})
    before = path.read_bytes()
    if place in ("replace", "fsync"):
        monkeypatch.setattr(atomic.os, place, crash)
    elif place == "header":
        monkeypatch.setattr(container, "npy_header", crash)
    else:
        calls = iter([container.raw_bytes] * 5)
        monkeypatch.setattr(container, "raw_bytes", lambda a: next(calls, crash)(a))
    with pytest.raises(CrashError):
        write_model(path, MODEL, card={})
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
    assert read_model(path) == {"old": 1}


def test_what_cannot_be_stored_leaves_the_old_file(path):
    write_model(path, {"old": 1}, card={})
    with pytest.raises(ModelFileError, match=r"pickle"):
        write_model(path, {"new": print}, card={})
    assert read_model(path) == {"old": 1}


@pytest.mark.skipif(os.name == "nt", reason="links and modes of POSIX")
def test_links_and_modes_are_kept(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    write_model(real, {"old": 1}, card={})
    real.chmod(0o640)
    link.symlink_to(real)
    write_model(link, {"new": 1}, card={})
    assert link.is_symlink()
    assert read_model(real) == {"new": 1}
    assert real.stat().st_mode & 0o777 == 0o640


def test_folders_and_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_model(tmp_path / "none")
    for function in (read_model, read_card):
        with pytest.raises(ModelFileError, match=r"is a folder. Give the path of a model file"):
            function(tmp_path)
    with pytest.raises(ModelFileError, match=r"is a folder. Give the path of a file to write"):
        write_model(tmp_path, MODEL, card={})
    with pytest.raises(FileNotFoundError, match=r"Cannot write into the folder .*none"):
        write_model(tmp_path / "none" / "m", MODEL, card={})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match=r"not a regular file"):
        read_model(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match=r"not a regular file"):
        write_model(tmp_path / "pipe", MODEL, card={})


def test_a_folder_that_cannot_be_written(path, monkeypatch):
    def refuse(*args):
        raise PermissionError(errno.EACCES, "Permission denied", args[0])

    write_model(path, {"old": 1}, card={})
    monkeypatch.setattr(atomic.os, "open", refuse)
    with pytest.raises(PermissionError, match=r"Cannot write into .*Permission denied") as caught:
        write_model(path, MODEL, card={})
    assert caught.value.filename == str(path)


def test_a_protected_file_is_kept(path, monkeypatch):
    write_model(path, {"old": 1}, card={})
    monkeypatch.setattr(atomic.os, "access", lambda *args: False)
    with pytest.raises(
        PermissionError, match=r"The old file is write-protected: .*stores.condmeta"
    ):
        write_model(path, MODEL, card={})
    assert read_model(path) == {"old": 1}


def test_large_files_and_many_members_use_zip64(path, monkeypatch):
    """With lowered limits the records of files beyond 4 GiB are written; zipfile reads them."""
    monkeypatch.setattr(zip_layout, "_LIMIT32", 300)
    monkeypatch.setattr(zip_layout, "_LIMIT16", 4)
    model = [np.arange(100.0), *(np.arange(i) for i in range(6))]
    write_model(path, model, card={})
    assert all(np.array_equal(a, b) for a, b in zip(read_model(path), model, strict=True))
    # zipfile reads the wide fields only where the narrow ones are all ones.
    data = path.read_bytes()
    wide = data.replace((300).to_bytes(4, "little"), b"\xff" * 4)
    end = wide.rindex(b"PK\x05\x06")
    wide = wide[: end + 8] + b"\xff" * 4 + wide[end + 12 :]
    path.write_bytes(wide)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) == 8
        with archive.open("arrays/0.npy") as member:
            assert np.array_equal(np.load(member), model[0])


def test_more_members_than_a_plain_zip_can_count(path):
    write_model(path, [np.zeros(0)] * 65_600, card={})
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == 65_601
    assert len(read_model(path)) == 65_600


def test_importing_loads_no_scikit_learn_and_no_scipy():
    code = (
        "import sys, condmeta.persistence as p; "
        "p.encode([1]); bad = {'sklearn', 'scipy', 'pandas', 'joblib'} & set(sys.modules); "
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
