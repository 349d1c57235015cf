"""How time and memory grow with the number of tasks: in memory, from shuffled files, one at a time.

Tasks have 10 rows, 10 features and 5 side columns. Each fit runs in a process of its own; memory is
its peak resident size, less what it held before the fit. The former code (before statistics were
packed and held once, commit ef8d934) took the memory of the peer when this command ran with it. If
the variable CONDMETA_FORMER names a Python that has it installed, times are compared with it too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SIZES = 100_000, 1_000_000
FORMER = {100_000: 2.97, 1_000_000: 2.99}  # kB a task
N, D, K = 10, 10, 5
MEMORY = "1GB"


def draw(count: int):
    """Return X, y, the task of each row, and the side columns (T, k)."""
    rng = np.random.default_rng(0)
    side, M = rng.standard_normal((count, K)), rng.standard_normal((D, K))
    w = side @ M.T + rng.standard_normal((count, D))
    X = rng.standard_normal((count * N, D))
    y = np.einsum("tnd,td->tn", X.reshape(count, N, D), w).ravel()
    return X, y + rng.standard_normal(count * N), np.repeat(np.arange(count), N), side


def write_rows(count: int, folder: Path) -> None:
    """Write the rows, shuffled, to ten Parquet files, and the side table to another."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y, task, side = draw(count)
    order = np.random.default_rng(1).permutation(len(y))
    for number, part in enumerate(np.array_split(order, 10)):
        columns = {"task": task[part], "y": y[part]}
        columns |= {f"x{j}": X[part, j] for j in range(D)}
        pq.write_table(pa.table(columns), folder / f"rows-{number}.parquet")
    columns = {"task": np.arange(count)} | {f"s{j}": side[:, j] for j in range(K)}
    pq.write_table(pa.table(columns), folder / "side.parquet")


def held() -> dict[str, float]:
    """Return the resident size of this process in kB, now and at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines if line.startswith("Vm"))
    return {name: float(found[name].split()[0]) for name in ("VmRSS", "VmHWM")}


def measured(fit) -> dict:
    """Call a function that returns a learner; return time, memory and numbers of its answer."""
    Path("/proc/self/clear_refs").write_text("5")
    before, start = held()["VmRSS"], time.process_time()
    learner = fit()
    seconds = time.process_time() - start
    used = held()["VmHWM"] - before
    store = learner.fitted_.tasks
    coef = store.coef[np.argsort(store.ids.astype(int))[:200]]
    return {"seconds": seconds, "kB": used, "coef": coef.ravel().tolist(), "s2": learner.s2_}


def fit_in_memory(count: int, _: Path):
    """Fit to arrays."""
    import condmeta as cm

    X, y, task, side = draw(count)
    some = cm.TaskTable(side[:30], ids=range(30))
    cm.ConditionalRidge().fit(X[:300], y[:300], task=task[:300], side_info=some)  # loads all
    table = cm.TaskTable(side, ids=range(count))
    return measured(lambda: cm.ConditionalRidge().fit(X, y, task=task, side_info=table))


def fit_table(count: int, folder: Path):
    """Fit to the files read as one table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import condmeta as cm

    def fit():
        rows = pa.concat_tables([pq.read_table(p) for p in sorted(folder.glob("rows-*.parquet"))])
        side = pq.read_table(folder / "side.parquet")
        return cm.TableModel(task="task", target="y").fit(rows, side).learner_

    return measured(fit)


def fit_files(count: int, folder: Path):
    """Fit to the files, ordered on disk."""
    import condmeta as cm

    model = cm.TableModel(task="task", target="y")
    rows, side = f"{folder}/rows-*.parquet", folder / "side.parquet"
    return measured(lambda: model.fit_files(rows, side, memory=MEMORY).learner_)


WAYS = {"memory": fit_in_memory, "table": fit_table, "files": fit_files}


def child(way: str, count: int, folder: Path, python: str = sys.executable) -> dict:
    """Run one fit in a process of its own."""
    command = [python, "-W", "ignore", "-m", "benchmarks.size", way, str(count)]
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def beside_former(count: int, folder: Path, python: str) -> dict:
    """Compare times with those of the former code, in turn."""
    runs = [
        [child("memory", count, folder, name)["seconds"] for name in (sys.executable, python)]
        for _ in range(3)
    ]
    ours, peer = np.min(runs, axis=0)
    return {
        "what": f"fit of {count:,} tasks in memory, time", "ours": f"{ours:.3g} s",
        "peer": f"{peer:.3g} s", "ratio": ours / peer, "goal": "<= 1", "met": bool(ours <= peer),
        "note": "peer: the former code, in turn; least of three",
    }  # fmt: skip


def agree(one: dict, other: dict) -> None:
    """Raise if two fits do not have the same bits."""
    if one["coef"] != other["coef"] or one["s2"] != other["s2"]:
        raise AssertionError("The fits differ.")


