"""Run the paper's experiments and write them to a folder; finished panels are not run again."""

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from joblib import cpu_count

from condmeta.datasets.files import VARIABLE
from condmeta.display.plots import curves_figure, published_figure
from condmeta.display.plots.canvas import FORMATS, figure_bytes, new_figure
from condmeta.engine import active_engine
from condmeta.paper.experiments.outputs import load_panel, refuse_foreign, save_panel, write_file
from condmeta.paper.experiments.panels import PANELS, get_panel
from condmeta.paper.experiments.protocol import each_seed, list_seeds, run
from condmeta.paper.experiments.readings import Readings
from condmeta.paper.experiments.results import Results
from condmeta.tables.cluster.workers import check_workers, in_order
from condmeta.typing import InnerName, PathLike
from condmeta.versions import versions

FILES = {"lenk": "lenk_data.mat", "schools": "schoolData.mat"}
VERSIONS = ("condmeta", "engine", "instruction set", "python", "numpy", "scipy", "scikit-learn")


class Event(NamedTuple):
    """One step of a reproduction, for a progress display.

    Attributes
    ----------
    kind : str
        "starts", "seed" (one more seed is done), "done", "reused" or "skipped", of a panel; or
        "figures", when the figures are drawn.
    panel : str
    done, total : int
        Number of seeds.
    text : str
        Seconds, file or reason.
    """

    kind: str
    panel: str
    done: int = 0
    total: int = 0
    text: str = ""


class Reproduction(NamedTuple):
    """The results of `reproduce`.

    Attributes
    ----------
    results : dict of panel -> Results
        Each has its seeds, options and seconds in `provenance`.
    skipped : dict of panel -> reason
    reused : tuple of str
        Panels that were finished in an earlier run.
    figures : dict of name -> matplotlib Figure
    out : Path
        The folder with all files.
    """

    results: dict[str, Results]
    skipped: dict[str, str]
    reused: tuple[str, ...]
    figures: dict[str, Any]
    out: Path


def reproduce(
    names: Iterable[str] = ("all",), seeds: int | Sequence[int] = 10, inner: InnerName = "online",
    out: PathLike = "reproduction", jobs: int | None = None, force: bool = False,
    progress: Callable[[Event], None] | None = None, readings: Readings | None = None,
    client: Any = None,
) -> Reproduction:  # fmt: skip
    """Run experiments of the paper and write tables, provenance and figures to a folder.

    Each panel is written as ``<panel>.csv`` and ``<panel>.json`` as soon as it is finished. A panel
    is not run again if the folder has it with the same version, engine, seeds and readings.
    `write_report` writes the results as an HTML page.

    Parameters
    ----------
    names : panels of `PANELS`, or "all"
        "all" skips the panels on real data if the data are not on this machine. If you name such a
        panel, its data are downloaded.
    seeds : int or sequence of int
    inner : {"online", "batch"}
    out : path of a folder
    jobs : int, optional
        Number of seeds to run in parallel; by default the number of cores.
    force : bool
        Whether to run finished panels again.
    progress : callable, optional
        Called with an `Event` at each step.
    readings : Readings, optional
        Choices where the paper is not specific; the argument `inner` replaces `readings.inner`.
    client : distributed.Client, optional
        The Dask cluster on whose workers the seeds of all panels run; `jobs` is then not used.

    Examples
    --------
    The first panel, two seeds::

        reproduce(["one-cluster"], seeds=2, out="reproduction")
    """
    names, out = _panels(names), Path(out)
    refuse_foreign(out, names)
    new_figure(1, 1)  # without matplotlib, raise now and not after the work
    seeds = list_seeds(seeds)
    readings = replace(readings or Readings(), inner=inner)
    report = progress or (lambda event: None)
    shared = {
        "condmeta": versions()["condmeta"], "engine": active_engine(), "seeds": seeds,
        "options": readings.options(),
    }  # fmt: skip
    if client is not None:
        jobs = check_workers(client)
    jobs = min(jobs or cpu_count(), len(seeds))
    start = partial(_start_panel, readings=readings, seeds=seeds, jobs=jobs, client=client)
    old = {name: None if force else load_panel(out, name, {"panel": name, **shared})
           for name in names}  # fmt: skip
    lacking = [n for n in names if old[n] is None and not names[n] and not _has_data(n)]
    ahead = {}
    if client is not None:  # the seeds of all panels side by side
        ahead = {n: start(n) for n in names if old[n] is None and n not in lacking}
    results: dict[str, Results] = {}
    skipped: dict[str, str] = {}
    reused: list[str] = []
    for name in names:
        known = old[name]
        if known is not None:
            report(Event("reused", name, text=f"finished earlier, taken from {out / name}.csv"))
            results[name] = known
            reused.append(name)
            continue
        if name in lacking:
            skipped[name] = (
                f"its data are not on this machine. Set {VARIABLE} to the folder that holds "
                f"{FILES[name]}, or download it: condmeta reproduce {name}"
            )
            report(Event("skipped", name, text=skipped[name]))
            continue
        begun = time.perf_counter()
        found = _collect_panel(name, ahead.get(name) or start(name), seeds, report)
        seconds = time.perf_counter() - begun
        panel = readings.panel(name)
        found.provenance = {
            "panel": name, **shared,
            **{key: found.provenance[key] for key in (*VERSIONS, "metric")},
            "jobs": jobs,
            "setting": json.loads(json.dumps(panel.setting._asdict())),  # as a file gives it
            "grid": _grid(panel.grid),
            "seconds": round(seconds, 2),
        }  # fmt: skip
        report(Event("done", name, len(seeds), len(seeds), f"{seconds:.1f} s"))
        results[name] = found
        save_panel(out, name, results[name])
    report(Event("figures", ""))
    figures = draw_figures(results)
    for name, figure in figures.items():
        for kind in FORMATS:
            write_file(out / f"{name}.{kind}", figure_bytes(figure, kind))
    return Reproduction(results, skipped, tuple(reused), figures, out)


