"""Commands with bad options, tables and models, each run in a folder with good ones."""

from __future__ import annotations

import atexit
import contextlib
import gzip
import os
import shlex
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from click.testing import CliRunner

import condmeta as cm
from condmeta.cli.app import app
from condmeta.errors import DataError
from tools.bad_input.contract import Case

GOOD = "store,price,city,sold\n" + "".join(
    f"{t:03d},{x},{'AB'[t % 2]},{x * (1 + t)}\n" for t in range(9) for x in (1.5, -2.0, 0.5, 3.25)
)
STORES = "store,size\n" + "".join(f"{t:03d},{t / 2}\n" for t in range(9))
FIT = "fit {} --task store --target sold -o new.condmeta"
# Files, each with a fault: name -> contents.
TABLES: dict[str, tuple[str, bytes]] = {
    "empty.csv": ("an empty file", b""),
    "blank.csv": ("a file of blank lines", b"\n\n \n"),
    "header.csv": ("column names without rows", b"store,price,sold\n"),
    "ragged.csv": ("a row with a value more", GOOD.encode() + b"001,1,A,2,9\n"),
    "short.csv": ("a row with a value fewer", GOOD.encode() + b"001,1\n"),
    "twice.csv": ("a column name twice", GOOD.replace("city", "price", 1).encode()),
    "latin.csv": ("another encoding", GOOD.replace(",A,", ",Köln,").encode("latin-1")),
    "quote.csv": ("a quote that is not closed", GOOD.replace("001,1.5", '001,"1.5').encode()),
    "gap.csv": ("a feature that is missing", GOOD.replace("001,1.5", "001,").encode()),
    "no-id.csv": ("an id that is missing", GOOD.replace("001,1.5", ",1.5").encode()),
    "no-target.csv": ("a target that is missing", (GOOD + "001,1.5,A,\n").encode()),
    "word.csv": ("text among the numbers of the target", (GOOD + "001,1.5,A,many\n").encode()),
    "inf.csv": ("infinity in a feature", (GOOD + "001,inf,A,1\n").encode()),
    "page.csv": ("an HTML page", b"<!DOCTYPE html><html><body><p>Sign in</p></body></html>"),
    "data.csv": ("JSON", b'[{"store": "001", "price": 1.5, "sold": 2}]'),
    "book.csv": ("a zip archive", b"PK\x03\x04" + bytes(50)),
    "old.csv": ("an old workbook", b"\xd0\xcf\x11\xe0" + bytes(50)),
    "report.csv": ("a PDF", b"%PDF-1.7 " + bytes(50)),
    "store.csv": ("a database", b"SQLite format 3\0" + bytes(50)),
    "cut.csv.gz": ("a gzip file that is cut off", gzip.compress(GOOD.encode() * 9, mtime=0)[:-30]),
    "wrong.parquet": ("CSV named .parquet", GOOD.encode()),
    "cut.parquet": ("a damaged Parquet file", b"PAR1" + bytes(40)),
    "cut.feather": ("a damaged Feather file", b"ARROW1\0\0" + bytes(40)),
    "wide.csv": ("a column name of 200,000 letters", b"x" * 200_000 + b",store,sold\n1,2,3\n"),
    "one.csv": ("a target with one value for all rows", b"store,price,sold\na,1,yes\nb,2,yes\n"),
    "names.csv": (
        "a target of names",
        b"store,price,sold\n" + b"".join(b"%d,%d,Anna %d\n" % (i % 9, i, i) for i in range(120)),
    ),
    "only.csv": ("no feature columns", b"store,sold\na,1\nb,2\n"),
    "dates.csv": ("a target of dates", b"store,price,sold\na,1,2024-01-31\nb,2,2024-02-01\n"),
}
SIDES: dict[str, tuple[str, str]] = {
    "twice-side.csv": ("a task twice in the side table", STORES + "001,9\n"),
    "few-side.csv": ("a side table of other tasks", "store,size\nx,1\n"),
    "inf-side.csv": ("infinity in the side table", STORES.replace("003,1.5", "003,inf")),
    "no-key-side.csv": ("a side table without ids", STORES.replace("store", "shop")),
    "only-side.csv": ("a side table with ids alone", "store\n001\n002\n"),
    "id-side.csv": ("an id that is missing in the side table", STORES + ",9\n"),
}
OPTIONS = {
    "a table that does not exist": FIT.format("sale.csv"),
    "a table in a folder that does not exist": FIT.format("no/sales.csv"),
    "a folder as table": FIT.format("."),
    "no task": "fit sales.csv --target sold -o new.condmeta",
    "no target": "fit sales.csv --task store -o new.condmeta",
    "no output": "fit sales.csv --task store --target sold",
    "an unknown task column": "fit sales.csv --task shop --target sold -o new.condmeta",
    "an unknown target column": "fit sales.csv --task store --target profit -o new.condmeta",
    "an unknown feature": FIT.format("sales.csv") + " --features weight",
    "an unknown side column": FIT.format("sales.csv") + " --side weight",
    "an unknown column to exclude": FIT.format("sales.csv") + " --exclude weight",
    "an empty column name": FIT.format("sales.csv") + " --features price,,city",
    "the target as a feature": FIT.format("sales.csv") + " --features sold",
    "the task as a feature": FIT.format("sales.csv") + " --features store",
    "the target as the task": "fit sales.csv --task sold --target sold -o new.condmeta",
    "a feature as side information that varies": FIT.format("sales.csv") + " --side price",
    "an unknown learner": FIT.format("sales.csv") + " --learner forest",
    "a classifier for numbers": FIT.format("sales.csv") + " --learner logistic",
    "a classifier in parts": FIT.format("sales.csv") + " --learner logistic --chunks",
    "boosting with a learner that has none": FIT.format("sales.csv") + " --learner coin --boosting",
    "sorting a table that is read in parts": FIT.format("sales.csv") + " --chunks --sort-by price",
    "an unknown column of time": FIT.format("sales.csv") + " --time day",
    "an unknown column to sort by": FIT.format("sales.csv") + " --sort-by day",
    "an unknown way to treat gaps": FIT.format("sales.csv") + " --missing drop",
    "an unknown option": FIT.format("sales.csv") + " --fast",
    "an unknown command": "train sales.csv",
    "a side table that does not exist": FIT.format("sales.csv") + " --side-table shops.csv",
    "an unknown key of the side table": FIT.format("sales.csv")
    + " --side-table stores.csv --side-key shop",
    "the table as output": "fit sales.csv --task store --target sold -o sales.csv",
    "the side table as output": "fit sales.csv --task store --target sold --side-table stores.csv "
    "-o stores.csv",
    "an output in a folder that does not exist": "fit sales.csv --task store --target sold "
    "-o no/folder/new.condmeta",
    "a folder as output": "fit sales.csv --task store --target sold -o .",
    "a delimiter of two letters": FIT.format("sales.csv") + " --delimiter ab",
    "a delimiter that is not ASCII": FIT.format("sales.csv") + " --delimiter é",
    "the wrong delimiter": FIT.format("sales.csv") + " --delimiter ;",
    "an unknown decimal sign": FIT.format("sales.csv") + " --decimal x",
    "an unknown encoding": FIT.format("sales.csv") + " --encoding klingon",
    "a model that does not exist": "predict no.condmeta sales.csv",
    "a table as model": "predict sales.csv sales.csv",
    "a damaged model": "predict damaged.condmeta sales.csv",
    "a model of arrays": "predict arrays.condmeta sales.csv",
    "a table without a feature": "predict good.condmeta only-price.csv",
    "a new task without side information": "predict side.condmeta new.csv",
    "a coverage without intervals": "predict good.condmeta sales.csv --coverage 0.9",
    "a coverage of 2": "predict good.condmeta sales.csv --coverage 2",
    "the model as output": "predict good.condmeta sales.csv -o good.condmeta",
    "an output of an unknown kind": "predict good.condmeta sales.csv -o answers.xlsx",
    "a table without the target": "update good.condmeta no-sold.csv",
    "a table without the task": "update good.condmeta no-store.csv",
    "an update of a model made to share": "update shared.condmeta sales.csv",
    "a text where numbers were": "update good.condmeta text-price.csv",
    "coefficients without the target": "adapt good.condmeta no-sold.csv",
    "a check without the target": "check good.condmeta no-sold.csv",
    "a check with a false alarm of 0": "check good.condmeta sales.csv --false-alarm 0",
    "too few tasks to compare": "compare few.csv --task store --target sold -o page.html",
    "shots that are no numbers": "compare sales.csv --task store --target sold --shots few",
    "an unknown column of times": "compare sales.csv --task store --target sold --time day",
    "an unknown column of weights": FIT.format("sales.csv") + " --weight often",
    "weights of text": FIT.format("sales.csv") + " --weight city",
    "no workers": FIT.format("sales.csv") + " --workers 0",
    "no workers to reproduce": "reproduce circle --workers 0",
    "an unknown criterion": "compare sales.csv --task store --target sold --criterion cubic",
    "a file that is no model to inspect": "inspect sales.csv",
    "a file that does not exist to inspect": "inspect no.condmeta",
    "a folder to inspect": "inspect .",
    "an unknown experiment": "reproduce three-clusters",
    "no seeds": "reproduce circle --seeds 0",
    "a summary of a file that is no model": "summary sales.csv",
}


