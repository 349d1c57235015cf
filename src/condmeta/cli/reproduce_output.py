"""Progress on standard error, results as a table on standard output."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from condmeta.paper.experiments.claims import claims_of
from condmeta.paper.experiments.reproduction import Event, Reproduction
from condmeta.paper.experiments.summary import summarise


@contextmanager
def show_progress(quiet: bool) -> Iterator[Callable[[Event], None] | None]:
    """Yield a callback that shows progress: bars in a terminal, plain lines otherwise."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bars() as callback:
            yield callback
    else:
        yield _print_line


def _print_line(event: Event) -> None:
    text = {
        "starts": f"{event.panel}: {event.total} seeds",
        "done": f"{event.panel}: done in {event.text}",
        "reused": f"{event.panel}: {event.text}",
        "skipped": f"{event.panel}: skipped, {event.text}",
        "figures": "figures and report",
    }.get(event.kind)
    if text:
        print(text, file=sys.stderr, flush=True)


@contextmanager
def _bars() -> Iterator[Callable[[Event], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:<20}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("seeds"), TimeElapsedColumn(),
    )  # fmt: skip
    bars: dict[str, int] = {}
    with Progress(*columns, console=console) as progress:

        def update(event: Event) -> None:
            if event.kind == "starts":
                bars[event.panel] = progress.add_task(event.panel, total=event.total)
            elif event.kind == "seed":
                progress.update(bars[event.panel], completed=event.done)
            elif event.kind in ("reused", "skipped"):
                word = "skipped, " if event.kind == "skipped" else ""
                console.print(f"{event.panel}: {word}{event.text}", markup=False, highlight=False)

        yield update


def show_results(found: Reproduction, page: Path) -> None:
    """Print final errors beside those of the authors, the claims that hold, and the files."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    # Without a terminal there is no true width: 120 columns keep rows from being cut.
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False, markup=False)
    table = Table(box=box.SIMPLE_HEAD, title="Final test errors")
    for name in ("panel", "method"):
        table.add_column(name, no_wrap=name == "panel")
    for name in ("here (s.e.)", "authors (s.d.)", "difference"):
        table.add_column(name, justify="right", no_wrap=True)
    last = None
    for row in summarise(found.results):
        if last not in (None, row.panel):
            table.add_section()
        table.add_row("" if row.panel == last else row.panel, *row.cells())
        last = row.panel
    console.print(table)
    for panel, results in found.results.items():
        for claim in claims_of(panel):
            verdict = claim.judge(results)
            mark = {True: "holds", False: "DOES NOT HOLD", None: "not judged"}[verdict.holds]
            console.print(f"{panel}: {claim.sentence} {mark}", soft_wrap=True)
    for panel, why in found.skipped.items():
        console.print(f"{panel}: skipped, {why}", soft_wrap=True)
    console.print(f"\nTables and figures: {found.out}\nReport: {page}", soft_wrap=True)