def draw_figures(results: dict[str, Results]) -> dict[str, Any]:
    """Return Figure 1, Figure 2 and the comparison with the authors, of the panels in `results`."""
    figures = {}
    for number in ("1", "2"):
        names = [name for name in results if PANELS[name].figure == number]
        if names:
            curves = {PANELS[name].title: results[name] for name in names}
            figures[f"figure-{number}"] = curves_figure(curves)
    pairs = {PANELS[n].title: (found, PANELS[n].published) for n, found in results.items()}
    return figures | {"authors": published_figure(pairs)}


def _panels(names: Iterable[str]) -> dict[str, bool]:
    """Return the requested panels, in the paper's order, and whether each was named."""
    requested = [names] if isinstance(names, str) else list(names)
    named = {get_panel(name) and name for name in requested if name != "all"}
    everything = "all" in requested or not requested
    return {name: name in named for name in PANELS if everything or name in named}


def _start_panel(
    name: str, readings: Readings, seeds: list[int], jobs: int, client: Any
) -> Iterator[Results]:
    """Return an iterator of the results of each seed of a panel; on a cluster they run already."""
    panel = readings.panel(name)
    source = panel.source()
    methods = readings.methods(panel, source)
    shared = {"setting": panel.setting, "grid": {"lam": panel.grid, "meta_step": panel.grid}}
    job = partial(_run_seed, source, methods, shared)
    return each_seed(job, seeds, jobs) if client is None else in_order(client, job, seeds)


def _collect_panel(
    name: str, parts: Iterator[Results], seeds: list[int], report: Callable[[Event], None]
) -> Results:
    """Return the results of all seeds of a panel, and report each seed when it is done."""
    report(Event("starts", name, 0, len(seeds)))
    whole = None
    with closing(parts):
        for done, part in enumerate(parts, start=1):
            whole = part if whole is None else whole + part
            report(Event("seed", name, done, len(seeds)))
    return whole


def _run_seed(source: Any, methods: Any, shared: Any, seed: int) -> Results:
    return run(source, methods, seeds=[seed], **shared)


def _grid(values: Any) -> str:
    low, high = (round(math.log10(value)) for value in (values[0], values[-1]))
    return f"{len(values)} x {len(values)} on 1e{low}..1e{high}"


def _has_data(name: str) -> bool:
    """Return whether a panel can run without a download."""
    if name not in FILES:
        return True
    folders = [Path(os.environ[VARIABLE]).expanduser()] if os.environ.get(VARIABLE) else []
    try:
        import pooch

        folders.append(Path(pooch.os_cache("condmeta")))
    except ImportError:  # without pooch there is no cache of downloads
        pass
    return any((folder / FILES[name]).is_file() for folder in folders)
