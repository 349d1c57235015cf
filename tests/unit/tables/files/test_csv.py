"""CSV as users have it: each oddity is handled, or refused with what to do."""

from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pytest

from condmeta.errors import DataError
from condmeta.tables.files import CsvOptions, check_columns, read_batches, read_table, write_table


@pytest.fixture
def write(tmp_path):
    """Give a function that writes bytes or text to a file and returns its path."""

    def write(content, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def read(path, **options):
    return read_table(path, **options).to_pydict()


def refuse(path, match, **options):
    with pytest.raises(DataError, match=match) as caught:
        read_table(path, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\xef\xbb\xbfa,b\n1,x\n", {"a": [1], "b": ["x"]}),  # byte-order mark
        ("a;b\n1,5;x\n-2,25;y\n", {"a": [1.5, -2.25], "b": ["x", "y"]}),
        ("a;b\n1.5;x,y\n", {"a": [1.5], "b": ["x,y"]}),
        ("a\tb\n1\tx, y; z\n", {"a": [1], "b": ["x, y; z"]}),
        ("a|b\n1|x\n", {"a": [1], "b": ["x"]}),
        ('a,b\n"x\ny",2\n"say ""hi""",3\n', {"a": ["x\ny", 'say "hi"'], "b": [2, 3]}),
        ('"a, c";b\n1;2\n', {"a, c": [1], "b": [2]}),
        ("a,b\r\n1,2\r\n", {"a": [1], "b": [2]}),  # Windows
        ("a,b\n1,2", {"a": [1], "b": [2]}),  # no newline at the end
        (" a , b\n1, 2\n", {"a": [1], "b": [2]}),
        ("a,b,\n1,2,\n", {"a": [1], "b": [2]}),  # a delimiter at the end of each line
        ("a,b\n\n1,2\n\n", {"a": [1], "b": [2]}),
        ("a,b\nTrue,1e3\nFalse,NA\n", {"a": [True, False], "b": [1000.0, None]}),
        ("a,b\n,NA\nx,nan\n", {"a": [None, "x"], "b": [None, None]}),
        ("städte,b\nMünchen,2\n", {"städte": ["München"], "b": [2]}),
    ],
)
def test_reads(write, content, expected):
    assert read(write(content)) == expected


def test_dates_are_dates(write):
    kinds = read_table(write("a,b\n2024-01-31,2024-01-31 10:00\n")).schema.types
    assert [str(kind) for kind in kinds] == ["date32[day]", "timestamp[s]"]


def test_codes_keep_their_zeros(write):
    path = write("store,zip,n,half\n007,01234,10,0.5\n12,99999,0,0.25\n")
    assert read(path) == {
        "store": ["007", "12"], "zip": ["01234", "99999"], "n": [10, 0], "half": [0.5, 0.25],
    }  # fmt: skip


def test_ids_are_read_as_they_are_written_however_far_down(write):
    rows = "".join(f"{i},1\n" for i in range(60_000)) + "007,1\n"
    path = write("store,n\n" + rows)
    assert read(path, text=["store"])["store"][-1] == "007"
    assert [len(part) for part in read_batches(path, text=["store"])]
    last = list(read_batches(path, text=["store"]))[-1]
    assert last.column("store")[-1].as_py() == "007"


def test_options_override_what_was_found(write):
    assert read(write("a,b;c\n1,2;3\n"), csv=CsvOptions(delimiter=";"))["c"] == [3]
    path = write("a;b\n1,5;2\n")
    assert read(path, csv=CsvOptions(decimal="."))["a"] == ["1,5"]
    refuse(path, "must be one ASCII character", csv=CsvOptions(delimiter=";;"))
    refuse(path, "point or a comma", csv=CsvOptions(decimal="x"))
    path = write("a,b\n1,2\n")
    refuse(path, "comma as delimiter and as decimal", csv=CsvOptions(delimiter=",", decimal=","))


def test_decimal_commas_need_another_delimiter_or_quotes(write):
    path = write('a,b\n"1,5",2\n"2,5",3\n')
    assert read(path)["a"] == ["1,5", "2,5"]


def test_encodings(write):
    path = write("a,b\nKöln,2\n".encode("latin-1"))
    refuse(path, r"is not written in UTF-8 \(line 2\): .* --encoding latin-1")
    assert read(path, csv=CsvOptions(encoding="latin-1")) == {"a": ["Köln"], "b": [2]}
    path = write("a,b\nKöln,2\n".encode("utf-16"))
    assert read(path) == {"a": ["Köln"], "b": [2]}  # by its mark
    assert read(path, csv=CsvOptions(encoding="utf-16")) == {"a": ["Köln"], "b": [2]}
    refuse(path, "There is no encoding 'utf-99'", csv=CsvOptions(encoding="utf-99"))


def test_another_encoding_beyond_the_first_rows(write):
    path = write(b"a,b\n" + b"Bonn,2\n" * 60_000 + "Köln,2\n".encode("latin-1"))
    refuse(path, "is not written in UTF-8: .* --encoding latin-1")
    with pytest.raises(DataError, match="is not written in UTF-8"):
        list(read_batches(path))


def test_a_character_cut_at_the_end_of_the_first_rows(write):
    for shift in range(4):
        path = write("a" * (shift + 1) + ",b\n" + "ü€,2\n" * 60_000)
        assert read_table(path).num_rows == 60_000


def test_refusals(write):
    refuse(write(""), "is empty: a table has")
    refuse(write("\n\n"), "is empty")
    refuse(write(b"\xef\xbb\xbf"), "is empty")
    refuse(write("a,b\n"), "has column names but no rows")
    refuse(write("a,b,a\n1,2,3\n"), r"Column 'a' occurs 2 times in '.*t\.csv': rename")
    refuse(write("a,b\n1,2\n3\n"), r"has 1 values, the header has 2 names \('3'\): correct it")
    refuse(write("a,b\n1,2\n3,4,5\n"), "has 3 values, the header has 2 names")
    refuse(write("a b c\n1 2 3\n"), "the single column 'a b c': .* --delimiter")
    refuse(write(b"PK\x03\x04..."), "Excel workbook or a condmeta model, not a table: save the")


