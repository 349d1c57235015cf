"""Expected failures as one sentence and an exit code; everything else is a bug and shows itself."""

from __future__ import annotations

import functools
from collections.abc import Callable

import click

from condmeta.errors import DataError, DivergenceError, ModelFileError

EXPECTED = (DataError, DivergenceError, ModelFileError, ImportError, OSError)


def tell_failures(command: Callable) -> Callable:
    """Wrap a command: what a user can mend ends it with code 2 and a sentence, no traceback.

    The command takes `debug`, which lets the traceback through.
    """

    @functools.wraps(command)
    def wrapped(*args, debug: bool, **kwargs):
        try:
            return command(*args, **kwargs)
        except EXPECTED as error:
            if debug:
                raise
            failure = click.ClickException(str(error))
            failure.exit_code = 2
            raise failure from error

    return click.option("--debug", is_flag=True, help="Show the traceback of an error.")(wrapped)