@cache
def folder() -> Path:
    """Return a folder with the tables, and with good, damaged and shared models."""
    holder = tempfile.TemporaryDirectory()
    atexit.register(holder.cleanup)
    path = Path(holder.name)
    for name, (_, content) in TABLES.items():
        (path / name).write_bytes(content)
    for name, (_, content) in SIDES.items():
        (path / name).write_text(content, encoding="utf-8")
    rows = GOOD.splitlines()
    cells = [row.split(",") for row in rows]
    tables = {
        "sales.csv": GOOD,
        "stores.csv": STORES,
        "few.csv": "\n".join(rows[:13]),
        "new.csv": f"{rows[0]}\n999,1.5,A,2\n",
        "only-price.csv": "\n".join(",".join(c[:2]) for c in cells),
        "no-sold.csv": "\n".join(",".join(c[:3]) for c in cells),
        "no-store.csv": "\n".join(",".join(c[1:]) for c in cells),
        "text-price.csv": GOOD.replace("1.5", "cheap"),
    }
    for name, content in tables.items():
        (path / name).write_text(content, encoding="utf-8")
    for words in (
        "fit sales.csv --task store --target sold -o good.condmeta",
        "fit sales.csv --task store --target sold --side-table stores.csv -o side.condmeta",
        "fit sales.csv --task store --target sold --share -o shared.condmeta",
    ):
        done = _run(path, words)
        assert done.exit_code == 0, done.output
    (path / "damaged.condmeta").write_bytes((path / "good.condmeta").read_bytes()[:-9])
    learner = cm.FixedBiasRegressor().fit(np.ones((2, 1)), np.ones(2))
    learner.save(path / "arrays.condmeta")
    return path


