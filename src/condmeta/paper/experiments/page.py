"""The HTML report of a reproduction."""

from pathlib import Path
from typing import Any

from condmeta.display.plots import FinalErrorsDisplay, LearningCurveDisplay
from condmeta.display.plots.canvas import FORMATS, default_style, new_figure
from condmeta.paper.experiments.claims import claims_of
from condmeta.paper.experiments.outputs import write_file
from condmeta.paper.experiments.panels import PANELS
from condmeta.paper.experiments.readings import Readings
from condmeta.paper.experiments.reproduction import Reproduction
from condmeta.paper.experiments.results import Results
from condmeta.paper.experiments.summary import summarise
from condmeta.typing import PathLike

SCHOOLS_NOTE = (
    "The side information of a school is that of the authors' code: random features and the mean "
    "input. With the random features alone, as in the text, the conditional approach did not "
    "improve on the unconditional one in ten seeds: condmeta reproduce schools --schools-map "
    "features."
)
SIZE = 4.0, 3.0  # inches: text of 10 points stays legible at the width of a phone


def write_report(found: Reproduction, path: PathLike, *, command: str | None = None) -> Path:
    """Write the results of a reproduction as one HTML file that opens offline (needs jinja2).

    Parameters
    ----------
    found : Reproduction
        What `reproduce` returned.
    path : path of the file
        The page links to tables and figures beside it, so write it to the folder `found.out`.
    command : str, optional
        The command that made the results; the page shows it.

    Examples
    --------
    ::

        found = reproduce(["one-cluster"], seeds=2, out="reproduction")
        write_report(found, "reproduction/report.html")
    """
    return write_file(Path(path), reproduction_page(found, command).encode("utf-8"))


def reproduction_page(found: Reproduction, command: str | None = None) -> str:
    """Return the page as text."""
    from condmeta.display.pages.render import render  # needs jinja2, which is optional

    with default_style():
        panels = [panel_content(found, name, results) for name, results in found.results.items()]
    return render(
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
    """Return the options that differ from the default readings."""
    options = next((results.provenance["options"] for results in found.results.values()), {})
    default = Readings().options()
    return {name: value for name, value in options.items() if value != default.get(name)}


def _note(name: str, options: dict[str, Any]) -> str:
    """Return what to say where the default reading of a panel is not that of the text."""
    return SCHOOLS_NOTE if name == "schools" and options == Readings().options() else ""


def panel_content(found: Reproduction, name: str, results: Results) -> dict[str, Any]:
    """Return the variables of one panel for the template."""
    from condmeta.display.pages.render import inline_svg  # needs markupsafe, part of jinja2

    panel = PANELS[name]
    seeds = len(results.provenance["seeds"])
    about = f"{panel.title}, mean of {seeds} seeds."
    curves = LearningCurveDisplay.from_results(results).plot(new_figure(*SIZE).subplots())
    finals = FinalErrorsDisplay.from_results(results, dict(panel.published))
    finals.plot(new_figure(*SIZE).subplots(), legend=False)
    FinalErrorsDisplay.add_legend(finals.figure_, loc="outside upper center", ncols=2)
    return {
        "name": name, "title": panel.title, "figure": panel.figure, "seeds": seeds,
        "tasks": int(results.columns["T"].max()),
        "curves": inline_svg(curves.figure_, f"{name}-curves", f"{about} {curves.describe()}"),
        "finals": inline_svg(finals.figure_, f"{name}-finals", f"{about} {finals.describe()}"),
        "rows": summarise({name: results}),
        "claims": [(claim.sentence, claim.judge(results)) for claim in claims_of(name)],
        "note": _note(name, results.provenance["options"]),
        "reused": name in found.reused, "provenance": results.provenance,
    }  # fmt: skip
