"""Show an expected failure as one sentence with an exit code; any other exception is a bug.

Exit codes: 0 done; 1 error in the data, a file or the model; 2 wrong usage; 130 interrupted.
"""

import functools
from collections.abc import Callable

import click

from condmeta.errors import DataError, DivergenceError, ModelFileError

EXPECTED = (DataError, DivergenceError, ModelFileError, ImportError, OSError)
WORDS = {  # of the library: of the command line
    "missing from side_info": "missing from the side table",
    "Add the missing rows to side_info, or set missing_side='mean'":
        "Add the missing rows to --side-table, or fit with --missing-side mean",
    "name its key column with side_key=": "name its key column with --side-key",
    "set missing='impute'": "use --missing impute",
    "fit the model with missing='impute'": "fit the model with --missing impute",
    "set decimal= to '.' or ','. If it holds names, list it in text=":
        "use --decimal . or --decimal , (--side-decimal for the side table). If it holds names, "
        "list it in --text",
    "fit it with intervals=True": "fit it with --intervals",
    "calibrate takes regressors, not classifiers": "fit without --intervals",
    "Save it with resume=True, or call adapt with all the points of the task":
        "Fit it without --share, or give all the rows of the task to adapt",
    "Save it with resume=True": "Fit it without --share",
    "set again=True": "use --again",
    "use one learner, such as ConditionalRidge": "fit with --learner ridge",
    "set x_transform=None and y_transform=None": "use --linear",
    "set x_transform=None": "use --linear",
    "call fit with the whole table": "leave --chunks out",
    "use a classifier, or no learner: the target then decides": "leave --learner out",
}  # fmt: skip


def to_cli_wording(sentence: str) -> str:
    """Return a message of the library with options of the command line in place of Python.

    Examples
    --------
    >>> to_cli_wording("The model has no intervals: fit it with intervals=True.")
    'The model has no intervals: fit it with --intervals.'
    """
    for python, command in WORDS.items():
        sentence = sentence.replace(python, command)
    return sentence


def report_failures(command: Callable) -> Callable:
    """Wrap a command: errors that a user can mend end it with one sentence and exit code 1.

    This adds the option --traceback, which shows the traceback instead.
    """

    @functools.wraps(command)
    def wrapped(*args, debug: bool, **kwargs):
        try:
            return command(*args, **kwargs)
        except BrokenPipeError:  # the program that reads our output has ended
            raise
        except EXPECTED as error:
            if debug:
                raise
            raise click.ClickException(to_cli_wording(str(error))) from error

    return click.option(
        "--traceback", "--debug", "debug", is_flag=True, envvar="CONDMETA_TRACEBACK",
        help="Show the traceback of an error.",
    )(wrapped)  # fmt: skip
