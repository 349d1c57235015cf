"""Formats, paths, pipes and what is wrong with them; what is written reads back."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from condmeta.errors import DataError
from condmeta.tables.files import (
    as_text,
    check_output,
    read_batches,
    read_table,
    write_parts,
    write_table,
)
from condmeta.tables.files.dialect import CsvOptions

TABLE = pa.table(
    {
        "id": [7, 12, 12],
        "x": [0.5, None, 1e-300],
        "name": ["a, b", 'say "hi"', None],
        "yes": [True, False, None],
        "kind": pa.array(["u", "v", "u"]).dictionary_encode(),
    }
)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "feather"])
def test_what_is_written_reads_back(tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    write_table(TABLE, path)
    assert read_table(path).to_pydict() == TABLE.to_pydict()
    parts = list(read_batches(path))
    assert pa.concat_tables(parts).to_pydict() == TABLE.to_pydict()


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_parts_are_written_one_after_the_other(tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    write_parts(iter([TABLE, TABLE]), path)
    assert read_table(path).to_pydict() == pa.concat_tables([TABLE, TABLE]).to_pydict()


def test_types_can_be_kept_until_later(tmp_path):
    for name, kept in (("t.parquet", [7, 12, 12]), ("t.csv", ["7", "12", "12"])):
        write_table(TABLE, tmp_path / name)
        table = read_table(tmp_path / name, text=["id"], keep_types=True)
        assert table["id"].to_pylist() == kept
        assert as_text(table, ["id"])["id"].to_pylist() == ["7", "12", "12"]


def test_csv_is_quoted_only_where_it_must_be(tmp_path):
    write_table(pa.table({"a,b": ["x"], "c": [1.0]}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == '"a,b",c\nx,1\n'


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([7, None]), ["7", None]),
        (pa.array([7.0, None]), ["7", None]),
        (pa.array([7.5, float("nan")]), ["7.5", None]),
        (pa.array(["007", "a"]), ["007", "a"]),
        (pa.array(["007", "a"]).dictionary_encode(), ["007", "a"]),
        (pa.array([True, False]), ["true", "false"]),
    ],
)
def test_ids_of_typed_files_are_text_too(tmp_path, values, expected):
    pq.write_table(pa.table({"id": values}), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet", text=["id"])["id"].to_pylist() == expected


def test_the_format_is_detected_from_the_content_not_the_name(tmp_path):
    pq.write_table(TABLE, tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv").num_rows == 3
    (tmp_path / "t.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="is not a parquet file: it is damaged"):
        read_table(tmp_path / "t.parquet")


@pytest.mark.parametrize("writer", [pq.write_table, feather.write_feather])
def test_damaged_files(tmp_path, writer):
    path = tmp_path / "t.bin"
    writer(TABLE, path)
    path.write_bytes(path.read_bytes()[:-20])
    for reader in (read_table, lambda p: list(read_batches(p))):
        with pytest.raises(DataError, match=r"is a damaged .* file .*copy it again"):
            reader(path)


def test_twin_names_in_parquet(tmp_path):
    twins = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(twins, tmp_path / "t.parquet")
    with pytest.raises(DataError, match="Column 'a' occurs 2 times"):
        read_table(tmp_path / "t.parquet")


def test_paths_that_do_not_work(tmp_path, monkeypatch):
    (tmp_path / "sales.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"no file '.*sale.csv': did you mean '.*sales.csv'"):
        read_table(tmp_path / "sale.csv")
    with pytest.raises(DataError, match=r"There is no file '.*zzz' in the folder '.*'\."):
        read_table(tmp_path / "zzz")
    with pytest.raises(DataError, match=r"the folder '.*none' does not exist"):
        read_table(tmp_path / "none" / "zzz")
    with pytest.raises(DataError, match="is a folder: name one file in it"):
        read_table(tmp_path)

    def refuse(*args, **kwargs):
        raise PermissionError

    monkeypatch.setattr("builtins.open", refuse)  # root may read everything: chmod would not do
    with pytest.raises(DataError, match="cannot be read: no permission"):
        read_table(tmp_path / "sales.csv")


class Stdin:
    def __init__(self, content):
        self.buffer = io.BytesIO(content)


def test_standard_input(tmp_path, monkeypatch):
    for name in ("t.csv", "t.parquet", "t.feather"):
        write_table(TABLE, tmp_path / name)
        content = (tmp_path / name).read_bytes()
        for reader in (read_table, lambda p: pa.concat_tables(read_batches(p))):
            monkeypatch.setattr(sys, "stdin", Stdin(content))
            assert reader("-").to_pydict() == TABLE.to_pydict()
    monkeypatch.setattr(sys, "stdin", Stdin(b""))
    with pytest.raises(DataError, match="Standard input is empty"):
        read_table("-")


@pytest.mark.parametrize("kind", ["pipe", "packed pipe", "latin-1"])
def test_no_thread_of_arrow_holds_an_object_of_python(tmp_path, monkeypatch, kind):
    """A thread that frees one while Python shuts down ends the process with SIGABRT."""
    content = b"a,b\n1,K\xf6ln\n" if kind == "latin-1" else b"a,b\n1,Bonn\n"
    (tmp_path / "t.csv").write_bytes(content)
    packed = gzip.compress(content[:4]) + gzip.compress(content[4:])
    monkeypatch.setattr(sys, "stdin", Stdin(packed if kind == "packed pipe" else content))
    read, streams = pyarrow.csv.read_csv, []

    def spy(stream, **options):
        streams.append(stream)
        return read(stream, **options)

    monkeypatch.setattr(pyarrow.csv, "read_csv", spy)
    if kind == "latin-1":
        table = read_table(tmp_path / "t.csv", csv=CsvOptions(encoding="latin-1"))
    else:
        table = read_table("-")
    assert table.to_pydict() == {"a": [1], "b": ["Köln" if kind == "latin-1" else "Bonn"]}
    assert isinstance(streams[0], pa.BufferReader)


def test_a_named_pipe_is_read_once(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    content = b"a,b\n" + b"1,x\n" * 400_000  # more than the first megabyte
    writer = threading.Thread(target=fifo.write_bytes, args=(content,))
    writer.start()
    assert read_table(fifo).num_rows == 400_000
    writer.join()


def test_outputs_that_cannot_be_written_are_refused_first(tmp_path):
    with pytest.raises(DataError, match=r"known format: use \.csv, \.tsv, \.parquet or \.feather"):
        check_output(tmp_path / "t.xlsx")
    with pytest.raises(DataError, match=r"There is no folder '.*none' to write"):
        check_output(tmp_path / "none" / "t.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(DataError, match="is a folder"):
        check_output(tmp_path / "d.csv")
    with pytest.raises(DataError, match="Column 'a' holds lists"):
        write_table(pa.table({"a": [[1]]}), tmp_path / "t.csv")
    assert not (tmp_path / "t.csv").exists()


def test_standard_output_is_csv(capfdbinary):
    write_table(TABLE.select(["id", "name"]), "-")
    assert capfdbinary.readouterr().out == b'id,name\n7,"a, b"\n12,"say ""hi"""\n12,\n'


def test_without_pyarrow_the_remedy_is_named():
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from condmeta.tables.files import read_table\n"
        "import pathlib, tempfile\n"
        "path = pathlib.Path(tempfile.mkdtemp()) / 't.csv'; path.write_text('a,b\\n1,2\\n')\n"
        "try:\n    read_table(path)\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "condmeta[cli]"' in done.stdout


@pytest.mark.parametrize("at", range(0, 1000, 60))
def test_a_feather_file_with_damaged_values_is_a_sentence(tmp_path, at):
    """A byte is changed anywhere: the table is read, or the error names the file."""
    whole = pa.table({"a": ["x", "yy", None] * 20, "b": [1.0, 2.0, 3.0] * 20})
    path = tmp_path / "t.feather"
    feather.write_feather(whole, path, compression="uncompressed")
    content = bytearray(path.read_bytes())
    content[8 + at % (len(content) - 8)] ^= 0xFF
    path.write_bytes(content)
    said = "t.feather"
    try:
        read_table(path).to_pylist()
    except DataError as error:
        said = str(error)
    assert "t.feather" in said
