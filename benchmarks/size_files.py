"""Fits from files: memory that does not grow with the tasks, and ten million tasks.

Tasks have 10 rows, 10 features and 5 side columns; each measurement is a process of its own.
Learning: the statistics are in files already; memory is the peak resident size, less what the
libraries take. Fit: shuffled Parquet files in, a model out, by `TableModel.fit_files` with
memory="4GB"; memory is the peak resident size of the whole process. Ten million tasks need 40 GB of
disk in the folder for temporary files (TMPDIR); with less this row is left out.
"""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.size import D, K, N, held

LEARNED = 100_000, 1_000_000
FITTED = 1_000_000, 10_000_000
MEMORY = "4GB"
FILES, CHUNK = 10, 1_000_000
DISK = 40e9


def draw(first: int, count: int):
    """Return X, y, the task of each row, and the side columns (T, k) of some tasks."""
    M = np.random.default_rng(0).standard_normal((D, K))
    rng = np.random.default_rng(1 + first)
    side = rng.standard_normal((count, K))
    w = side @ M.T + rng.standard_normal((count, D))
    X = rng.standard_normal((count * N, D))
    y = np.einsum("tnd,td->tn", X.reshape(count, N, D), w).ravel()
    return X, y + rng.standard_normal(count * N), np.repeat(first + np.arange(count), N), side


def write_files(count: int, folder: Path) -> None:
    """Write shuffled rows to ten Parquet files, and the side table to another.

    Row j of a task is in file j, or another one; tasks have ids that are not in their order.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ["task", "y", *(f"x{j}" for j in range(D))]
    kinds = [pa.int64(), *[pa.float64()] * (D + 1)]
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    writers = [pq.ParquetWriter(folder / f"rows-{f}.parquet", schema) for f in range(FILES)]
    step = 1 + 2 * (count // 3)  # ids are a permutation of 0 .. count - 1
    while np.gcd(step, count) > 1:
        step += 2
    sides = []
    for first in range(0, count, CHUNK):
        X, y, task, side = draw(first, min(CHUNK, count - first))
        task = task * step % count
        order = np.random.default_rng(first).permutation(len(y))
        for writer, part in zip(writers, np.array_split(order, FILES), strict=True):
            columns = [task[part], y[part], *(X[part, j] for j in range(D))]
            writer.write_table(pa.table(columns, schema=schema))
        sides.append(pa.table([task[::N], *side.T], names=["task", *(f"s{j}" for j in range(K))]))
    for writer in writers:
        writer.close()
    pq.write_table(pa.concat_tables(sides), folder / "side.parquet")


def write_statistics(count: int, folder: Path) -> None:
    """Write the statistics of tasks to files, and what learning needs besides to another."""
    import condmeta as cm
    from condmeta.learners.parts import Reduction, reduce_part, start_with
    from condmeta.meta.stored_tasks import Here, StoredTasks
    from condmeta.tasks import TaskSet, TaskTable

    learner, start, sampled, pieces, sides = cm.ConditionalRidge(), None, None, [], []
    for first in range(0, count, 5000):
        X, y, task, side = draw(first, min(5000, count - first))
        tasks = TaskSet.from_arrays(X, y, task=task)
        start = start or start_with(tasks, learner)
        found = reduce_part(tasks, learner, Reduction(start), str(folder / f"piece-{first}"))
        pieces.append(found.piece)
        sides.append(side)
        sampled = found.sampled if sampled is None else sampled.join(found.sampled).sampled()
    stored = StoredTasks.merge(folder, sampled, pieces, Here())
    Phi = np.concatenate(sides)[stored.at]
    reader = start.reader.refit(TaskTable(Phi[:100], ids=range(100)))
    stored = stored.with_features(Phi)
    stored.ids = stored.at = stored.at[:0]  # learning reads neither
    (folder / "learning.pickle").write_bytes(pickle.dumps((start._replace(reader=reader), stored)))


def learn(count: int, folder: Path) -> dict:
    """Learn the prior from files."""
    import condmeta as cm
    from condmeta.fitted.scales import Scales
    from condmeta.learners.learn import Training

    X, y, task, _ = draw(0, 30)
    cm.ConditionalRidge().fit(X, y, task=task)  # loads all
    start, stored = pickle.loads((folder / "learning.pickle").read_bytes())
    before, began = held()["VmRSS"], time.process_time()
    scales = start.scales.moved_to(Scales.of_moments(*stored.moments, start.scales))
    data = Training(None, None, stored.ids, None, None, scales, statistics=stored)
    learned = cm.ConditionalRidge()._learn(data._replace(names=scales.names(None)))
    seconds = time.process_time() - began
    return {"seconds": seconds, "kB": held()["VmHWM"] - before, "passes": learned.info["n_iter_"]}


def fit(count: int, folder: Path) -> dict:
    """Fit to the files."""
    import condmeta as cm

    model, began, wall = cm.TableModel(task="task", target="y"), time.process_time(), time.time()
    rows, side = f"{folder}/rows-*.parquet", folder / "side.parquet"
    work = folder / "work"
    model.fit_files(rows, side, memory=MEMORY, folder=work)
    peak, fitted = held()["VmHWM"], {"seconds": time.process_time() - began}
    model.save(folder / "model.condmeta", resume=False)
    return fitted | {
        "kB": peak, "wall": time.time() - wall, "saved_kB": held()["VmHWM"],
        "file": (folder / "model.condmeta").stat().st_size, "tasks": model.learner_.n_tasks_,
    }  # fmt: skip


WAYS = {"statistics": write_statistics, "learn": learn, "write": write_files, "fit": fit}


def child(way: str, count: int, folder: Path) -> dict:
    """Run one step in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.size_files", way, str(count)]
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def rows_of_learning() -> list[dict]:
    """Return the rows of learning from files."""
    out, first = [], None
    for count in LEARNED:
        with tempfile.TemporaryDirectory() as made:
            child("statistics", count, Path(made))
            found = child("learn", count, Path(made))
        first = first or found
        MB = found["kB"] / 1e3
        out.append({
            "what": f"learning from files, {count:,} tasks", "ours": f"{MB:.0f} MB",
            "peer": f"{first['kB'] / 1e3:.0f} MB", "ratio": found["kB"] / first["kB"],
            "goal": "<= 150 MB", "met": MB <= 150,
            "note": f"peer: {LEARNED[0]:,} tasks; {found['seconds']:.3g} s, "
                    f"{found['passes']} passes over all tasks at the end",
        })  # fmt: skip
    return out


