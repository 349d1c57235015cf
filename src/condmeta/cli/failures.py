"""Expected failures as one sentence and an exit code; everything else is a bug and shows itself.

Exit codes: 0 done; 1 the data, a file or the model does not allow it; 2 the command was not
understood; 130 interrupted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import click

from condmeta.cli.sentences import in_commands
from condmeta.errors import DataError, DivergenceError, ModelFileError

EXPECTED = (DataError, DivergenceError, ModelFileError, ImportError, OSError)


def tell_failures(command: Callable) -> Callable:
    """Wrap a command: what a user can mend ends it with code 1 and a sentence, no traceback.

    The command takes `debug`, which lets the traceback through.
    """

    @functools.wraps(command)
    def wrapped(*args, debug: bool, **kwargs):
        try:
            return command(*args, **kwargs)
        except BrokenPipeError:  # the reader of our output has seen enough
            raise
        except EXPECTED as error:
            if debug:
                raise
            raise click.ClickException(in_commands(str(error))) from error

    return click.option(
        "--traceback", "--debug", "debug", is_flag=True, envvar="CONDMETA_TRACEBACK",
        help="Show the traceback of an error.",
    )(wrapped)  # fmt: skip