def test_a_column_without_a_name_is_left_out_with_a_warning(write):
    with pytest.warns(UserWarning, match="column 1, which has no name"):
        assert read(write(",a,b\n0,5,x\n1,6,y\n")) == {"a": [5, 6], "b": ["x", "y"]}


def test_mixed_types_are_found_wherever_they_stand(write):
    rows = "".join(f"{i},1\n" for i in range(60_000))
    path = write("a,b\n" + rows + "1.5,n.a.\n")
    table = read_table(path)
    assert str(table.schema.field("a").type) == "double"
    with pytest.raises(
        DataError,
        match=r"Column 'b' holds numbers, and text in 1 of 60,001 rows, first 'n.a.' in row "
        r"60001: .* --text b\.",
    ):
        check_columns(table, ["a", "b"])
    check_columns(table, ["b"], text=["b"])
    with pytest.raises(DataError, match=r"Column 'b' .* but later 'n.a.': .* --text b"):
        list(read_batches(path))
    values = [v for part in read_batches(path, text=["b"]) for v in part["a"].to_pylist()]
    assert values == [*range(60_000), 1.5]


def test_text_is_not_taken_for_numbers_or_dates(write):
    table = read_table(write("a,b,c\nS,31.12.2024,1\nM,1.2.2025,x\n38,,y\n"))
    check_columns(table, ["a", "c"])  # sizes: mostly text
    check_columns(table, ["b"])  # dates are features
    with pytest.raises(DataError, match=r"'b' \(target\) holds dates .*days since a start\.$"):
        check_columns(table, ["b"], target="b")
    mixed = read_table(write('a,b\n"1,5",1\n2,1\n3,1\n'))
    check_columns(mixed, ["a"])  # the schema reads them as numbers
    odd = read_table(write("a,b\n12%,1\n13%,1\nmuch,1\n"))
    with pytest.raises(DataError, match="text in 1 of 3 rows, first 'much' in row 3"):
        check_columns(odd, ["a"])


def test_parts_are_cut_between_rows_whatever_is_quoted(write):
    for shift in range(3):
        path = write("a,b\n" + "x" * shift + ",0\n" + '"y\n\nz",1\n' * 60_000)
        parts = list(read_batches(path))
        assert sum(part.num_rows for part in parts) == 60_001
        assert parts[-1]["a"][-1].as_py() == "y\n\nz"


def test_parts_in_another_encoding(write):
    path = write(("a,b\n" + "Köln,2\n" * 60_000).encode("utf-16"))
    parts = list(read_batches(path, csv=CsvOptions(encoding="utf-16")))
    assert sum(part.num_rows for part in parts) == 60_000
    assert parts[0]["a"][0].as_py() == "Köln"


def test_damaged_gzip(write):
    content = gzip.compress(b"a,b\n" + b"1,x\n" * 150_000)
    for damaged in (content[:-20], b"\x1f\x8b\x00" + content[3:]):
        path = write(damaged, "t.csv.gz")
        refuse(path, "is damaged .*: copy it again")
        with pytest.raises(DataError, match="is damaged"):
            list(read_batches(path))


def test_gzip(write):
    path = write(gzip.compress(b"a,b\n" + b"1,x\n" * 150_000), "t.csv.gz")
    assert read_table(path).num_rows == 150_000
    assert sum(part.num_rows for part in read_batches(path)) == 150_000


def test_parts_make_the_whole(tmp_path):
    i = np.arange(1_000_000)
    whole = pa.table({"task": (i // 7).astype(str), "i": i.astype(float), "x": i / 8})
    write_table(whole, tmp_path / "t.csv")
    parts = list(read_batches(tmp_path / "t.csv", text=["task"]))
    assert len(parts) > 1
    assert pa.concat_tables(parts).equals(whole)


FOREIGN = {
    "html": (b"<!DOCTYPE html>\n<html><body>", "is an HTML page, not a table"),
    "xml": (b"<?xml version='1.0'?><rows/>", "is an XML file, not a table"),
    "json": (b'[{"store": "a", "sold": 1}]', "is a JSON file, not a table"),
    "zeros": (bytes(1 << 20), "holds the character NUL, so it is no CSV file"),
    "long name": (b"a" * 140_000 + b",b\n1,2\n", "a first line of more than 131,072 characters"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_other_files_are_named_for_what_they_are(write, name):
    content, sentence = FOREIGN[name]
    refuse(write(content), sentence)
    with pytest.raises(DataError, match=sentence):
        list(read_batches(write(content)))


@pytest.mark.parametrize("delimiter", ["é", ";;", '"', "\n"])
def test_delimiters_that_no_csv_has(write, delimiter):
    refuse(write("a,b\n1,2\n"), "must be one ASCII", csv=CsvOptions(delimiter=delimiter))


def test_a_side_table_is_written_like_the_table_only_if_nothing_else_fits(write):
    like = CsvOptions("#", ",", "latin-1")
    options = CsvOptions(like=like, prefix="--side-")
    for text, encoding in (("a,b\nSüd,1.5\n", "utf-8"), ("a#b\nSüd#1,5\n", "latin-1")):
        assert read(write(text.encode(encoding)), csv=options) == {"a": ["Süd"], "b": [1.5]}
    other = options._replace(like=None)
    refuse(write("a,b\nSüd,1\n".encode("latin-1")), "--side-encoding latin-1", csv=other)
