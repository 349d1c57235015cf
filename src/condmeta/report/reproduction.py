"""The page: what is on it, and how it is put together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from condmeta.experiments.claims import claims_of
from condmeta.experiments.outputs import write_file
from condmeta.experiments.paper import PANELS
from condmeta.experiments.readings import Readings
from condmeta.experiments.reproduction import Reproduction
from condmeta.experiments.results import Results
from condmeta.experiments.summary import summarise
from condmeta.plots import FinalErrorsDisplay, LearningCurveDisplay
from condmeta.plots.canvas import new_figure
from condmeta.plots.save import FORMATS
from condmeta.report.fill import fill
from condmeta.report.pictures import inline_svg

SIZE = 4.0, 3.0  # inches: text of 10 points stays legible at the width of a phone


def write_report(found: Reproduction, path: Any, *, command: str | None = None) -> Path:
    """Write the outcome of a reproduction as one HTML file that needs nothing else.

    Parameters
    ----------
    found : Reproduction
    path : path of the file
        Tables and figures are linked as neighbours, so keep it in the folder of the reproduction.
    command : str, optional
        The command that made it, to be shown.
    """
    return write_file(Path(path), render(found, command).encode("utf-8"))


def render(found: Reproduction, command: str | None = None) -> str:
    """Return the page as text."""
    panels = [panel_content(found, name, results) for name, results in found.results.items()]
    return fill(
        "reproduction.html",
        ("sort.js",),
        panels=panels,
        verdicts=[verdict for panel in panels for _, verdict in panel["claims"]],
        skipped={PANELS[name].title: why for name, why in found.skipped.items()},
        figures={name: [f"{name}.{kind}" for kind in FORMATS] for name in found.figures},
        changed=_changed_readings(found),
        command=command,
    )


def _changed_readings(found: Reproduction) -> dict[str, Any]:
    """Return the options that are not those of the paper's figures as we read them."""
    told = next((results.provenance["options"] for results in found.results.values()), {})
    usual = Readings().options()
    return {name: value for name, value in told.items() if value != usual.get(name)}


def panel_content(found: Reproduction, name: str, results: Results) -> dict[str, Any]:
    """Return what the page says about one panel."""
    panel = PANELS[name]
    rows = summarise({name: results})
    T = int(results.columns["T"].max())
    seeds = len(results.provenance["seeds"])
    about = f"{panel.title}, mean of {seeds} seeds."
    curves = LearningCurveDisplay.from_results(results).plot(new_figure(*SIZE).subplots())
    finals = FinalErrorsDisplay.from_results(results, dict(panel.published))
    finals.plot(new_figure(*SIZE).subplots(), legend=False)
    FinalErrorsDisplay.add_legend(finals.figure_, loc="outside upper center", ncols=2)
    return {
        "name": name,
        "title": panel.title,
        "figure": panel.figure,
        "tasks": T,
        "seeds": seeds,
        "curves": inline_svg(curves.figure_, f"{name}-curves", f"{about} {curves.describe()}"),
        "finals": inline_svg(finals.figure_, f"{name}-finals", f"{about} {finals.describe()}"),
        "rows": rows,
        "claims": [(claim.sentence, claim.judge(results)) for claim in claims_of(name)],
        "reused": name in found.reused,
        "told": results.provenance,
    }
