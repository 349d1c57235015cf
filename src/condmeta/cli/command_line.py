"""The command that a user gave, for reports and for running it again."""

from __future__ import annotations

import shlex

import click
from click.core import ParameterSource

LEFT_OUT = "force", "debug"  # options of one run


def command_line(ctx: click.Context) -> str:
    """Return the command with its arguments and the options that were given."""
    words = ["condmeta", str(ctx.command.name)]
    for param in ctx.command.params:
        given = ctx.get_parameter_source(param.name) == ParameterSource.COMMANDLINE
        value = ctx.params.get(param.name)
        if isinstance(param, click.Argument):
            words += [value] if isinstance(value, str) else value
        elif given and param.name not in LEFT_OUT:
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            words += [param.opts[-1]] + ([] if param.is_flag else [text])
    return shlex.join(words)
