"""Kill writers at random moments: the file is always the old one or the new one, whole.

    python tools/kill_study.py --rounds 200

Each round starts `fit -o`, `update`, `save` over an existing file, or `compare -o` in a process of
its own and kills it (SIGKILL) at a random moment. Then the file must be whole: the old one or the
new one, with its mode, behind its symbolic link; and after the next write no temporary file is
left. The second part fills the disk, protects the folder, and removes or truncates a file while it
is read: each is one sentence, and nothing is lost. The last part kills `fit` of many files, starts
it again, and compares the model with that of a fit that nothing stopped.

    python tools/kill_study.py --rounds 0 --fits 10

runs the last part alone.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

MODE = 0o640
SAVER = """
import sys, condmeta as cm
model = cm.load(sys.argv[1])
print("ready", flush=True)
for _ in range(1000):
    model.save(sys.argv[1])
"""
COMMAND = [sys.executable, "-c", "from condmeta.cli import main; main()"]
COLUMNS = ["--task", "shop", "--target", "sold"]


class Place(NamedTuple):
    """The files of one study: a link to a model, its table, further rows."""

    folder: Path
    model: Path
    link: Path
    table: Path
    more: Path
    page: Path


def make_place(folder: Path, tasks: int = 60) -> Place:
    """Write the tables and the first model."""
    rng = np.random.default_rng(0)
    real = folder / "real"
    real.mkdir()
    place = Place(
        folder, real / "shops.condmeta", folder / "shops.condmeta", folder / "sales.csv",
        folder / "more.csv", folder / "comparison.html",
    )  # fmt: skip

    def rows(path: Path, each: int) -> None:
        lines = ["shop,price,sold"]
        for task in range(tasks):
            for price in rng.normal(size=each):
                lines.append(f"s{task},{price:.4f},{2 * price + task % 5 + rng.normal():.4f}")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    rows(place.table, 10)
    rows(place.more, 1)
    place.link.symlink_to(place.model)
    run([*COMMAND, "fit", str(place.table), *COLUMNS, "--learner", "ridge", "-o", str(place.model)])
    place.model.chmod(MODE)
    return place


def run(command: list[str], check: bool = True) -> subprocess.CompletedProcess:
    """Run a command to its end."""
    return subprocess.run(command, capture_output=True, text=True, check=check, timeout=300)


def commands(place: Place) -> dict[str, tuple[list[str], Path]]:
    """Return the writers, each with the file that it replaces."""
    link = str(place.link)
    fit = [*COMMAND, "fit", str(place.table), *COLUMNS, "--learner", "ridge", "--force", "-o", link]
    update = [*COMMAND, "update", link, str(place.more), "--again"]
    compare = [*COMMAND, "compare", str(place.table), *COLUMNS, "--no-boosting", "--shots", "0,1"]
    return {
        "save": ([sys.executable, "-c", SAVER, link], place.link),
        "fit -o": (fit, place.link),
        "update": (update, place.link),
        "compare -o": ([*compare, "-o", str(place.page), "--force"], place.page),
    }


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, or a word if there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "absent"


def is_whole(path: Path) -> bool:
    """Return whether a file is complete."""
    if path.suffix == ".html":
        return not path.exists() or path.read_text(encoding="utf-8").rstrip().endswith("</html>")
    import condmeta as cm

    cm.load(path)
    return True


def leftovers(place: Place) -> list[Path]:
    """Return the temporary files in the folders of the study."""
    return [*place.folder.glob(".*.tmp"), *place.model.parent.glob(".*.tmp")]


def kill_once(place: Place, name: str, rng, longest: dict[str, float]) -> str:
    """Start a writer, kill it, and return what is left: "old" or "new"; raise if it is neither."""
    command, path = commands(place)[name]
    before = digest(path)
    started = time.monotonic()
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        if name == "save":  # it has started to write now, and writes until it is killed
            writer.stdout.readline()
            time.sleep(rng.uniform(0, 0.05))
        else:
            writer.wait(rng.uniform(0.3, 1.05) * longest[name])
    except subprocess.TimeoutExpired:
        pass
    killed = writer.poll() is None
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    if not killed:
        longest[name] = time.monotonic() - started
    after = digest(path)
    assert is_whole(path), f"{name}: {path} is neither the old file nor the new one"
    if path == place.link:
        assert place.link.is_symlink(), f"{name}: the link was replaced"
        mode = stat.S_IMODE(place.model.stat().st_mode)
        assert mode == MODE, f"{name}: the mode is {mode:o}"
    for left in leftovers(place):
        mode = stat.S_IMODE(left.stat().st_mode)
        private = mode in (0o600, MODE) or path == place.page
        assert private, f"{name}: {left.name} has mode {mode:o}"
    return "old" if after == before else "new"


def study_kills(rounds: int, seed: int, names: list[str] | None = None) -> dict[str, dict]:
    """Kill writers in turn; return counts of what was left, by writer."""
    rng = np.random.default_rng(seed)
    counts: dict[str, collections.Counter] = {}
    with tempfile.TemporaryDirectory() as folder:
        place = make_place(Path(folder))
        chosen = names or list(commands(place))
        longest = {}
        for name in chosen:
            if name != "save":
                started = time.monotonic()
                run(commands(place)[name][0])
                longest[name] = time.monotonic() - started
        for number in range(rounds):
            name = chosen[number % len(chosen)]
            counted = counts.setdefault(name, collections.Counter())
            counted[kill_once(place, name, rng, longest)] += 1
            counted["temporary files left"] += len(leftovers(place))
            if leftovers(place) and name != "compare -o":
                import condmeta as cm

                cm.load(place.link).save(place.link)  # the next call
                assert not [p for p in leftovers(place) if "shops" in p.name], "a leftover stays"
        if "compare -o" in chosen:
            run(commands(place)["compare -o"][0])
        assert leftovers(place) == [], f"left: {leftovers(place)}"
    return counts


def study_faults() -> list[tuple[str, str]]:
    """Return what condmeta says where the disk is full, the folder protected, the file gone."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        place = make_place(Path(folder), tasks=400)
        before = digest(place.model)
        update = [*COMMAND, "update", str(place.link), str(place.more), "--again"]
        limited = f"trap '' XFSZ; ulimit -f 8; exec {shlex.join(update)}"  # 8 blocks of 1 kB
        full = run(["bash", "-c", limited], check=False)
        found.append(("the disk is full", full.stderr))
        protect = place.model.parent
        protect.chmod(0o555)
        if os.geteuid() != 0:  # root may write anywhere
            done = run(update, check=False)
            found.append(("the folder is read-only", done.stderr))
        protect.chmod(0o755)
        short = place.folder / "short.condmeta"
        short.write_bytes(place.model.read_bytes()[:-1000])
        done = run([*COMMAND, "predict", str(short), str(place.table)], check=False)
        found.append(("the file is truncated", done.stderr))
        done = run([*COMMAND, "predict", str(place.folder / "gone"), str(place.table)], check=False)
        found.append(("the file is removed", done.stderr))
        assert digest(place.model) == before, "a refused call changed the model"
        assert leftovers(place) == [], f"left: {leftovers(place)}"
    for name, sentence in found:
        assert sentence.startswith("Error: "), f"{name}: {sentence}"
        assert "Traceback" not in sentence, f"{name}: {sentence}"
    return found


