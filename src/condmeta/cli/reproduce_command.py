"""`condmeta reproduce`: the paper's experiments, figures and report."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import click

from condmeta.cli.failures import report_failures
from condmeta.cli.options import command_line, together

# Copies of the names in the package, because `--help` must not load scikit-learn. A test compares.
NAMES = "one-cluster", "two-clusters-mean-4", "two-clusters-mean-0", "circle", "lenk", "schools"
CHOICES = {
    "inputs": ("paper", "gaussian", "unit"),
    "gradient_at": ("current", "average"),
    "averaging": ("uniform", "linear"),
    "scale": ("paper", "none", "rows"),
    "train_on": ("support", "all"),
    "schools_map": ("features-and-mean", "features", "features-std-1", "mean"),
}
HELP = {
    "inputs": "Inputs of synthetic tasks; paper: unit for the circle, else Gaussian.",
    "gradient_at": "Algorithm 1 as printed, or as in the authors' released code.",
    "averaging": "Weights of the iterates in the map.",
    "scale": "Scale rows to norm 1; paper: only on Schools.",
    "train_on": "Which points of training tasks are used.",
    "schools_map": "Side information of a school.",
}
reading_options = together(  # one for each choice that the paper does not specify
    *(click.option(f"--{name.replace('_', '-')}", type=click.Choice(allowed), default=allowed[0],
                   show_default=True, help=HELP[name]) for name, allowed in CHOICES.items()),
    click.option("--circle-std", type=float, default=10.0, show_default=True,
                 help="Standard deviation of the circle's random frequencies."),
    click.option("--noise", type=float, help="Standard deviation of the label noise.  [default: "
                 "that of a task's noise-free labels]"),
)  # fmt: skip


@click.command("reproduce", short_help="Run the paper's experiments and write a report.")
@click.argument("names", nargs=-1, type=click.Choice(["all", *NAMES]), metavar="[NAMES]...")
@click.option("--seeds", type=click.IntRange(min=1), default=10, show_default=True,
              help="Number of random repetitions.")  # fmt: skip
@click.option("--inner", type=click.Choice(["online", "batch"]), default="online",
              show_default=True, help="Inner algorithm; the paper uses online.")  # fmt: skip
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default="reproduction",
              show_default=True, help="Folder to write to.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=1),
              help="Seeds to run in parallel.  [default: number of cores]")  # fmt: skip
@click.option("--workers", type=click.IntRange(min=1), metavar="N",
              help="Run on a Dask cluster of N processes on this machine.")  # fmt: skip
@click.option("--scheduler", metavar="ADDRESS",
              help="Run on the Dask cluster of this scheduler, such as "
              "tcp://10.0.0.1:8786.")  # fmt: skip
@click.option("--force", is_flag=True, help="Run finished panels again.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
@reading_options
@report_failures
@click.pass_context
def reproduce_command(
    ctx, names, seeds, inner, out, jobs, workers, scheduler, force, quiet, as_json, **readings
):
    """Run the paper's experiments and compare the errors with the authors' numbers.

    NAMES: one-cluster, two-clusters-mean-4, two-clusters-mean-0, circle, lenk, schools. The default
    is all of them; lenk and schools are then skipped if their data are not on this machine. If you
    name them, their data are downloaded. Writes tables, figures and a report. If you interrupt it,
    run it again: finished experiments are kept.

    \b
    condmeta reproduce
    condmeta reproduce circle --seeds 3 --out circle

    Exit codes: 0 done, 1 error in the data or a file, 2 wrong usage.
    """
    from condmeta.cli.reproduce_output import show_progress, show_results
    from condmeta.paper.experiments.page import write_report
    from condmeta.paper.experiments.readings import Readings
    from condmeta.paper.experiments.reproduction import reproduce
    from condmeta.paper.experiments.summary import to_json

    command = command_line(ctx)
    try:
        with _client(workers, scheduler, jobs) as client, show_progress(quiet) as progress:
            found = reproduce(
                names or ("all",), seeds, inner, out, jobs, force, progress, Readings(**readings),
                client,
            )  # fmt: skip
            page = write_report(found, out / "report.html", command=command)
    except KeyboardInterrupt:
        click.echo(
            f"\nInterrupted. Finished panels are in {out}. To continue, run again:\n  {command}",
            err=True,
        )
        sys.exit(130)
    if as_json:
        click.echo(json.dumps(to_json(found, page), indent=2))
    elif not quiet:
        show_results(found, page)


def _client(workers, scheduler, jobs):
    """Return a context with the client of a cluster, or None."""
    if workers is None and scheduler is None:
        return nullcontext()
    from condmeta.errors import DataError
    from condmeta.tables.cluster.workers import cluster_of

    if workers is not None and scheduler is not None:
        raise DataError(
            "--workers starts a cluster, --scheduler uses a running one: give only one of them."
        )
    if jobs is not None:
        raise DataError(
            "--jobs does not work with a cluster (--workers, --scheduler): leave it out."
        )
    return cluster_of(workers, scheduler)
