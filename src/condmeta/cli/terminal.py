"""Notes and progress of a command, on standard error."""

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from condmeta.cli.failures import to_cli_wording


@contextmanager
def show_notes(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that prints a note once; warnings of condmeta become notes too."""
    printed: set[str] = set()

    def note(text: str) -> None:
        if not quiet and text not in printed:
            printed.add(text)
            click.echo(text, err=True)

    def note_warning(message, *_, **__) -> None:
        note(f"Note: {to_cli_wording(str(message))}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = note_warning
        yield note


@contextmanager
def spinner(text: str, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show a spinner at a terminal, nothing elsewhere; yield a function that changes its text.

    Steps that learners log are shown as well.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda step: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(text)) as status:

        def show(step: str) -> None:
            status.update(escape(f"{text}: {step}"))

        with logged_steps(show):
            yield show


@contextmanager
def logged_steps(show: Callable[[str], None]) -> Iterator[None]:
    """Call a function with each step that a learner logs, while the context lasts."""
    log, handler = logging.getLogger("condmeta"), logging.Handler()
    handler.emit = lambda record: show(record.getMessage())  # type: ignore[method-assign]
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
