"""Run the paper's experiments into a folder; a second run goes on where the first stopped."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from joblib import Parallel, cpu_count, delayed
from threadpoolctl import threadpool_limits

from condmeta.datasets.files import VARIABLE
from condmeta.engine import active_engine
from condmeta.errors import DataError
from condmeta.experiments.outputs import load_panel, save_panel, write_file
from condmeta.experiments.paper import PANELS, get_panel
from condmeta.experiments.protocol import run
from condmeta.experiments.readings import Readings
from condmeta.experiments.results import Results
from condmeta.plots import curves_figure, published_figure
from condmeta.plots.canvas import new_figure
from condmeta.plots.save import FORMATS, figure_bytes
from condmeta.versions import versions

FILES = {"lenk": "lenk_data.mat", "schools": "schoolData.mat"}
TOLD = ("condmeta", "engine", "instruction set", "python", "numpy", "scipy", "scikit-learn")


class Event(NamedTuple):
    """Something to tell the user.

    what : "starts", "seed" (one more is done), "done", "reused", "skipped", of a panel; "figures"
    """

    what: str
    panel: str
    done: int = 0
    total: int = 0
    text: str = ""


class Reproduction(NamedTuple):
    """What a run left behind.

    results : dict of panel -> Results, whose `provenance` tells seeds, options and seconds
    skipped : dict of panel -> why
    reused : panels taken from an earlier run
    figures : dict of name -> matplotlib Figure
    out : folder that holds it all
    """

    results: dict[str, Results]
    skipped: dict[str, str]
    reused: tuple[str, ...]
    figures: dict[str, Any]
    out: Path


def reproduce(
    names: Iterable[str] = ("all",),
    seeds: int | Sequence[int] = 10,
    inner: str = "online",
    out: Any = "reproduction",
    jobs: int | None = None,
    force: bool = False,
    progress: Callable[[Event], None] | None = None,
    readings: Readings | None = None,
) -> Reproduction:
    """Run experiments of the paper, write tables, provenance and figures to a folder.

    Each finished panel is written at once as ``<panel>.csv`` and ``<panel>.json``; one that was
    finished earlier with the same version, engine, seeds and readings is not run again.
    `condmeta.report.write_report` makes a page of the outcome.

    Parameters
    ----------
    names : panels of `PANELS`, or "all"
        With "all" the real ones are skipped where their data are not on this machine; a real one
        that is named is downloaded.
    seeds : int or sequence of int
    inner : {"online", "batch"}
    out : path of a folder
    jobs : int, optional
        Seeds to run at once; by default one for each core.
    force : bool
        Whether to run finished panels again.
    progress : callable, optional
        Called with an `Event`.
    readings : Readings, optional
        How to read what the text leaves open; `inner` replaces theirs.

    Examples
    --------
    The first panel, two seeds::

        reproduce(["one-cluster"], seeds=2, out="reproduction")
    """
    names, out = _panels(names), Path(out)
    new_figure(1, 1)  # if figures cannot be drawn, say so before the work
    seeds = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if not seeds:
        raise DataError("The 'seeds' parameter of reproduce must name at least one seed.")
    readings = replace(readings or Readings(), inner=inner)
    say = progress or (lambda event: None)
    asked = {"condmeta": versions()["condmeta"], "engine": active_engine(), "seeds": seeds}
    asked["options"] = readings.options()
    results: dict[str, Results] = {}
    skipped: dict[str, str] = {}
    reused: list[str] = []
    for name, is_named in names.items():
        old = None if force else load_panel(out, name, {"panel": name, **asked})
        if old is not None:
            say(Event("reused", name, text=f"finished earlier, taken from {out / name}.csv"))
            results[name] = old
            reused.append(name)
            continue
        if not is_named and not _is_at_hand(name):
            skipped[name] = (
                f"its data are not on this machine. Name the folder that holds {FILES[name]} in "
                f"{VARIABLE}, or download it: condmeta reproduce {name}"
            )
            say(Event("skipped", name, text=skipped[name]))
            continue
        results[name] = _run_panel(name, readings, seeds, jobs, say)
        save_panel(out, name, results[name], {"panel": name, **asked, **results[name].provenance})
    say(Event("figures", ""))
    figures = draw_figures(results)
    for name, figure in figures.items():
        for kind in FORMATS:
            write_file(out / f"{name}.{kind}", figure_bytes(figure, kind))
    return Reproduction(results, skipped, tuple(reused), figures, out)


def draw_figures(results: dict[str, Results]) -> dict[str, Any]:
    """Return Figure 1, Figure 2 and the comparison with the authors, of the panels at hand."""
    figures = {}
    for number in ("1", "2"):
        panels = {n: r for n, r in results.items() if PANELS[n].figure == number}
        if panels:
            figures[f"figure-{number}"] = curves_figure(
                {PANELS[name].title: found for name, found in panels.items()}
            )
    figures["authors"] = published_figure(
        {PANELS[n].title: (found, PANELS[n].published) for n, found in results.items()}
    )
    return figures


def _panels(names: Iterable[str]) -> dict[str, bool]:
    """Return the panels asked for, in the paper's order, and whether each was named."""
    asked = [names] if isinstance(names, str) else list(names)
    named = {get_panel(name) and name for name in asked if name != "all"}
    whole = "all" in asked or not asked
    return {name: name in named for name in PANELS if whole or name in named}