def rows_of_fits() -> list[dict]:
    """Return the rows of fits of one and of ten million tasks."""
    out, first = [], None
    for count in FITTED:
        with tempfile.TemporaryDirectory() as made:
            if count == FITTED[-1] and shutil.disk_usage(made).free < DISK:
                return out
            child("write", count, Path(made))
            found = child("fit", count, Path(made))
        first = first or found
        used, limit = found["kB"] / 1e6, float(MEMORY[:-2])
        out.append({
            "what": f"fit of {count:,} tasks from shuffled Parquet, memory {MEMORY}",
            "ours": f"{used:.2f} GB", "goal": f"<= {limit:g} GB", "met": used <= limit,
            "note": f"peak of the process; {found['saved_kB'] / 1e6:.2f} GB with saving; "
                    f"model file {found['file'] / 1e9:.2f} GB; {found['wall'] / 60:.0f} minutes",
        })  # fmt: skip
        if found is not first:
            ours, peer = (1e6 * f["seconds"] / f["tasks"] for f in (found, first))
            out.append({
                "what": f"fit of {count:,} tasks, time a task", "ours": f"{ours:.3g} us",
                "peer": f"{peer:.3g} us", "ratio": ours / peer, "goal": "<= 1.25",
                "met": ours <= 1.25 * peer, "note": f"peer: {FITTED[0]:,} tasks",
            })  # fmt: skip
    return out


def main() -> list[dict]:
    """Return the rows of the table."""
    return [*rows_of_learning(), *rows_of_fits()]


if __name__ == "__main__":
    way, count, folder = sys.argv[1:]
    print(json.dumps(WAYS[way](int(count), Path(folder))))
