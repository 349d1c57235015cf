"""What a command says beside its answer: notes and progress, on standard error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from condmeta.cli.sentences import in_commands


@contextmanager
def tell_notes(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Give a function that tells a note; warnings of condmeta are told as notes too, each once."""
    told: set[str] = set()

    def tell(text: str) -> None:
        if not quiet and text not in told:
            told.add(text)
            click.echo(text, err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: tell(f"Note: {in_commands(str(message))}")
        yield tell


@contextmanager
def tell_work(text: str, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show at a terminal that work goes on, and nothing elsewhere; give what renews the text."""
    if quiet or not sys.stderr.isatty():
        yield lambda step: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(text)) as status:
        yield lambda step: status.update(escape(f"{text}: {step}"))