def _run_panel(name: str, readings: Readings, seeds, jobs, say) -> Results:
    """Run one panel, a seed a job, and tell after each."""
    started = time.perf_counter()
    panel = readings.panel(name)
    source = panel.source()
    methods = readings.methods(panel, source)
    jobs = min(jobs or cpu_count(), len(seeds))
    say(Event("starts", name, 0, len(seeds)))
    shared = {"setting": panel.setting, "grid": {"lam": panel.grid, "meta_step": panel.grid}}
    job = partial(_run_seed, source, methods, shared)
    whole = None
    with closing(_each(job, seeds, jobs)) as parts:
        for done, part in enumerate(parts, start=1):
            whole = part if whole is None else whole + part
            say(Event("seed", name, done, len(seeds)))
    seconds = time.perf_counter() - started
    told = {key: whole.provenance[key] for key in TOLD}
    told |= {"panel": name, "seeds": seeds, "options": readings.options(), "jobs": jobs}
    told |= {"setting": json.loads(json.dumps(panel.setting._asdict())), "grid": _grid(panel.grid)}
    whole.provenance = {**told, "seconds": round(seconds, 2)}
    say(Event("done", name, len(seeds), len(seeds), f"{seconds:.1f} s"))
    return whole


def _run_seed(source, methods, shared, seed: int) -> Results:
    return run(source, methods, seeds=[seed], **shared)


def _each(job: Callable[[int], Results], seeds, jobs: int) -> Iterator[Results]:
    """Yield the results of the seeds in their order; closed early, wait for those under way.

    A thread that came back from compiled code into a Python that is shutting down would abort it.
    """
    if jobs == 1:
        yield from map(job, seeds)
    elif active_engine() == "native":
        with threadpool_limits(1), ThreadPoolExecutor(jobs) as pool:  # one thread of BLAS a seed
            yield from pool.map(job, seeds)
    else:
        yield from Parallel(jobs, return_as="generator")(delayed(job)(seed) for seed in seeds)


def _grid(values) -> str:
    low, high = (round(math.log10(value)) for value in (values[0], values[-1]))
    return f"{len(values)} x {len(values)} on 1e{low}..1e{high}"


def _is_at_hand(name: str) -> bool:
    """Tell whether a panel can run without a download."""
    if name not in FILES:
        return True
    folders = [Path(os.environ[VARIABLE]).expanduser()] if os.environ.get(VARIABLE) else []
    try:
        import pooch

        folders.append(Path(pooch.os_cache("condmeta")))
    except ImportError:  # without it nothing was ever downloaded
        pass
    return any((folder / FILES[name]).is_file() for folder in folders)