def study_reads(rounds: int, seed: int) -> dict[str, int]:
    """Read a file that another process truncates, removes and writes again all the time."""
    import condmeta as cm
    from condmeta.errors import ModelFileError

    counts: collections.Counter = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        place = make_place(Path(folder))
        data = place.model.read_bytes()
        program = (
            "import os, sys, random\n"
            "path, data = sys.argv[1], open(sys.argv[1], 'rb').read()\n"
            f"random.seed({seed})\n"
            "print('ready', flush=True)\n"
            "while True:\n"
            "    with open(path, 'wb') as file:\n"
            "        file.write(data[: random.randrange(len(data))])\n"
            "    if random.random() < 0.3: os.unlink(path)\n"
            "    with open(path, 'wb') as file: file.write(data)\n"
        )
        spoiler = subprocess.Popen(
            [sys.executable, "-c", program, str(place.model)], stdout=subprocess.PIPE
        )
        spoiler.stdout.readline()
        try:
            for _ in range(rounds):
                try:
                    cm.load(place.model)
                    counts["read"] += 1
                except (ModelFileError, FileNotFoundError) as error:
                    counts[type(error).__name__] += 1
        finally:
            spoiler.kill()
            spoiler.communicate()
        place.model.write_bytes(data)
        assert is_whole(place.model)
    return counts


