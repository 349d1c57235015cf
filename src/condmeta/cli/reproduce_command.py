"""`condmeta reproduce`: the paper's experiments, figures and report."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from condmeta.cli.command_line import command_line
from condmeta.cli.failures import tell_failures

# Written out, not taken from the package: `--help` must not load scikit-learn. A test compares.
NAMES = (
    "one-cluster", "two-clusters-mean-4", "two-clusters-mean-0", "circle", "lenk", "schools",
)  # fmt: skip
CHOICES = {
    "inputs": ("paper", "gaussian", "unit"),
    "gradient_at": ("current", "average"),
    "averaging": ("uniform", "linear"),
    "scale": ("paper", "none", "rows"),
    "train_on": ("support", "all"),
    "schools_map": ("features-and-mean", "features", "features-std-1", "mean"),
}
HELP = {
    "inputs": "Inputs of synthetic tasks; paper: Gaussian, for the circle unit.",
    "gradient_at": "Algorithm 1 as printed, or as in the authors' released code.",
    "averaging": "Weights of the iterates in the map.",
    "scale": "Scale rows to norm 1; paper: on Schools alone.",
    "train_on": "Points that training tasks show.",
    "schools_map": "Side information of a school.",
}


def reading_options(command):
    """Add an option for each passage that the paper leaves open."""
    command = click.option(
        "--noise", type=float, help="Standard deviation of the label noise.  "
        "[default: that of a task's clean labels]",
    )(command)  # fmt: skip
    command = click.option(
        "--circle-std", type=float, default=10.0, show_default=True,
        help="Deviation of the frequencies of the circle's random features.",
    )(command)  # fmt: skip
    for name, allowed in reversed(CHOICES.items()):
        command = click.option(
            f"--{name.replace('_', '-')}", type=click.Choice(allowed), default=allowed[0],
            show_default=True, help=HELP[name],
        )(command)  # fmt: skip
    return command


@click.command("reproduce", short_help="The paper's experiments, with a report.")
@click.argument("names", nargs=-1, type=click.Choice(["all", *NAMES]), metavar="[NAMES]...")
@click.option("--seeds", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--inner", type=click.Choice(["online", "batch"]), default="online",
              show_default=True, help="Inner algorithm; the paper has online.")  # fmt: skip
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default="reproduction",
              show_default=True, help="Folder to write to.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=1), help="Seeds at once.  [default: the cores]")
@click.option("--force", is_flag=True, help="Run finished panels again.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@reading_options
@tell_failures
@click.pass_context
def reproduce_command(ctx, names, seeds, inner, out, jobs, force, quiet, as_json, **readings):
    """Re-create the paper's experiments beside the authors' numbers.

    NAMES: one-cluster, two-clusters-mean-4, two-clusters-mean-0, circle, lenk, schools; all of
    them by default, the last two where their data are on this machine (named, they are
    downloaded). Writes tables, figures and a report; interrupted, it goes on when run again.
    """
    from condmeta.cli.show import show_outcome, tell_progress
    from condmeta.experiments.readings import Readings
    from condmeta.experiments.reproduction import reproduce
    from condmeta.report import outcome_of, write_report

    command = command_line(ctx)
    try:
        with tell_progress(quiet) as progress:
            found = reproduce(
                names or ("all",), seeds, inner, out, jobs, force, progress, Readings(**readings)
            )
            page = write_report(found, out / "report.html", command=command)
    except KeyboardInterrupt:
        click.echo(
            f"\nInterrupted. Finished panels are in {out}; to go on from there, run again:\n"
            f"  {command}",
            err=True,
        )
        sys.exit(130)
    if as_json:
        click.echo(json.dumps(outcome_of(found, page), indent=2))
    elif not quiet:
        show_outcome(found, page)