def _run(path: Path, words: str):
    with contextlib.chdir(path):
        return CliRunner().invoke(app, shlex.split(words), prog_name="condmeta")


def _refused(words: str) -> None:
    """Run a command; raise its sentence, or what is wrong with its end."""
    done = _run(folder(), words)
    if done.exit_code == 0:
        return
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    if any("Traceback" in line for line in lines):
        raise RuntimeError("the command shows a traceback")
    found = [line for line in lines if line.startswith("Error:")]
    if done.exit_code not in (1, 2) or len(found) != 1:
        raise RuntimeError(f"exit code {done.exit_code}: {lines}")
    raise DataError(" ".join(lines[lines.index(found[0]) :]).removeprefix("Error: "))


def _files() -> dict[str, bytes]:
    """Return the contents of all files; no command with bad input changes them."""
    found = sorted(path for path in folder().rglob("*") if path.is_file())
    return {os.path.relpath(path, folder()): path.read_bytes() for path in found}


def cases() -> Iterator[Case]:
    """Yield the cases of all commands."""
    lines = dict(OPTIONS)
    for name, (given, _) in TABLES.items():
        lines[given] = FIT.format(name)
        if not name.endswith(".gz"):  # how far it can be read depends on the version of zlib
            lines[f"{given} (in parts)"] = FIT.format(name) + " --chunks"
    for name, (given, _) in SIDES.items():
        lines[given] = FIT.format("sales.csv") + f" --side-table {name}"
    for given, words in lines.items():
        shown = words.replace("new.condmeta", "MODEL")
        yield Case(f"condmeta {shown}", given, lambda words=words: _refused(words), _files)