def rows_of(count: int) -> list[dict]:
    """Return the rows of one size."""
    shown, out = f"{count:,} tasks", []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_rows(count, folder)
        memory = child("memory", count, folder)
        kB, former = memory["kB"] / count, FORMER[count]
        out.append({
            "what": f"fit of {shown} in memory, beyond the rows", "ours": f"{kB:.2f} kB a task",
            "peer": f"{former:.2f} kB", "ratio": kB / former, "goal": "<= 0.4",
            "met": kB <= 0.4 * former,
            "note": f"peer: the former code; {memory['seconds']:.3g} s, "
                    f"{1e6 * memory['seconds'] / count:.3g} us a task",
        })  # fmt: skip
        if "CONDMETA_FORMER" in os.environ:
            out.append(beside_former(count, folder, os.environ["CONDMETA_FORMER"]))
        table, files = child("table", count, folder), child("files", count, folder)
        agree(table, files)
        out.append({
            "what": f"fit of {shown} from shuffled Parquet, memory {MEMORY}",
            "ours": f"{files['kB'] / 1e3:.0f} MB", "peer": f"{table['kB'] / 1e3:.0f} MB",
            "ratio": files["kB"] / table["kB"],
            "note": "peer: the files read whole; the same bits; peak beyond the libraries",
        })  # fmt: skip
        out.append({
            "what": f"fit of {shown} from shuffled Parquet, time",
            "ours": f"{files['seconds']:.3g} s", "peer": f"{table['seconds']:.3g} s",
            "ratio": files["seconds"] / table["seconds"], "note": "peer: the files read whole",
        })  # fmt: skip
    return out


def one_regression_a_task() -> dict:
    """Compare with what many run: scikit-learn's Ridge in a pandas groupby."""
    import pandas as pd
    from sklearn.linear_model import Ridge

    import condmeta as cm

    count = 100_000
    X, y, task, side = draw(count)
    table = cm.TaskTable(side, ids=range(count))
    cm.ConditionalRidge().fit(X[:300], y[:300], task=task[:300], side_info=table)  # loads all
    start = time.process_time()
    cm.ConditionalRidge().fit(X, y, task=task, side_info=table)
    ours = (time.process_time() - start) / count
    frame = pd.DataFrame(X[: 500 * N]).assign(y=y[: 500 * N], task=task[: 500 * N])
    columns = list(range(D))
    start = time.process_time()
    frame.groupby("task").apply(
        lambda part: Ridge().fit(part[columns].to_numpy(), part["y"].to_numpy()).coef_,
        include_groups=False,
    )
    peer = (time.process_time() - start) / 500
    return {
        "what": f"a task, fit of {count:,} tasks", "ours": f"{1e6 * ours:.3g} us",
        "peer": f"{1e6 * peer:.4g} us", "ratio": f"{peer / ours:.3g}x", "goal": ">= 50x",
        "met": peer >= 50 * ours, "note": "peer: pandas groupby.apply of Ridge, 500 tasks",
    }  # fmt: skip


def best(call, repeats: int = 7, times: int = 1000) -> float:
    """Return the smallest processor time of a call, in microseconds."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(times):
            call()
        found.append(1e6 * (time.process_time() - start) / times)
    return min(found)


def one_at_a_time() -> list[dict]:
    """Time one task at a time, with and without checks."""
    import condmeta as cm

    X, y, task, side = draw(400)
    model = cm.ConditionalRidge().fit(X, y, task=task, side_info=cm.TaskTable(side, ids=range(400)))
    fast, given, row = model.low_latency(), side[0].tolist(), X[:1].copy()
    points, labels = X[:N].copy(), y[:N].copy()
    ours, peer = fast.adapt(points, labels, given), model.adapt(points, labels, side_info=given)
    if not np.array_equal(ours.predict(X), peer.predict(X)):
        raise AssertionError("The answers differ.")
    calls = {
        "adapt of one task": (
            lambda: fast.adapt(points, labels, given),
            lambda: model.adapt(points, labels, side_info=given), 50.0,
        ),
        "predict of one row": (lambda: ours.predict(row), lambda: peer.predict(row), 10.0),
    }  # fmt: skip
    out = []
    for what, (quick, plain, goal) in calls.items():
        a, b = best(quick), best(plain, times=200)
        out.append({
            "what": f"{what}, low_latency()", "ours": f"{a:.3g} us", "peer": f"{b:.3g} us",
            "ratio": f"{b / a:.3g}x", "goal": f"<= {goal:g} us", "met": a <= goal,
            "note": "peer: the ordinary call, same bits; best of 7",
        })  # fmt: skip
    return out


def main() -> list[dict]:
    """Return the rows of the table."""
    sizes = [row for count in SIZES for row in rows_of(count)]
    return [*sizes, one_regression_a_task(), *one_at_a_time()]


if __name__ == "__main__":
    way, count, folder = sys.argv[1:]
    print(json.dumps(WAYS[way](int(count), Path(folder))))
