"""Damaged and crafted files: always an error message, never code, never much memory."""

import contextlib
import hashlib
import io
import json
import os
import pickle
import re
import subprocess
import sys
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest

from condmeta.errors import ModelFileError
from condmeta.persistence import container, read_card, read_model, write_model
from condmeta.persistence.npy import npy_header
from condmeta.persistence.zip_layout import Member, directory, local_header

MODEL = {"M": np.arange(12.0).reshape(3, 4), "ids": np.array(["a", 3, None], object), "s": 1.5}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "stores.condmeta"


@pytest.fixture
def good(path):
    write_model(path, MODEL, card={"engine": "numpy"})
    return path.read_bytes()


def member(array):
    return npy_header(array) + array.tobytes()


def craft(path, model, members=(), *, table=None, comment=None, text=None, card=None):
    """Write a file that is consistent down to the checksums, with any contents."""
    rows = [[len(m), zlib.crc32(m), hashlib.sha256(m).hexdigest()] for m in members]
    base = {"format": "condmeta-model", "condmeta_version": "1", "scikit_learn_version": "1.9.1"}
    if text is None:
        content = {"card": base | (card or {}), "model": model, "arrays": table or rows}
        text = json.dumps(content).encode()
    listed = [Member("meta.json", len(text), zlib.crc32(text))]
    listed += [Member(f"arrays/{i}.npy", row[0], row[1]) for i, row in enumerate(rows)]
    parts = b"".join(
        local_header(m) + data for m, data in zip(listed, [text, *members], strict=True)
    )
    comment = comment or container._comment("1", text)
    path.write_bytes(parts + directory(listed, comment))
    return path


def refused(path, sentence):
    with pytest.raises(ModelFileError, match=sentence) as caught:
        read_model(path)
    assert f"'{path}'" in str(caught.value)


