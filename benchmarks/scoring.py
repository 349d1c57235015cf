"""Score what a fit of a million tasks left: ten million rows, and a thousand tasks of its file.

Tasks have 10 rows, 10 features and 5 side columns (see the section size); rows are sorted by task,
in Parquet files. DuckDB runs the query of `to_sql` with one thread; `predict` reads the same files
with pyarrow. Times include reading and writing files; for `predict` without opening the model.
Each runs in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.size import D, K, N, draw, held

COUNT = 1_000_000
FEATURES = [f"x{j}" for j in range(D)]
FEW = 1_000


def prepare(folder: Path, count: int) -> None:
    """Fit a model; write it, its tables and the rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import condmeta as cm

    X, y, task, side = draw(count)
    rows = {"task": task} | dict(zip(FEATURES, X.T, strict=True))
    pq.write_table(pa.table(rows), folder / "rows.parquet")
    sides = {"task": np.arange(count)} | {f"s{j}": side[:, j] for j in range(K)}
    pq.write_table(pa.table(sides), folder / "side.parquet")
    table = cm.TaskTable(side, ids=range(count))
    model = cm.ConditionalRidge().fit(X, y, task=task, side_info=table)
    model.save(folder / "model.condmeta")
    cm.export(model, folder)
    table = cm.TaskTable(side[:30], ids=range(30))
    small = cm.ConditionalRidge().fit(X[:300], y[:300], task=task[:300], side_info=table)
    small.save(folder / "small.condmeta")
    some = np.sort(np.random.default_rng(2).choice(count, FEW, replace=False))
    at = (some[:, None] * N + np.arange(N)).ravel()
    few = {"task": task[at]} | dict(zip(FEATURES, X[at].T, strict=True))
    pq.write_table(pa.table(few), folder / "few.parquet")


def by_sql(folder: Path) -> dict:
    """Score the rows in DuckDB."""
    import duckdb

    con = duckdb.connect(config={"threads": 1})
    for name in ("rows", "side", "coefficients"):
        con.sql(f"CREATE VIEW {name} AS SELECT * FROM '{folder}/{name}.parquet'")
    query = (folder / "score.sql").read_text()
    start = time.process_time()
    con.execute(f"COPY (SELECT prediction FROM ({query})) TO '{folder}/sql.parquet'")
    return {"seconds": time.process_time() - start}


def by_predict(folder: Path) -> dict:
    """Score the rows with the model."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import condmeta as cm

    model = cm.load(folder / "model.condmeta")
    start = time.process_time()
    rows = pq.read_table(folder / "rows.parquet")
    X = np.column_stack([rows[name].to_numpy() for name in FEATURES])
    found = model.predict(X, task=rows["task"].to_numpy())
    pq.write_table(pa.table({"prediction": found}), folder / "predict.parquet")
    return {"seconds": time.process_time() - start}


def of_file(folder: Path, whole: bool) -> dict:
    """Open the model file, whole or with some tasks, and predict the rows of these."""
    import pyarrow.parquet as pq

    import condmeta as cm

    rows = pq.read_table(folder / "few.parquet")
    X, task = np.column_stack([rows[name].to_numpy() for name in FEATURES]), rows["task"].to_numpy()
    cm.load(folder / "small.condmeta").predict(X[:1], task=[0])  # loads all libraries
    Path("/proc/self/clear_refs").write_text("5")
    before, start = held()["VmRSS"], time.process_time()
    model = cm.load(folder / "model.condmeta", tasks=None if whole else task)
    found = model.predict(X, task=task)
    seconds = time.process_time() - start
    return {"seconds": seconds, "kB": held()["VmHWM"] - before, "found": found.tolist()}


WAYS = {
    "sql": by_sql,
    "predict": by_predict,
    "whole": partial(of_file, whole=True),
    "some": partial(of_file, whole=False),
}


def child(way: str, folder: Path) -> dict:
    """Run one way in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.scoring", way, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def agree(folder: Path) -> None:
    """Raise if the two differ."""
    import pyarrow.parquet as pq

    sql, ours = (
        pq.read_table(folder / f"{name}.parquet")["prediction"].to_numpy()
        for name in ("sql", "predict")
    )
    np.testing.assert_allclose(sql, ours, rtol=1e-12, atol=1e-12)


def by_query(folder: Path, count: int) -> dict:
    """Compare SQL with predict."""
    sql, predict = child("sql", folder), child("predict", folder)
    agree(folder)
    ratio = sql["seconds"] / predict["seconds"]
    return {
        "what": f"score {count * N:,} sorted rows by SQL in DuckDB",
        "ours": f"{sql['seconds']:.3g} s", "peer": f"{predict['seconds']:.3g} s",
        "ratio": ratio, "goal": "<= 0.7", "met": ratio <= 0.7,
        "note": "peer: predict; equal to 1e-12; with reading and writing",
    }  # fmt: skip


def by_part(folder: Path, count: int) -> list[dict]:
    """Compare a file that is read in part with one that is read whole."""
    some, whole = child("some", folder), child("whole", folder)
    if some["found"] != whole["found"]:
        raise AssertionError("The answers differ.")
    size = (folder / "model.condmeta").stat().st_size / 1e6
    what = f"open a model of {count:,} tasks, predict {FEW:,} of them"
    note = f"peer: the whole file of {size:.0f} MB; the same bits"
    return [
        {
            "what": f"{what}: time", "ours": f"{some['seconds']:.2g} s",
            "peer": f"{whole['seconds']:.2g} s", "ratio": some["seconds"] / whole["seconds"],
            "note": note,
        },
        {
            "what": f"{what}: memory", "ours": f"{some['kB'] / 1e3:.0f} MB",
            "peer": f"{whole['kB'] / 1e3:.0f} MB", "ratio": some["kB"] / whole["kB"],
            "note": "peer: likewise; peak beyond the libraries",
        },
    ]  # fmt: skip


def main(count: int = COUNT) -> list[dict]:
    """Return the rows of the table."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        prepare(folder, count)
        return [by_query(folder, count), *by_part(folder, count)]


if __name__ == "__main__":
    way, folder = sys.argv[1:]
    print(json.dumps(WAYS[way](Path(folder))))