def study_fits(rounds: int, seed: int, tasks: int = 20_000) -> dict[str, int]:
    """Kill fits of many files at random moments; started again, each ends with the same bits."""
    rng, counts = np.random.default_rng(seed), collections.Counter()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        _write_parts(folder, tasks, rng)
        fit = [*COMMAND, "fit", f"{folder}/rows-*.csv", *COLUMNS, "--memory", "500MB", "-o"]
        started = time.monotonic()
        run([*fit, str(folder / "whole.condmeta")])
        longest, whole = time.monotonic() - started, contents(folder / "whole.condmeta")
        for number in range(rounds):
            model = folder / f"{number}.condmeta"
            writer = subprocess.Popen([*fit, str(model)], stderr=subprocess.DEVNULL)
            try:
                writer.wait(rng.uniform(0.0, longest))
            except subprocess.TimeoutExpired:
                writer.send_signal(signal.SIGKILL)
                writer.wait()
                counts[_progress(Path(f"{model}.work"))] += 1
            else:
                counts["ended first"] += 1
            if not model.exists():
                run([*fit, str(model)])
            assert contents(model) == whole, f"the model of round {number} differs"
            assert not Path(f"{model}.work").exists(), "the work folder is left"
    return counts


def contents(path: Path) -> dict[str, bytes]:
    """Return all that a model file holds but the time at which it was written."""
    with zipfile.ZipFile(path) as file:
        found = {name: file.read(name) for name in file.namelist()}
    found["meta.json"] = re.sub(rb'"created":"[^"]*"', b"", found["meta.json"])
    return found


def _write_parts(folder: Path, tasks: int, rng: np.random.Generator) -> None:
    """Write the rows of tasks, shuffled, to four files."""
    shop = rng.permutation(np.repeat(np.arange(tasks), 10))
    price = rng.normal(size=shop.size)
    sold = (2 + shop % 5) * price + rng.normal(size=shop.size)
    for number in range(4):
        lines = zip(shop[number::4], price[number::4], sold[number::4], strict=True)
        text = "".join(f"s{a},{b:.4f},{c:.4f}\n" for a, b, c in lines)
        (folder / f"rows-{number}.csv").write_text("shop,price,sold\n" + text, encoding="utf-8")


def _progress(work: Path) -> str:
    """Return how far a fit came."""
    if not work.exists():
        return "killed before it read"
    if (work / "statistics").exists():
        return "killed while it learned"
    return "killed while it read and ordered"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--fits", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.fits:
        print("fits of files:", dict(study_fits(options.fits, options.seed)))
        print("started again, each ended with the same model, bit for bit")
    if not options.rounds:
        return 0
    for name, counted in study_kills(options.rounds, options.seed).items():
        print(f"killed {name:12}", *(f"{what} {n}" for what, n in sorted(counted.items())))
    for name, sentence in study_faults():
        print(f"{name}: {sentence.strip().splitlines()[0]}")
    print("read while it changes:", dict(study_reads(options.rounds, options.seed)))
    print("every file was whole, with its mode and its link; no temporary file is left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