def test_crafting_works(path):
    craft(path, [{"array": 0}], [member(np.arange(3))])
    assert read_model(path)[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("part", range(50))
def test_truncated(path, good, part):
    path.write_bytes(good[: len(good) * part // 50])
    sentence = "is empty" if part == 0 else "is truncated or damaged at its end. Copy it again"
    refused(path, sentence)
    with pytest.raises(ModelFileError, match=sentence):
        read_card(path)


def test_the_end_is_there_but_the_middle_is_not(path, good):
    path.write_bytes(good[:500] + good[700:])
    refused(path, "is damaged")


def test_bytes_in_front_or_behind(path, good):
    path.write_bytes(good + b"\n")
    refused(path, "truncated or damaged at its end")
    path.write_bytes(b"#!/bin/sh\n" + good)
    refused(path, "is damaged")


def test_every_flipped_bit_is_found(path, good):
    """One bit in each byte of the file: no byte is without a check."""
    card = container.read_container(path)[0]
    bits = np.random.default_rng(0).integers(0, 8, len(good))
    for position, bit in enumerate(bits.tolist()):
        data = bytearray(good)
        data[position] ^= 1 << bit
        path.write_bytes(data)
        with pytest.raises(ModelFileError):
            read_model(path)
        with contextlib.suppress(ModelFileError):
            assert read_card(path) == card


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (pickle.dumps([1]), "is a pickle, not a condmeta model. Opening a pickle can run any code"),
        (b"a,b\n1,2\n", "is not a condmeta model. Models are written by `save`"),
        (np.random.default_rng(1).bytes(5000), "is not a condmeta model"),
        (b"condmeta-model 1 1 10 " + b"0" * 64, "checksum of its meta.json"),
    ],
    ids=["pickle", "csv", "noise", "comment only"],
)
def test_foreign_files(path, data, sentence):
    path.write_bytes(data)
    refused(path, sentence)


def test_foreign_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", "hello")
    refused(path, "is a zip file, but not a condmeta model")
    np.savez(path, a=np.arange(3))
    refused(path.with_name(path.name + ".npz"), "is a zip file, but not a condmeta model")


def repack(path, change):
    """Pack the members again with zipfile, and put the right comment on it."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
        comment = archive.comment
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = comment
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr, info.create_system = 0o100644 << 16, 3
            archive.writestr(info, data)
        change(archive)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.writestr(zipfile.ZipInfo("arrays/0.npy"), b"other"),
        lambda a: a.writestr(zipfile.ZipInfo("../../evil"), b"other"),
        lambda a: a.writestr(zipfile.ZipInfo("model.pkl"), pickle.dumps(1)),
    ],
    ids=["duplicate", "path", "pickle inside"],
)
def test_extra_members(path, good, change):
    repack(path, lambda archive: None)
    assert path.read_bytes() == good  # zipfile and condmeta agree on the layout
    repack(path, change)
    refused(path, "is damaged")


def test_compressed_member(path):
    """A bomb, 16 MB in 16 kB: the declared sizes exceed the file, so nothing is unpacked."""
    write_model(path, np.zeros(2_000_000), card={})
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
        comment = archive.comment
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = comment
        for name, data in members.items():
            stored = name == "meta.json"
            archive.writestr(name, data, zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 40_000
    assert peak(lambda: refused(path, "is damaged")) < 2_000_000


@pytest.mark.parametrize(("offset", "value"), [(6, 1), (8, 8)], ids=["encrypted", "deflated"])
def test_flags_of_a_member(path, good, offset, value):
    data = bytearray(good)
    data[data.index(b"arrays/0.npy") - 30 + offset] = value
    path.write_bytes(data)
    refused(path, "its zip headers do not match its contents")


def test_overlapping_members(path):
    """Two entries of the directory for the same bytes."""
    data = member(np.arange(1000.0))
    row = [len(data), zlib.crc32(data), hashlib.sha256(data).hexdigest()]
    craft(path, [{"array": 0}, {"array": 1}], [data], table=[row, row])
    refused(path, "its size or its end is wrong")


def header(descr="'<f8'", order="False", shape="(1,)", end=", }"):
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}{end}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (header(shape="(1000000000000,)"), "declares shape .1000000000000,. of float64"),
        (header(shape="(1000000000, 1000000000)"), "does not match the 8 bytes"),
        (header(shape="(-1,)"), "not of plain numbers"),
        (header(shape="(4294967296, 4294967296, 1)"), "does not match the 8 bytes"),
        (header(shape="(" + "9" * 30 + ",)"), "not of plain numbers"),
        (header(shape="(" + "1, " * 70 + ")"), "is damaged"),
        (header(shape="(0, 999999999999999999)"), "does not match the 8 bytes"),
        (header(shape="(1.0,)"), "not of plain numbers"),
        (header(shape="(True,)"), "not of plain numbers"),
        (header(order="True"), "not of plain numbers"),
        (header("'|O'"), "not of plain numbers"),
        (header("'<c16'"), "not of plain numbers"),
        (header("'<M8[s]'"), "not of plain numbers"),
        (header("'|V8'"), "not of plain numbers"),
        (header("'|S8'"), "not of plain numbers"),
        (header("[('a', '<f8')]"), "not of plain numbers"),
        (header("'<U0'", shape="(1000000000000000,)"), "not of plain numbers"),
        (header("'<U999999999'", shape="(0,)"), "is damaged"),
        (header(end=", 'x': __import__('os')}"), "not of plain numbers"),
        (b"\x93NUMPY\x02\x00" + header()[8:], "not in NumPy's format"),
        (b"\x93NUMPY\x01\x00\xff\xff", "too long"),
        (b"\x93NUM", "not in NumPy's format"),
        (pickle.dumps(np.arange(3)), "not in NumPy's format"),
        (header("'|b1'", shape="(8,)"), "impossible values"),
        (header("'<U2'"), "impossible values"),
    ],
)
def test_crafted_arrays(path, data, sentence):
    craft(path, {"array": 0}, [data + b"\xff" * 8])
    assert peak(lambda: refused(path, sentence)) < 1_000_000


def test_empty_arrays_with_absurd_shapes(path):
    craft(path, {"array": 0}, [header(shape="(0, 999999999999999999, 999999999999999999)")])
    refused(path, "is damaged")


def test_newer_format(path):
    craft(path, 1, comment=b"condmeta-model 12 9.4.1 100 " + b"a" * 64)
    refused(
        path, "has model format 12, written by condmeta 9.4.1; this condmeta reads formats up to 3"
    )
    with pytest.raises(ModelFileError, match=r"Upgrade condmeta to 9.4.1 or later"):
        read_card(path)


@pytest.mark.parametrize("name", ["Nothing", "os.system", "sklearn.svm.SVC", "builtins.eval"])
def test_unknown_class(path, name):
    craft(path, {"object": {"class": name, "state": {}}})
    refused(
        path, f"an object of class '{name}', which this version of condmeta does not know. Upgrade"
    )


def column(codes, parts):
    return {"list": {"column": {"codes": codes, "parts": parts}}}


INTS = member(np.arange(3))
BYTES = member(np.zeros(3, np.uint8))


@pytest.mark.parametrize(
    ("model", "members"),
    [
        ({"object": {"class": [], "state": {}}}, []),
        ({"object": {"class": "sklearn.preprocessing.StandardScaler", "state": {"a b": 1}}}, []),
        (
            {"object": {"class": "sklearn.preprocessing.StandardScaler", "state": {"__init__": 1}}},
            [],
        ),
        ({"object": {"class": "sklearn.preprocessing.StandardScaler"}}, []),
        ({"no such tag": 1}, []),
        ({"__init__": []}, []),
        ({"finish": []}, []),
        ({"tuple": [], "list": []}, []),
        ({}, []),
        ({"type": "os"}, []),
        ({"dtype": "i8,f8"}, []),
        ({"float": "1"}, []),
        ({"scalar": ["|O", "00"]}, []),
        ({"scalar": ["|b1", "07"]}, []),
        ({"scalar": ["<f8", "00"]}, []),
        ({"scalar": ["<U1", "ffffffff"]}, []),
        ({"slice": [1]}, []),
        ({"date": "yesterday"}, []),
        ({"map": [[1, 2], [3]]}, []),
        ({"map": [[[1]], [3]]}, []),
        ({"objects": [[3], [1, 2]]}, []),
        ({"objects": [[10**12], []]}, []),
        ({"list": {"objects": 1}}, []),
        ({"array": 0}, []),
        ({"array": -1}, [INTS]),
        ({"array": True}, [INTS]),
        ({"array": "0"}, [INTS]),
        ([{"array": 0}, {"array": 0}], [INTS]),
        (1, [INTS]),
        (column(None, [["none", None]]), []),
        (column(None, [["int", 0]]), [BYTES]),
        (column(None, [["int", 0]]), [member(np.zeros((2, 2), np.int64))]),
        (column(None, [["eval", 0]]), [INTS]),
        (column(0, [["int", 1]]), [BYTES, member(np.arange(2))]),
        (column(0, []), [BYTES]),
        (column(None, [["str", [0, 1]]]), [INTS, member(np.zeros(4, np.uint8))]),
        (column(None, [["str", [0, 1]]]), [member(np.array([5, -2])), BYTES]),
        (
            column(None, [["str", [0, 1]]]),
            [member(np.array([2**62] * 4)), member(np.zeros(0, np.uint8))],
        ),
        (
            column(None, [["str", [0, 1]]]),
            [member(np.array([3])), member(np.full(3, 255, np.uint8))],
        ),
        (column(None, [["date", [0, 1]]]), [member(np.array([3])), BYTES]),
    ],
)
def test_crafted_values(path, model, members):
    craft(path, model, members)
    refused(path, "is damaged|cannot be opened")


def meta(version="1", arrays="[]"):
    card = f'{{"format": "condmeta-model", "condmeta_version": "{version}"}}'
    return f'{{"card": {card}, "model": 1, "arrays": {arrays}}}'.encode()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b'{"card": {}, "model": 1, "arrays": []}',
        b'{"card": [], "model": 1, "arrays": []}',
        b'{"card": {"format": "condmeta-model"}, "model": 1}',
        b'{"card": {"format": "condmeta-model"}, "model": 1, "arrays": []}',
        meta(arrays="[[]]"),
        meta(arrays='[[-9, 0, ""]]'),
        meta(arrays="[[9, 0, 0]]"),
        meta(arrays="3"),
        meta(version="2"),
        b"9" * 5000,
    ],
)
def test_crafted_json(path, text):
    craft(path, None, text=text)
    refused(path, "is damaged|is not a condmeta model")
    with pytest.raises(ModelFileError):
        read_card(path)


@pytest.mark.parametrize("pair", ["[]", ('{"list":', "}")])
def test_deep_nesting(path, pair):
    levels = 4000
    model = pair[0] * levels + "1" + pair[1] * levels
    card = '{"format": "condmeta-model", "condmeta_version": "1", "scikit_learn_version": "1"}'
    craft(path, None, text=f'{{"card": {card}, "model": {model}, "arrays": []}}'.encode())
    refused(path, "is damaged: it is nested too deeply")


def peak(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def quiet_read(path):
    with contextlib.suppress(ModelFileError):
        read_model(path)


def many(text, count):
    card = '{"format": "condmeta-model", "condmeta_version": "1", "scikit_learn_version": "1"}'
    model = ",".join([text] * count)
    return f'{{"card": {card}, "model": [{model}], "arrays": []}}'.encode()


@pytest.mark.parametrize(
    "make",
    [
        lambda p: craft(p, None, text=many("[]", 300_000)),
        lambda p: craft(p, None, text=many("{}", 300_000)),
        lambda p: craft(p, None, text=many("0.5", 300_000)),
        lambda p: craft(p, None, text=many('{"tuple":[]}', 20_000).ljust(1_900_000)),
        lambda p: craft(p, column(0, [["none", None]]), [member(np.zeros(10**6, np.uint8))]),
        lambda p: craft(p, column(None, [["bool", 0]]), [member(np.zeros(10**6, bool))]),
        lambda p: craft(
            p,
            column(None, [["str", [0, 1]]]),
            [member(np.full(10**5, 2)), member(np.full(2 * 10**5, 65, np.uint8))],
        ),
        lambda p: craft(
            p,
            column(None, [["tuple", [0, {"codes": 1, "parts": [["none", None]]}]]]),
            [member(np.ones(10**5, np.int64)), member(np.zeros(10**5, np.uint8))],
        ),
        lambda p: craft(p, {"array": 0}, [header(shape="(1000000,)") + b"\0" * 8 * 10**6]),
    ],
    ids=["lists", "dicts", "floats", "tuples", "nones", "bools", "texts", "id tuples", "array"],
)
def test_memory_is_bounded_by_the_size_of_the_file(path, make):
    make(path)
    assert peak(lambda: quiet_read(path)) < 20 * path.stat().st_size + 1_000_000


def test_json_heavy_models_are_padded_so_that_they_can_be_read(path):
    model = [{"a": [i, [i]]} for i in range(20_000)]
    write_model(path, model, card={})
    assert peak(lambda: quiet_read(path)) < 20 * path.stat().st_size + 1_000_000
    assert read_model(path) == model


def test_reading_imports_nothing_that_a_file_names(tmp_path):
    names = [
        "this.Zen",
        "antigravity.fly",
        "sklearn.svm.SVC",
        "xmlrpc.client.dumps",
        "pickle.loads",
    ]
    for i, name in enumerate(names):
        craft(tmp_path / str(i), {"object": {"class": name, "state": {}}})
        craft(tmp_path / f"{i}t", {"type": name})
    write_model(tmp_path / "fine", MODEL, card={})
    code = """
import os, sys
from condmeta.errors import ModelFileError
from condmeta.persistence import read_model
read_model(os.path.join(sys.argv[1], "fine"))
before = set(sys.modules)
for name in sorted(os.listdir(sys.argv[1])):
    try:
        read_model(os.path.join(sys.argv[1], name))
    except ModelFileError:
        pass
    else:
        assert name == "fine", name
new = set(sys.modules) - before
assert not new, new
assert not {"this", "antigravity", "xmlrpc", "sklearn"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=60)


def test_pickles_in_the_place_of_arrays_do_not_run(path):
    class Evil:
        def __reduce__(self):
            return os.abort, ()

    buffer = io.BytesIO()
    np.save(buffer, np.array([Evil()], object), allow_pickle=True)
    craft(path, {"array": 0}, [buffer.getvalue()])
    refused(path, re.escape("not of plain numbers, booleans or text"))
